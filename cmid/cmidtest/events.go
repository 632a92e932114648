package cmidtest

import (
	"slices"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// deliverEvent delivers ev after the completions that came before it. It runs on the loop, and
// never inside a call that the program has made.
func (in *instance) deliverEvent(id *driverID, ev cmid.DriverEvent) {
	if in.frozen {
		in.runProgram(func() { in.deliverEvent(id, ev) })
		return
	}
	if len(in.kept) > 0 || in.f.flipCoin() {
		in.kept = append(in.kept, keptEvent{id, ev})
		in.runLater(in.deliverKept)
		return
	}
	in.notifyCompletions()
	in.passEvent(id, &ev)
}

// passEvent passes ev to cmid. If the listener of a request is gone, it destroys the request's
// child.
func (in *instance) passEvent(id *driverID, ev *cmid.DriverEvent) {
	if in.ids[id.h] == id {
		in.up.Event(id.h, ev)
	} else if ev.Kind == states.KindConnectRequest {
		_ = ev.Child.Do(&cmid.DestroyID{})
	}
}

// callUnlessReturned completes a call of the program, around which it is deferred. It calls again
// if the program did not return, because it panicked. again does the rest of the caller's work for
// others.
func callUnlessReturned(returned *bool, again func()) {
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
	defer callUnlessReturned(&returned, func() { in.runLater(in.deliverKept) })
	in.delivering = append(in.delivering, in.kept...)
	for in.kept = nil; len(in.delivering) > 0; {
		e := in.delivering[0]
		in.delivering = in.delivering[1:]
		in.passEvent(e.id, &e.ev)
	}
	returned = true
}

// notifyCompletions notifies the program of every completion queue that has new completions.
func (in *instance) notifyCompletions() {
	if len(in.dirty) == 0 || in.frozen {
		return
	}
	if in.f.flipCoin() {
		in.scheduleTurn()
		return
	}
	for len(in.dirty) > 0 {
		q := in.dirty[0]
		in.dirty = slices.Delete(in.dirty, 0, 1)
		q.dirty = false
		q.notify()
	}
}

// runProgram runs fn, which calls the program. While the program is frozen, fn is suspended.
func (in *instance) runProgram(fn func()) {
	if in.frozen {
		in.suspended = append(in.suspended, fn)
		return
	}
	fn()
}

// changeState changes the state and reports it.
func (id *driverID) changeState(s states.State, kind states.Kind, status int32) {
	id.state = s
	id.reportKind(kind, status)
}

// reportKind delivers an event that has only a kind and a status.
func (id *driverID) reportKind(kind states.Kind, status int32) {
	id.in.deliverEvent(id, cmid.DriverEvent{Kind: kind, Status: status})
}

// reportDone reports the outcome of a pending command.
func (id *driverID) reportDone(err error) {
	id.in.runProgram(func() {
		if id.isAlive() {
			id.in.up.Done(id.h, err)
		}
	})
}
