package actor

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// failure returns the common part of a failing answer that does not come from the device.
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
	it.reply(sender, it.commandFailed(cmd, err))
}

func (it *ident) commandFailed(cmd Command, err error) *cmid.CommandFailed {
	return &cmid.CommandFailed{FailureBase: it.failure(cmd, opName(cmd), err)}
}

// unknown answers a message that is no command: a command by value, or anything else that was sent
// by mistake.
func (it *ident) unknown(m any, sender *actor.PID) {
	f := it.failure(nil, "receive", fmt.Errorf("%s: %w", want(m), unix.EINVAL))
	it.reply(sender, &cmid.CommandFailed{FailureBase: f})
}

// want returns the text that names m and the message that should have been sent instead.
func want(m any) string {
	name := rdmaName(fmt.Sprintf("%T", m))
	switch t := reflect.PointerTo(reflect.TypeOf(m)); {
	case t.Implements(reflect.TypeFor[Command]()), t == reflect.TypeFor[*Send]():
		return fmt.Sprintf("got %s, want *%s", name, name)
	}
	return fmt.Sprintf("got %s, want a command such as *rdma.Listen", name)
}

// nothing returns the answer to a command that is a nil pointer.
func (it *ident) nothing(cmd Command) Event {
	err := fmt.Errorf("a nil *%s: %w", rdmaName(fmt.Sprintf("%T", cmd)[1:]), unix.EINVAL)
	return &cmid.CommandFailed{FailureBase: it.failure(nil, "receive", err)}
}

// misused answers a Send that was not made by NewSend or was sent before. It must not get into the
// pool.
func (it *ident) misused(s *Send, sender *actor.PID) bool {
	if s.usable() {
		return false
	}
	f := it.failure(nil, "send", fmt.Errorf("not made by NewSend, or sent before: %w", unix.EINVAL))
	it.reply(sender, &SendFailed{FailureBase: f, Sends: 1})
	return true
}

// late returns the answer to a command that finds the identifier ending.
func (it *ident) late(cmd Command) Event {
	err := fmt.Errorf("the identifier is being destroyed: %w", unix.ENOENT)
	if it.life.cause != nil {
		err = fmt.Errorf("the identifier is closed: %w (%w)", it.life.cause, unix.ENOENT)
	}
	if it.id == nil || shakes(cmd) && isHandshake(it.life.cause) {
		err = it.life.cause // it could never be made, or this command's handshake has failed
	}
	if _, ok := cmd.(oneSided); ok {
		return it.accessError(cmd, err)
	}
	return it.commandFailed(cmd, err)
}

func (it *ident) accessError(cmd Command, err error) *AccessError {
	f := it.failure(cmd, opName(cmd), err)
	f.History = nil // it would be the same in a thousand of them
	if errors.Is(err, ErrRemoteAccess) {
		f.Remedy = "a key is good on the connection it was granted on, until it is revoked: connect again and ask for another"
	}
	return &AccessError{f}
}

// refuseSends answers refused Sends of one sender. kind is the class of err: answers of one class
// are merged.
func (it *ident) refuseSends(from *actor.PID, sends, bytes int, kind, err error) {
	p := pile{it.owner.box, kind}
	if !it.owns(from) {
		p.box = it.rt.registry.Find(from)
	}
	if p.box != nil && it.piles.add(p, sends, bytes) {
		return
	}
	ev := &SendFailed{FailureBase: it.failure(nil, "send", err), Bytes: bytes, Sends: sends}
	ev.History = nil // it would be the same in a thousand of them
	if p.box != nil {
		it.piles.begin(p, ev)
	}
	it.reply(from, ev)
}

// reportRefused answers the Sends for which the mailbox had no room.
func (it *ident) reportRefused() {
	list := it.refusals.take()
	for _, r := range list {
		it.unsent += uint64(r.sends)
		it.refuseSends(r.sender, r.sends, r.bytes, ErrQueueFull, errNoPlace)
	}
	if c := it.conn; c != nil && c.Flows() && len(list) > 0 {
		c.Awake()
		c.Pump() // there may be room already
	}
}

// errNoPlace is the error of a message that the mailbox refuses.
var errNoPlace = fmt.Errorf("the mailbox has no room: %w (%w)", ErrQueueFull, unix.ENOBUFS)
