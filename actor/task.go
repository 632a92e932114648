package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Task is a name for what an OnLoop actor does on behalf of others, such as a handler that it calls: a loop's watchdog that finds it
// at it reports the Task, instead of whatever has brought the message.
type Task struct{ r eventloop.Runnable }

// NewTask makes a Task, which is good for any number of actors.
func NewTask(name string) *Task { return &Task{task(name)} }

// task is a name as the watchdog asks for it.
type task string

// LoopName is the name.
func (t task) LoopName() string { return string(t) }

// Run has nothing to do: tasks are not queued.
func (task) Run(int) (more bool) { return false }

// Tasks is how an OnLoop actor says what it is at.
type Tasks struct{ l *loop }

// TasksOf gives the calling actor its Tasks. It is called in Receive, and so are their methods; off the loops they do nothing.
func TasksOf(ctx actor.Context) Tasks {
	if m := boxesOf(ctx.ActorSystem()).get(ctx.Self().Id); m != nil {
		return Tasks{m.loop()}
	}
	return Tasks{}
}

// Began is what End wants to be given.
type Began struct{ was *eventloop.Runnable }

// Begin says that the actor is at t from now on.
func (t Tasks) Begin(at *Task) Began {
	if t.l == nil {
		return Began{}
	}
	return Began{t.l.el.Blame(&at.r)}
}

// End says that it is not any more.
func (t Tasks) End(b Began) {
	if t.l != nil {
		t.l.el.Blame(b.was)
	}
}
