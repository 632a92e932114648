package rpc

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// Code that is not this package's need not return: handlers, interceptors, codecs, errors that are
// asked for their text. It leaves by a panic, which ends here, or by runtime.Goexit (testing's
// FailNow), which takes the goroutine along. What a call has (its place, its worker, its answer,
// the rest of its message) is given back by deferred functions, which serve both ways.

// PanicError is in the error of a call in which this side's code, a codec or an interceptor, has
// panicked, or has called runtime.Goexit. errors.Is and errors.As find Value, if it is an error.
type PanicError struct {
	Value any
	Stack []byte // of where it was
}

func (e *PanicError) Error() string {
	if e.Value == errGoexit { //nolint:errorlint // it is that very value
		return errGoexit.Error()
	}
	return fmt.Sprintf("panic: %v", e.Value)
}

// Unwrap gives Value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errGoexit is the value of what was no panic.
var errGoexit = errors.New("runtime.Goexit was called")

// try calls code that may leave. If it does, left is called, still on its stack. After a Goexit
// nothing follows but deferred functions.
func try(code func(), left func(why *PanicError)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if v == nil {
			v = errGoexit
		}
		left(&PanicError{v, debug.Stack()})
	}()
	code()
	returned = true
}

// pack is encode, for a message of the caller's.
func (c *codec) pack(dst []byte, msg any) (b []byte, err error) {
	try(func() { b, err = c.encode(dst, msg) }, func(why *PanicError) { err = why })
	return b, err
}

// unpack is decode, for a message of the peer's.
func (c *codec) unpack(b []byte, msg any) (err error) {
	try(func() { err = c.decode(b, msg) }, func(why *PanicError) { err = why })
	return err
}

// publish gives ev to the subscribers of the system's events.
func publish(sys *actor.ActorSystem, ev any) {
	try(func() { sys.EventStream.Publish(ev) }, func(*PanicError) {})
}

// lives is the supervisor of a connection's actor. What has left it is one call's: the actor goes
// on with what it has.
var resuming = actor.WithGuardian(actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective }))
