package actor

import (
	"fmt"
	"runtime/debug"

	"github.com/rdmactor/rdmactor/actor/internal/usercode"
)

// User code that runs in the middle of an identifier's work may panic: Observers, the functions of
// a listener's configuration, senders' middleware, subscribers of the ActorSystem's events and dead
// letters. callUser calls all of it. A panic costs only the result of that code.

// callUser calls user code that is not an actor. It reports a panic (Panicked). Loop goroutine.
func (l *loop) callUser(kind, name string, code func()) (ok bool) {
	return usercode.Call(code, func(value any) { l.reportEscaped(kind, name, value) })
}

// tellUser calls code that sends a message. On a loop that a callback has ended the code
// is queued: it might call Goexit again. After Shutdown it is not called.
func (l *loop) tellUser(kind, name string, code func()) {
	if l.failErr() == nil {
		l.callUser(kind, name, code)
		return
	}
	_ = l.el.Post(func() { l.callUser(kind, name, code) })
}

// activeObserver returns the Observer; nil: there is none, or a callback has ended the loop.
func (l *loop) activeObserver() Observer {
	if l.rt.cfg.Observer == nil || l.failErr() != nil {
		return nil
	}
	return l.rt.cfg.Observer
}

// reportEscaped reports user code that has panicked. Any goroutine may call it.
func (l *loop) reportEscaped(kind, name string, value any) {
	l.recordPanic(kind + " " + name)
	l.rt.reportEscaped(kind, name, value)
}

// reportEscaped reports user code that has panicked. Any goroutine may call it.
func (rt *Runtime) reportEscaped(kind, name string, value any) {
	rt.publishEvent(&Panicked{kind, name, value, debug.Stack()})
}

// publishEvent sends ev to the subscribers of the system's events, which may fail. Any goroutine
// may call it.
func (rt *Runtime) publishEvent(ev any) {
	usercode.Call(func() { rt.sys.EventStream.Publish(ev) }, func(value any) {
		rt.log.Error("rdma: a subscriber of the system's events has panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
	})
}

// callObserver calls the Observer about an identifier.
func (e *endpoint) callObserver(call func(Observer)) {
	if o := e.l.activeObserver(); o != nil {
		e.l.callUser("Observer of", e.pid.Id, func() { call(o) })
	}
}

// observeEvent notifies the Observer of an event of the identifier's.
func (e *endpoint) observeEvent(ev Event) {
	if o := e.l.activeObserver(); o != nil {
		e.l.callUser("Observer of", e.pid.Id, func() { o.Event(e.pid, ev) })
	}
}

// observeCommand calls the CommandObserver about an identifier.
func (e *endpoint) observeCommand(call func(CommandObserver)) {
	if o := e.l.rt.commands; o != nil && e.l.failErr() == nil {
		e.l.callUser("Observer of", e.pid.Id, func() { call(o) })
	}
}
