package actor

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// opName is a command's name in messages.
func opName(cmd Command) string {
	switch c := cmd.(type) {
	case interface{ name() string }: // one of ours
		return c.name()
	case *cmid.GetAddrInfo:
		return "getaddrinfo"
	}
	return strings.TrimPrefix(cmd.Op().C(), "rdma_")
}

// rdmaName is a type's name as applications spell it.
func rdmaName(typ string) string {
	if pkg, name, _ := strings.Cut(typ, "."); pkg == "cmid" || pkg == "actor" {
		return "rdma." + name
	}
	return typ
}

// restore gives an answer the command that the user has sent, in place of the one it came to, and
// advice that is true of it.
func restore(ev Event, cmd Command) {
	switch e := ev.(type) {
	case *cmid.Done:
		e.Command = cmd
	case Failure:
		e.Base().Command = cmd
	}
	switch cmd.(type) {
	case *Dial, *Serve:
		if f, ok := ev.(*cmid.AddrError); ok && errors.Is(f, unix.ETIMEDOUT) {
			// ResolveAddr could be repeated: this identifier goes
			f.Remedy = "the neighbour does not answer; " + tryAgain
		}
	}
}

// tryAgain is the advice when the identifier is lost.
const tryAgain = "create a new identifier to try again"

// unknown answers what is no command: values, and whatever else was sent by mistake.
func (it *ident) unknown(m any, sender *actor.PID) {
	f := it.failure(nil, "receive", fmt.Errorf("%s: %w", want(m), unix.EINVAL))
	it.reply(sender, &cmid.CommandFailed{FailureBase: f})
}

// want says what should have been sent instead of m.
func want(m any) string {
	name := rdmaName(fmt.Sprintf("%T", m))
	switch t := reflect.PointerTo(reflect.TypeOf(m)); {
	case t.Implements(reflect.TypeFor[Command]()), t == reflect.TypeFor[*Send]():
		return fmt.Sprintf("got %s, want *%s", name, name)
	}
	return fmt.Sprintf("got %s, want a command such as *rdma.Listen", name)
}

// failure is the common part of a failing answer of ours.
func (it *ident) failure(cmd Command, op string, err error) cmid.FailureBase {
	f := cmid.FailureBase{Op: op, Command: cmd, Err: err}
	if it.id != nil {
		in := it.id.Info()
		f.EventBase = it.base()
		f.State, f.Local, f.Peer, f.History = it.id.State(), in.Local, in.Peer, it.id.History()
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		f.Status = -int32(errno)
	}
	return f
}

// fail answers a command that did not reach the device.
func (it *ident) fail(cmd Command, sender *actor.PID, err error) {
	it.reply(sender, &cmid.CommandFailed{FailureBase: it.failure(cmd, opName(cmd), err)})
}

// late answers a command that finds the identifier on its way out.
func (it *ident) late(cmd Command) Event {
	err := fmt.Errorf("the identifier is being destroyed: %w", unix.ENOENT)
	if it.cause != nil {
		err = fmt.Errorf("the identifier is closed: %w (%w)", it.cause, unix.ENOENT)
	}
	if it.id == nil {
		err = it.cause // it could never be made
	}
	if _, ok := cmd.(oneSided); ok {
		return it.accessError(cmd, err)
	}
	return &cmid.CommandFailed{FailureBase: it.failure(cmd, opName(cmd), err)}
}
