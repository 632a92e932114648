package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
)

// conn is a connection, from its dial on.
type conn struct {
	w       *connections
	number  int
	machine int // the dialling one
	spec    *dialSpec
	ends    [2]*connEnd
	behaved []*oracle.Behaved // its directions, if it behaves and is established
	ending  bool              // an operation may end it
	rude    bool              // without a goodbye
	forged  bool              // a key was used that its peer has not granted
}

func newConn(w *connections, op connOp) *conn {
	return &conn{w: w, number: op.conn, machine: op.machine, spec: op.dial}
}

// privateData returns the private data of a dial: its number plus one, which cannot be mistaken for
// InfiniBand's padding of zeros.
func (c *conn) privateData() []byte { return []byte{byte((c.number + 1) >> 8), byte(c.number + 1)} }

// findDialled returns the connection with that private data; nil: none.
func (w *connections) findDialled(private []byte) *conn {
	if len(private) < 2 {
		return nil
	}
	return w.conns[int(private[0])<<8|int(private[1])-1]
}

// connEnd is one of its ends: an identifier.
type connEnd struct {
	c    *conn
	side int
	h    *connHost
	o    *connOwner
	id   *actor.PID
	key  string
	out  *oracle.Direction // messages that it sends
	of   *connEnd          // the end that it replaces; nil: none

	dial    *oracle.Question // dial of its owner
	dialled *rdma.Dial

	established bool
	ended       bool // Disconnected or DeviceRemoval was sent
	closed      bool
	dead        bool          // its process was killed
	full        bool          // a Send found a full queue, and there was no Writable since
	max         int           // maximum length of messages to the peer
	credits     int           // messages that the peer may have under way
	long        int           // messages that were retained for long
	stood       time.Duration // maximum delay caused by retained messages
	seen        int           // received messages, to select the action for each

	manual  bool
	heirs   map[rdma.Command]*connOwner // keyed by Handover
	arrived []arrival                   // messages that an owner has not received yet
	pumping *pumping
	hoarded []*kept // until the hoard is released
	clerk   *actor.PID
	memory  connMemories
}

// newEnd creates an end. A repeated request replaces the first. Which of the two belongs to the
// older attempt is known later: see recordEstablished and restoreReplaced.
func (c *conn) newEnd(side int, h *connHost, o *connOwner, id *actor.PID) *connEnd {
	e := &connEnd{c: c, side: side, h: h, o: o, id: id, key: keyOf(h.p, id)}
	e.out = c.w.messages.Direction(fmt.Sprintf("connection %d from side %d (%s)", c.number, side, e.key))
	e.clerk = h.newClerk(e, "clerk", nil)
	e.memory.after = make(map[uint64]*oracle.Write)
	if e.credits = c.idOf(side).credits; e.credits == 0 {
		e.credits = 32
	}
	e.of, c.ends[side] = c.ends[side], e
	h.ends[id.GetId()] = e
	o.ends, o.ids = append(o.ends, e), append(o.ids, e.key)
	return e
}

// idOf returns the settings of an end.
func (c *conn) idOf(side int) idSpec {
	if side == 0 {
		return c.spec.id
	}
	for _, op := range c.w.hosts[c.spec.to].ops {
		if op.verb == connServe && op.serve.number == c.spec.listener {
			return op.serve.id
		}
	}
	return idSpec{}
}

// otherEnd returns the other end; nil: there is none yet.
func (e *connEnd) otherEnd() *connEnd { return e.c.ends[1-e.side] }

// isUp reports whether both ends are established.
func (c *conn) isUp() bool {
	for _, e := range c.ends {
		if e == nil || !e.established || e.ended || e.closed || e.dead {
			return false
		}
	}
	return true
}

// listOutstanding lists expected events.
func (c *conn) listOutstanding() (all []string) {
	for _, e := range c.ends {
		switch {
		case e == nil || e.closed || e.dead:
		case c.isUp() && c.forged && e.side == 0:
			all = append(all, fmt.Sprintf("the end of connection %d, on which a forged key was used", c.number))
		case c.isUp():
			if n := e.out.Outstanding(); n > 0 {
				all = append(all, fmt.Sprintf("%d messages of connection %d from side %d", n, c.number, e.side))
			} else if e.full {
				all = append(all, fmt.Sprintf("the Writable of connection %d at side %d", c.number, e.side))
			}
		case !e.established && e.side == 0 && e.o.stopped == nil && e.dial == nil && c.spec.way == dialOwner:
		default:
			all = append(all, fmt.Sprintf("the end of connection %d at side %d", c.number, e.side))
		}
	}
	return all
}

// recordEstablished records that an end is established.
func (e *connEnd) recordEstablished(ev *rdma.Established) {
	if e.established {
		return
	}
	e.established, e.max = true, ev.MaxMessage
	if !e.c.ends[e.side].established {
		e.c.ends[e.side] = e
	}
	if c := e.c; c.spec.behaved && c.isUp() && len(c.behaved) == 0 {
		ledger := &c.w.isolated
		if c.spec.innocent {
			ledger = &c.w.floor
		}
		for side := range c.ends {
			c.behaved = append(c.behaved, ledger.Behaved(fmt.Sprintf("connection %d from side %d", c.number, side)))
		}
		c.excuseFaults()
	}
}

// restoreReplaced restores an established end that this one, which was never established, had
// replaced.
func (e *connEnd) restoreReplaced() {
	if of := e.of; of != nil && !e.established && of.established && !of.closed && e.c.ends[e.side] == e {
		e.c.ends[e.side] = of
	}
}

// isDisturbed reports whether a fault or an attack may have hit it.
func (c *conn) isDisturbed() bool { return c.w.e.DisturbedTo(c.spec.listener, c.machine, c.spec.to) }

// excuseFaults excuses a connection that a fault may have hit.
func (c *conn) excuseFaults() {
	if c.ending || c.isDisturbed() {
		for _, b := range c.behaved {
			b.Excuse()
		}
	}
}

// countExpected and countReceived count the messages that a well-behaved side waits for.
func (e *connEnd) countExpected(n int) {
	if len(e.c.behaved) > 0 {
		e.c.behaved[e.side].Wants(e.c.w.now(), n)
	}
}

func (e *connEnd) countReceived(n int) {
	if len(e.c.behaved) > 0 {
		e.c.excuseFaults()
		e.c.behaved[e.side].Gets(e.c.w.now(), n)
	}
}

// handleEnd handles the end of the connection, as reported by one of its ends.
func (e *connEnd) handleEnd(why error) {
	if e.ended || e.dead {
		return
	}
	e.ended = true
	c, p := e.c, e.otherEnd()
	c.excuseFaults()
	for _, b := range c.behaved {
		b.Ended(c.w.now(), fmt.Sprintf("%s gets %s", e.key, rdma.Brief(why)))
	}
	lost := errors.Is(why, rdma.ErrPeerLost)
	if lost && p != nil && p.established && !c.rude && !c.isDisturbed() {
		c.w.e.failWorld("%s has lost its peer, which was never cut off and says goodbye: %v", e.key, why)
	}
	// a rejected request was no connection, although its sender was killed
	if why == nil && e.established && !c.ending && p != nil && p.dead {
		c.w.e.failWorld("the peer of %s was killed, and the end looks orderly", e.key)
	}
	c.ending = true
}

// judgeMessages judges the messages after the shutdown.
func (c *conn) judgeMessages() {
	for _, e := range c.ends {
		if e != nil && !e.dead {
			e.out.End(c.w.now(), false)
		}
	}
}

// leavesInTime is how many bytes leave within half a second, through the smallest sockets and over
// the slowest network without a fault.
const leavesInTime = 16 << 10

// closeConn ends a connection.
func (e *connEnd) closeConn(op connOp) {
	e.lastWords(op)
	e.c.ending = true
	waits := e.out.Outstanding() > 0 && e.c.spec.sides[1-e.side].isSlow()
	if p := e.otherEnd(); waits || e.c.spec.sides[1].hoard > 0 || p != nil && p.h.mayRetain() {
		e.c.rude = true // its goodbye may wait behind messages, and be abandoned
	}
	e.c.excuseFaults()
	switch op.way % 6 {
	case 0, 1:
		e.h.sendCommand(e.id, &rdma.Close{}, nil)
	case 2, 3:
		if e.out.Bytes() > leavesInTime {
			e.c.rude = true // its goodbye waits for half a second, and no longer
		}
		e.h.sendCommand(e.id, [...]rdma.Command{&rdma.Disconnect{}, &rdma.DestroyID{}}[op.way%6-2], nil)
	case 4:
		e.c.rude = true // its goodbye may not leave
		e.h.root.Stop(e.id)
	case 5:
		e.h.root.Poison(e.id)
	}
}

// stopOwner stops the owner, or makes it panic.
func (e *connEnd) stopOwner(op connOp) {
	for _, o := range e.o.ends {
		if o.c.spec.behaved {
			return
		}
	}
	if op.way%3 == 0 && !e.o.handler {
		e.h.root.Send(e.o.pid, &connDo{func(actor.Context) { panic(errPlanned) }})
		return
	}
	for _, o := range e.o.ends {
		o.c.ending = true
	}
	if op.way%3 == 1 {
		e.h.root.Poison(e.o.pid)
		return
	}
	e.h.root.Stop(e.o.pid)
}

// sendIllegal sends commands that are not legal in the present state.
func (e *connEnd) sendIllegal(op connOp) {
	e.c.ending, e.c.w.stray = true, true
	e.c.excuseFaults()
	for i := range 1 + op.way%3 {
		var cmd rdma.Command
		switch (op.way/3 + i) % 9 {
		case 0:
			cmd = &rdma.Accept{}
		case 1:
			cmd = &rdma.Connect{}
		case 2:
			cmd = &rdma.Listen{}
		case 3:
			cmd = (*cmid.Disconnect)(nil)
		case 4:
			cmd = &rdma.Listen{}
			if e.established { // otherwise it might overtake the planned one
				cmd = &rdma.Dial{Addr: e.h.w.e.Addr(e.h.machine, 0)}
			}
		case 5:
			cmd = &rdma.Grant{}
		case 6:
			cmd = &rdma.Reject{}
		case 7:
			e.handTo(e.o)
			continue
		case 8:
			cmd = &rdma.Disconnect{}
		}
		e.h.sendCommand(e.id, cmd, nil)
	}
}

// askAndWait dials on a goroutine that waits.
func (h *connHost) askAndWait(e *connEnd, d *rdma.Dial) {
	p, rt, busy := h.p, h.rt, h.busy // after a crash the host's fields belong to another process
	q := h.w.ids.Asked(h.w.now(), e.key, "dial that is waited for")
	*busy++
	p.Go(func() {
		defer func() { *busy-- }()
		ctx := context.Background()
		if e.c.spec.way == dialCancel {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, e.c.spec.timeout)
			defer cancel()
			e.c.ending = true
		}
		_, err := rdma.Ask[*rdma.Established](ctx, rt, e.id, d)
		h.w.ids.Answered(h.w.now(), q, rdma.Brief(err))
		h.w.e.World.Trace("%s: the dial of %s has returned, with an error: %v", p.Name(), e.key, err != nil)
	})
}
