package actor

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
)

// Identifiers are spread over the loops by how many each loop has. An identifier counts for its
// loop as soon as the loop is chosen, not only when it has arrived there. Otherwise a thousand
// simultaneous requests would all find the same loop empty.

// assignLoop chooses the loop that has fewest identifiers, and counts one more there. first wins
// among equals, and a loop that a callback has ended gets nothing while another one runs.
func (rt *Runtime) assignLoop(first *loop) *loop {
	for {
		best, least := first, first.assigned.Load()
		for _, l := range rt.loops {
			if n := l.assigned.Load(); l.failErr() == nil && (n < least || best.failErr() != nil) {
				best, least = l, n
			}
		}
		if best.assigned.CompareAndSwap(least, least+1) {
			return best
		}
	}
}

// assignLoopFor chooses the loop of an identifier that owner creates: the owner's, or else the one
// with the fewest.
func (rt *Runtime) assignLoopFor(owner *actor.PID) *loop {
	if l := rt.loopOf(rt.registry.Find(owner)); l != nil {
		l.assigned.Add(1)
		return l
	}
	return rt.assignLoop(rt.loops[0])
}

// loopOf returns the runtime's loop that box's actor runs on; nil: none.
func (rt *Runtime) loopOf(box *mailbox.Mailbox) *loop {
	if box == nil || box.Loop() == nil {
		return nil
	}
	if l := box.Loop().Context.(*loop); l.rt == rt {
		return l
	}
	return nil
}

// placeFor chooses the loop of a requested connection: the loop of the actor that Place has
// returned, else the one that the owner runs on, or, if that runs on none or there is a Handler,
// which runs where its connection does, the one with the fewest identifiers. A loop on which too
// many requests have not arrived yet gets no more.
func (l *loop) placeFor(in *incoming) *loop {
	to := in.near
	if to == nil && in.handler == nil {
		to = l.rt.loopOf(in.box)
	}
	if to != nil && to.failErr() == nil {
		to.assigned.Add(1)
	} else {
		to = l.rt.assignLoop(l)
	}
	if to != l && to.coming.Load() >= int64(l.rt.cfg.Limits.PendingRequests) {
		to.assigned.Add(-1)
		l.assigned.Add(1)
		return l
	}
	return to
}
