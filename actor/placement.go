package actor

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Identifiers are spread over the loops by how many each has. They are counted where they shall live from the moment that is decided,
// not when they have arrived: of a thousand requests that come at once all would find the same loop empty.

// spread is what a loop is chosen by. Any goroutine.
type spread struct {
	assigned atomic.Int64  // identifiers that live here, or will
	coming   atomic.Int64  // requests between this loop and another: they may still turn up here
	arrived  atomic.Uint64 // of those, how many have come here to stay
}

// assign chooses the loop that has fewest identifiers, and counts one more there. first wins among equals.
func (rt *Runtime) assign(first *loop) *loop {
	for {
		best, least := first, first.assigned.Load()
		for _, l := range rt.loops {
			if n := l.assigned.Load(); n < least {
				best, least = l, n
			}
		}
		if best.assigned.CompareAndSwap(least, least+1) {
			return best
		}
	}
}

// place chooses the loop of an identifier that owner makes: its own, else the one that has fewest.
func (rt *Runtime) place(owner *actor.PID) *loop {
	if l := rt.loopOf(rt.registry.Find(owner)); l != nil {
		l.assigned.Add(1)
		return l
	}
	return rt.assign(rt.loops[0])
}

// loopOf is the runtime's loop that box's actor runs on; nil: none.
func (rt *Runtime) loopOf(box *mailbox.Mailbox) *loop {
	if box == nil || box.Loop() == nil {
		return nil
	}
	if l := box.Loop().Context.(*loop); l.rt == rt {
		return l
	}
	return nil
}

// placeFor chooses the loop of a listener's next connection: its owner's loop, if it has one, else, and for a handler, which runs where
// its connection does, the one that has fewest. A loop that does not keep up with what was sent to it gets no more.
func (l *loop) placeFor(listener *ident) *loop {
	to := l.rt.loopOf(listener.owner.box)
	if listener.opts.handler == nil && to != nil {
		to.assigned.Add(1)
	} else {
		to = l.rt.assign(l)
	}
	if to != l && to.coming.Load() >= int64(l.rt.cfg.limits.PendingRequests) {
		to.assigned.Add(-1)
		l.assigned.Add(1)
		return l
	}
	return to
}

// move is a request on its way from one loop to another. Its identifier belongs to the goroutine that a function of the move runs on, and
// in between to the queue of the loop it was posted to.
type move struct {
	*incoming
	rt       *Runtime
	from, to *loop
	detached *cmid.Detached
}

// pass sends a request to another loop. False: it is still here, because its device cannot, or the other loop has ended.
func (l *loop) pass(in *incoming, to *loop) bool {
	m := &move{incoming: in, rt: l.rt, from: l, to: to}
	// Both loops count it before it is known that nobody shuts down: who does afterwards finds neither of them empty.
	m.from.coming.Add(1)
	m.to.coming.Add(1)
	if l.rt.closing.Load() {
		m.end()
		return false
	}
	var err error
	if m.detached, err = in.id.Detach(); err != nil {
		m.end()
		return false
	}
	if to.el.Post(m.arrive) == nil {
		return true
	}
	defer m.end()
	if err = l.ch.Attach(m.detached); err != nil {
		m.lose(err)
		return true
	}
	return false
}

// arrive is the other loop's half.
func (m *move) arrive() {
	if err := m.to.ch.Attach(m.detached); err != nil {
		if m.from.el.Post(m.back) != nil {
			defer m.end()
			m.lose(err)
		}
		return
	}
	defer m.end()
	m.to.arrived.Add(1)
	it := m.to.take(m.incoming)
	if o, ok := m.rt.cfg.observer.(MoveObserver); ok && it != nil {
		o.Moved(it.pid, it.id.Handle(), m.from.el.Name(), m.to.el.Name())
	}
}

// back is on the loop it came from, when the other one could not take it.
func (m *move) back() {
	defer m.end()
	if err := m.from.ch.Attach(m.detached); err != nil {
		m.lose(err)
		return
	}
	m.to.assigned.Add(-1)
	m.from.assigned.Add(1)
	m.from.take(m.incoming)
}

// lose gives a request up that neither loop can take: both have ended. Its peer sees a connection that ends.
func (m *move) lose(err error) {
	m.to.assigned.Add(-1) // before the peer is told, who may ask again at once
	m.rt.count.Add(-1)
	m.detached.Destroy()
	m.rt.log.Warn("rdma: a request was given up between two loops", "id", m.id.Handle(), "peer", m.r.Peer, "err", Brief(err))
}

// end says that the request is not between the loops any more. Shutdown looks again.
func (m *move) end() {
	for _, l := range [...]*loop{m.from, m.to} {
		l.coming.Add(-1)
		if m.rt.closing.Load() {
			_ = l.el.Post(l.checkEmptied) // refused by a loop that has ended, for which nobody waits
		}
	}
}

// LoopInfo is what Loops tells of a loop.
type LoopInfo struct {
	Name        string
	Identifiers int    // that live there, and requests on their way there: what a loop is chosen by
	Arrived     uint64 // connections that have come from other loops' listeners
	Strangers   uint64 // that came to listeners and did not speak the device's protocol: cmid.Channel.Strangers
	eventloop.Stats
}

// Loops tells of the loops, in their order. It waits for none of them. Any goroutine.
func (rt *Runtime) Loops() []LoopInfo {
	infos := make([]LoopInfo, len(rt.loops))
	for i, l := range rt.loops {
		infos[i] = LoopInfo{l.el.Name(), int(l.assigned.Load()), l.arrived.Load(), l.ch.Strangers(), l.el.Stats()}
	}
	return infos
}
