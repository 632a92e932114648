package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Local is what an OnLoop actor may use of the loop that it runs on. It is for packages that stand
// between connections and their users, as rpc, rdmanet and actor/reconnect do; other actors need no
// more than After.
//
// It is a small value that an actor may keep for as long as it lives. Its methods are called in the
// actor's Receive. The zero Local, which every other actor has, does what can be done without a
// loop: each method says what that is.
type Local struct {
	l    *loop
	self *actor.PID
}

// LocalOf gives the calling actor its Local. It is called in Receive.
func LocalOf(ctx actor.Context) Local {
	if x := mailbox.LoopOf(ctx); x != nil {
		return Local{x.Context.(*loop), ctx.Self()}
	}
	return Local{}
}

// Now is the time on the loop's clock, which After goes by and which is virtual in tests. Without a
// loop it is time.Now.
func (l Local) Now() time.Time {
	if l.l == nil {
		return time.Now()
	}
	return l.l.el.Now()
}

// Woke says that the actor has just woken a goroutine that works for it, by a channel or a
// WaitGroup. The loop then yields once before it sleeps, so that the goroutine does not wait until
// Go's scheduler notices it. Messages to actors need none of this. Without a loop it does nothing.
func (l Local) Woke() {
	if l.l != nil {
		l.l.el.Handoff()
	}
}

// Task is a name for what an actor does on behalf of others, such as a handler that it calls. It is
// good for any number of actors.
type Task struct{ r eventloop.Runnable }

// NewTask makes a Task. Any goroutine.
func NewTask(name string) *Task { return &Task{task(name)} }

// task is a name as the watchdog asks for it.
type task string

// LoopName is the name.
func (t task) LoopName() string { return string(t) }

// Run has nothing to do: tasks are not queued.
func (task) Run(int) (more bool) { return false }

// Do calls do as the Task t: a watchdog that finds the loop at it reports t, instead of the message
// that the actor was sent. It may panic or call runtime.Goexit. Without a loop it just calls do.
func (l Local) Do(t *Task, do func()) {
	if l.l != nil {
		defer l.l.el.Blame(l.l.el.Blame(&t.r))
	}
	do()
}

// Line gives the actor the Line of the connection h, which it has been told Established of. Not ok:
// h has no data path, or lives on another loop, or the Local has no loop.
func (l Local) Line(h Handle) (line *Line, ok bool) {
	if l.l == nil {
		return nil, false
	}
	id := l.l.ch.ID(h)
	if id == nil {
		return nil, false
	}
	it, ok := id.Context.(*ident)
	if !ok || it.conn == nil {
		return nil, false
	}
	return &Line{it.conn}, true
}

// Relay makes the actor's Relay to another actor of any kind. Not ok: the Local has no loop.
func (l Local) Relay(to *actor.PID) (r *Relay, ok bool) {
	if l.l == nil {
		return nil, false
	}
	return &Relay{l: l.l, self: l.self, to: l.l.rt.newOwner(l.l, to)}, true
}
