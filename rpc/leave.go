package rpc

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// The user's code need not return: handlers, interceptors, codecs, the Error methods of errors. Of
// handlers deferred functions release the call's place and its worker, send its answer, and resume
// reading its message, whatever ends them.

// PanicError is wrapped by the error of a call in which this side's code, a codec or an
// interceptor, panicked or called runtime.Goexit. errors.Is and errors.As find Value, if it is an
// error.
type PanicError struct {
	Value any
	Stack []byte // of the panic
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic: %v", e.Value)
}

// Unwrap returns Value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// errGoexit is the Value of a PanicError for a runtime.Goexit.
var errGoexit = errors.New("runtime.Goexit was called")

// tryCall calls code. If that panics or calls runtime.Goexit, left is called while code's stack is
// still there. After a panic tryCall returns. After a Goexit only deferred functions still run.
func tryCall(code func(), left func(why *PanicError)) {
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

// tryEncode encodes a message of the caller's, and returns a panic as an error.
func (c *codec) tryEncode(dst []byte, msg any) (b []byte, err error) {
	tryCall(func() { b, err = c.encode(dst, msg) }, func(why *PanicError) { err = why })
	return b, err
}

// tryDecode decodes a message of the peer's, and returns a panic as an error.
func (c *codec) tryDecode(b []byte, msg any) (err error) {
	tryCall(func() { err = c.decode(b, msg) }, func(why *PanicError) { err = why })
	return err
}

// publishEvent publishes ev to the subscribers of the system's events, which may panic.
func publishEvent(sys *actor.ActorSystem, ev any) {
	tryCall(func() { sys.EventStream.Publish(ev) }, func(*PanicError) {})
}

// resuming is the supervision of a connection's actor. A panic in it comes from the code of one
// call: the actor goes on with the state that it has.
var resuming = actor.WithGuardian(actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective }))
