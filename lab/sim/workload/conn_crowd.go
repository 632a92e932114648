package workload

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// connLimits sets small limits for all runtimes of the workload. It accompanies operations that
// need them.
const connLimits = "limits"

// limitSpec is the limits to set.
type limitSpec struct{ receive int }

// applyTo sets the limits.
func (s *limitSpec) applyTo(e *Env) {
	l := &e.Config.Limits
	l.ReceiveMemory = s.receive
	if k := e.World.Kind(); k == world.TwinSoftRoCE || k == world.TwinSIW {
		l.ReceiveMemory *= 8 // there each connection has all its receives from its beginning
	}
}

// connected is how long most connections take.
const connected = 200 * time.Millisecond

// crowdListener is the number of a crowd's listener.
const crowdListener = 5

// drawListenerCrowd draws peers of one listener whose owner retains all messages for a while, so
// that memory runs out. Some of the peers may be gone by then. In addition there are innocent ones,
// whose messages are not retained.
func (w *drawer) drawListenerCrowd() {
	at, from, to := w.drawStart()/2, w.IntN(w.Machines), w.IntN(w.Machines)
	id := idSpec{maxMessage: oneOf(w.Rand, 0, 2<<10, 64<<10, 1<<20), credits: oneOf(w.Rand, 0, 0, 4, 60)}
	w.ops = append(w.ops,
		connOp{verb: connLimits, machine: to, conn: -1, limits: &limitSpec{receive: oneOf(w.Rand, 1<<19, 1<<20+4321, 2<<20)}},
		connOp{verb: connServe, machine: to, conn: -1, serve: &serveSpec{
			number: crowdListener, owner: oneOf(w.Rand, ownLoop, ownOff, ownHandler), id: id,
		}})
	hoard := at + w.upTo(100*time.Second)
	// messages shorter than half a receive are copied
	size, most := oneOf(w.Rand, 1, 34<<10, 60<<10, 64<<10, 1<<20), 20
	switch {
	case id.maxMessage == 2<<10:
		size, most = oneOf(w.Rand, 1, 1100), 60
	case size == 1<<20:
		most = 1
	}
	if n := 10 + w.IntN(10); w.IntN(3) == 0 {
		for i := range n { // come and go
			c := w.drawPeer(from, to, at+w.Time*time.Duration(i)/20, id)
			c.dial.sides[1].hoard = hoard
			w.drawSends(c, 1+w.IntN(min(most, 6)), size, w.Time/20)
			w.ops = append(w.ops, connOp{
				verb: connClose, machine: from, conn: c.conn, at: c.at + 2*connected + w.upTo(w.Time/10), way: w.IntN(64),
			})
		}
	} else {
		for range 3 + w.IntN(4) {
			c := w.drawPeer(from, to, at+w.upTo(w.Time/8), id)
			c.dial.behaved = true
			c.dial.sides[1].hoard = hoard
			w.drawSends(c, 1+w.IntN(most), size, w.Time/2)
		}
	}
	for range 2 {
		c := w.drawPeer(from, to, at+w.upTo(w.Time), id)
		c.dial.behaved, c.dial.innocent = true, true
		for range 3 {
			w.drawSends(c, 1+w.IntN(3), w.IntN(2000), w.Time)
		}
	}
	w.noneHolds()
}

// noneHolds prevents owners from retaining requests until their answers are sent, on devices with
// too little memory for the requests of one connection: the credits that the answers need may be
// behind requests that find no memory, and such owners wait forever (docs/design-fairness.md,
// "Limits of all this"). On other devices each connection has receives for all its credits.
func (w *drawer) noneHolds() {
	if w.Device != world.Embedded && w.Device != world.Twin {
		return
	}
	for _, c := range w.conns {
		for i := range c.dial.sides {
			c.dial.sides[i].hold = false
		}
	}
}

// connHoard releases all hoarded messages of an end.
type connHoard struct{ e *connEnd }

// hoardMessage retains a message until all hoarded messages of its connection are released.
func (o *connOwner) hoardMessage(ctx actor.Context, e *connEnd, m *rdma.Received, n uint64) {
	d := e.c.spec.sides[e.side].hoard - o.h.w.now()
	if d <= 0 {
		return
	}
	if e.hoarded == nil {
		rdma.After(ctx, d, &connHoard{e})
	}
	e.hoarded = append(e.hoarded, o.keepMessage(e, m, n))
}

// mayRetain reports whether owners on the host retain messages.
func (h *connHost) mayRetain() bool {
	return slices.ContainsFunc(h.owners, func(o *connOwner) bool {
		return slices.ContainsFunc(o.kept, func(k *kept) bool { return !k.over })
	})
}

// innocentWithin is the maximum time that a small message takes within its reserved memory, if no
// fault is in its way.
const innocentWithin = 20 * time.Second

// drawPeer draws a connection to a crowd's listener.
func (w *drawer) drawPeer(from, to int, at time.Duration, id idSpec) *connOp {
	op := connOp{verb: connDial, machine: from, conn: len(w.conns), at: at, dial: &dialSpec{
		to: to, listener: crowdListener, owner: ownerKind(w.IntN(int(ownHandler))), id: id,
	}}
	w.conns = append(w.conns, &op)
	w.ops = append(w.ops, op)
	return &op
}

// drawSends draws messages of the dialling side, within a time after it has connected.
func (w *drawer) drawSends(c *connOp, n, bytes int, within time.Duration) {
	w.ops = append(w.ops, connOp{
		verb: connSend, machine: c.machine, conn: c.conn, at: c.at + connected + w.upTo(within),
		n: n, bytes: bytes, way: 8 | w.IntN(64),
	})
}
