package workload

import (
	"cmp"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// effectiveLimits returns the runtimes' limits, with defaults for those that were not drawn.
func (e *Env) effectiveLimits() rdma.Limits {
	l := e.Config.Limits
	l.Connections, l.PendingRequests = cmp.Or(l.Connections, 100_000), cmp.Or(l.PendingRequests, 4096)
	l.SendQueue, l.Mailbox = cmp.Or(l.SendQueue, 256), cmp.Or(l.Mailbox, 65_536)
	l.Memory = cmp.Or(l.Memory, 1<<30)
	return l
}

// Credit implements rdma.Observer.
func (o *connObserver) Credit(id *actor.PID, _ rdma.Handle, c rdma.Credits) {
	if o.isKilled() {
		return
	}
	b, now, k := &o.h.w.bounds, o.h.w.now(), o.keyOf(id)
	b.Sample(now, "messages that wait in "+k, c.Queued, o.h.w.e.effectiveLimits().SendQueue)
	b.Sample(now, "messages that the peer may send to "+k, c.Receive, 0)
	if e := o.h.ends[id.GetId()]; e != nil {
		b.Sample(now, "messages that the owner has of "+k, c.Unfreed, e.credits)
	}
}

// inspectEvery is the number of events between two inspections of the identifiers.
const inspectEvery = 16

// sampleBounds samples the calling loop, or its runtime.
func (o *connObserver) sampleBounds() {
	if o.samples++; o.samples%inspectEvery != 0 || o.isKilled() || o.h.rt == nil {
		return
	}
	w, l, name := o.h.w, o.h.w.e.effectiveLimits(), o.p.Name()
	memory := 0
	for _, i := range o.h.rt.Inspect() { // of this loop
		k := o.keyOf(i.PID)
		w.bounds.Sample(w.now(), "messages in the mailbox of "+k, i.Mailbox, l.Mailbox+w.ids.Open(k)+ownPosts)
		memory += i.Memory
	}
	w.bounds.Sample(w.now(), "memory for one-sided operations of a loop of "+name, memory, l.Memory)
	// one more: the recipient of Closed may already have created another
	w.bounds.Sample(w.now(), "identifiers of "+name, w.ids.Living(name+" "), l.Connections+1)
	for _, i := range o.h.rt.Loops() {
		w.bounds.Sample(w.now(), "descriptors of "+i.Name, i.FDs, perLoop+perIdentifier*i.Identifiers)
		w.bounds.Sample(w.now(), "timers of "+i.Name, i.Timers, perLoop+perIdentifier*i.Identifiers)
	}
}

const (
	// ownPosts is the maximum number of messages that an identifier posts to itself.
	ownPosts = 8
	// Descriptors and timers of a loop, for set-ups that are not identifiers yet, and of each
	// identifier: a socket; timers for a deadline, a goodbye, memory, and TCP.
	perLoop       = 16
	perIdentifier = 5
)

// judgeIdle compares the identifiers of an idle runtime with those of the ledger, on a goroutine of
// the process.
func (h *connHost) judgeIdle() {
	before := h.livingEnds()
	there := h.rt.Inspect()
	after := h.livingEnds() // some may have ended in between
	for _, i := range there {
		if e := h.ends[i.PID.GetId()]; e != nil && !slices.Contains(before, e) {
			h.w.e.failWorld("%s is there, and was Closed", e.key)
		}
	}
	for _, e := range after {
		if !slices.ContainsFunc(there, func(i rdma.IDInfo) bool { return i.PID.Equal(e.id) }) {
			h.w.e.failWorld("%s was not Closed, and the runtime does not have it", e.key)
		}
	}
}

// livingEnds lists the ends that were not Closed, in the order in which they were made.
func (h *connHost) livingEnds() (all []*connEnd) {
	for _, c := range h.w.order {
		for _, e := range c.ends {
			if e != nil && e.h == h && !e.dead && !e.closed {
				all = append(all, e)
			}
		}
	}
	return all
}

// rest is how long a runtime may take to return the resources of the last ends.
const rest = time.Second
