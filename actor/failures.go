package actor

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// failureBase returns the common part of a failing answer that does not come from the device.
func (e *endpoint) failureBase(cmd Command, op string, err error) cmid.FailureBase {
	f := cmid.FailureBase{Op: op, Command: cmd, Err: err}
	if e.id != nil {
		in := e.id.Info()
		f.EventBase = e.eventBase()
		f.State, f.Local, f.Peer, f.History = e.id.State(), in.Local, in.Peer, e.id.History()
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		f.Status = -int32(errno)
	}
	return f
}

func (e *endpoint) commandFailed(cmd Command, err error) *cmid.CommandFailed {
	return &cmid.CommandFailed{FailureBase: e.failureBase(cmd, opName(cmd), err)}
}

// answerUnknown answers a message that is not a command.
func (b *outbox) answerUnknown(m any, sender *actor.PID) {
	err := fmt.Errorf("got %s, want a command such as *rdma.Listen: %w", rdmaName(fmt.Sprintf("%T", m)), unix.EINVAL)
	b.answerSender(sender, &cmid.CommandFailed{FailureBase: b.failureBase(nil, "receive", err)})
}

// asPointer returns a pointer to a copy of m if m is a Send or a command by value, and m otherwise.
func asPointer(m any) any {
	t := reflect.TypeOf(m)
	if t == nil || t.Kind() != reflect.Struct {
		return m
	}
	v := reflect.New(t)
	switch p := v.Interface().(type) {
	case *Send, Command:
		v.Elem().Set(reflect.ValueOf(m))
		return p
	}
	return m
}

// nilCommandAnswer returns the answer to a command that is a nil pointer.
func (e *endpoint) nilCommandAnswer(cmd Command) Event {
	err := fmt.Errorf("a nil *%s: %w", rdmaName(fmt.Sprintf("%T", cmd)[1:]), unix.EINVAL)
	return &cmid.CommandFailed{FailureBase: e.failureBase(nil, "receive", err)}
}

// endingAnswer returns the answer to a command that finds the identifier ending.
func (e *endpoint) endingAnswer(cmd Command) Event {
	err := fmt.Errorf("the identifier is being destroyed: %w", unix.ENOENT)
	if e.life.cause != nil {
		err = fmt.Errorf("the identifier is closed: %w (%w)", e.life.cause, unix.ENOENT)
	}
	if e.id == nil || reportsHandshake(cmd) && isHandshake(e.life.cause) {
		err = e.life.cause // it could never be made, or this command's handshake has failed
	}
	if _, ok := cmd.(oneSided); ok {
		return e.accessError(cmd, err)
	}
	return e.commandFailed(cmd, err)
}

func (e *endpoint) accessError(cmd Command, err error) *AccessError {
	f := e.failureBase(cmd, opName(cmd), err)
	f.History = nil // it would be the same in a thousand of them
	if errors.Is(err, ErrRemoteAccess) {
		f.Remedy = "a key is good on the connection it was granted on, until it is revoked: connect again and ask for another"
	}
	return &AccessError{f}
}
