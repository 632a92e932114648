package cmidtest

import (
	"slices"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// event tells ev, after the completions that came before it. On the loop, never inside a call of
// the application's.
func (in *instance) event(id *ident, ev cmid.DriverEvent) {
	if in.frozen {
		in.program(func() { in.event(id, ev) })
		return
	}
	if len(in.held) > 0 || in.f.coin() {
		in.held = append(in.held, heldEvent{id, ev})
		in.later(in.tellHeld)
		return
	}
	in.tellCompletions()
	in.tell(id, &ev)
}

func (in *instance) tell(id *ident, ev *cmid.DriverEvent) {
	if in.ids[id.h] == id {
		in.up.Event(id.h, ev)
	} else if ev.Kind == states.KindConnectRequest {
		_ = ev.Child.Do(&cmid.DestroyID{}) // the listener went with the request unread
	}
}

// unless calls again when the program did not return, because of its panic or runtime.Goexit: what
// is not done yet is nobody's loss.
func unless(returned *bool, again func()) {
	if !*returned {
		again()
	}
}

// tellHeld tells what Reorder has kept back.
func (in *instance) tellHeld() {
	if in.frozen {
		return
	}
	returned := false
	defer unless(&returned, func() { in.later(in.tellHeld) })
	in.telling = append(in.telling, in.held...)
	for in.held = nil; len(in.telling) > 0; {
		e := in.telling[0]
		in.telling = in.telling[1:]
		in.tell(e.id, &e.ev)
	}
	returned = true
}

// tellCompletions calls the notify of every completion queue that has new ones.
func (in *instance) tellCompletions() {
	if len(in.dirty) == 0 || in.frozen {
		return
	}
	if in.f.coin() {
		in.kick()
		return
	}
	for len(in.dirty) > 0 {
		q := in.dirty[0]
		in.dirty = slices.Delete(in.dirty, 0, 1)
		q.dirty = false
		q.notify()
	}
}

// program runs fn, which calls the program, or has it wait until the program goes on.
func (in *instance) program(fn func()) {
	if in.frozen {
		in.untold = append(in.untold, fn)
		return
	}
	fn()
}

// become changes the state, and reports it by an event that has nothing but a kind and a status.
func (id *ident) become(s states.State, kind states.Kind, status int32) {
	id.state = s
	id.tell(kind, status)
}

// tell tells an event that has nothing but a kind and a status.
func (id *ident) tell(kind states.Kind, status int32) {
	id.in.event(id, cmid.DriverEvent{Kind: kind, Status: status})
}

// done ends a command that was pending.
func (id *ident) done(c *cmid.Connect, err error) {
	id.in.program(func() {
		if id.alive() {
			id.in.up.Done(id.h, c, err)
		}
	})
}
