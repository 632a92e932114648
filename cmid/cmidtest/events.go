package cmidtest

import (
	"slices"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// event delivers ev after the completions that came before it. It runs on the loop, and never
// inside a call that the program has made.
func (in *instance) event(id *ident, ev cmid.DriverEvent) {
	if in.frozen {
		in.program(func() { in.event(id, ev) })
		return
	}
	if len(in.kept) > 0 || in.f.coin() {
		in.kept = append(in.kept, keptEvent{id, ev})
		in.later(in.deliverKept)
		return
	}
	in.notifyCompletions()
	in.deliver(id, &ev)
}

// deliver passes ev to cmid. If the listener of a request is gone, deliver destroys the request's
// child.
func (in *instance) deliver(id *ident, ev *cmid.DriverEvent) {
	if in.ids[id.h] == id {
		in.up.Event(id.h, ev)
	} else if ev.Kind == states.KindConnectRequest {
		_ = ev.Child.Do(&cmid.DestroyID{})
	}
}

// unless is deferred around a call of the program. It calls again if the program did not return,
// because it panicked. again does the rest of the caller's work for others.
func unless(returned *bool, again func()) {
	if !*returned {
		again()
	}
}

// deliverKept delivers the events that Reorder has delayed.
func (in *instance) deliverKept() {
	if in.frozen {
		return
	}
	returned := false
	defer unless(&returned, func() { in.later(in.deliverKept) })
	in.delivering = append(in.delivering, in.kept...)
	for in.kept = nil; len(in.delivering) > 0; {
		e := in.delivering[0]
		in.delivering = in.delivering[1:]
		in.deliver(e.id, &e.ev)
	}
	returned = true
}

// notifyCompletions notifies the program of every completion queue that has new completions.
func (in *instance) notifyCompletions() {
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

// program runs fn, which calls the program. While the program is frozen, fn is suspended.
func (in *instance) program(fn func()) {
	if in.frozen {
		in.suspended = append(in.suspended, fn)
		return
	}
	fn()
}

// become changes the state and reports it.
func (id *ident) become(s states.State, kind states.Kind, status int32) {
	id.state = s
	id.report(kind, status)
}

// report delivers an event that has only a kind and a status.
func (id *ident) report(kind states.Kind, status int32) {
	id.in.event(id, cmid.DriverEvent{Kind: kind, Status: status})
}

// done reports the outcome of a pending command.
func (id *ident) done(err error) {
	id.in.program(func() {
		if id.alive() {
			id.in.up.Done(id.h, err)
		}
	})
}
