package iwarp

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// A connection whose next message finds no receive is not read from until there is one (core's
// Waiting), so that TCP stops its peer. Those that wait for one shared queue are served in the
// order in which they have come; one that is paused is not among them.

// keptMax is about how many bytes the connections of a loop may have read beyond the messages that
// wait. While some are kept, reads are shorter, down to peekLen, which each connection may keep in
// any case.
const keptMax = 2 * stagingLen

// stage is how much may be read besides what has a place, rest bytes of which are still to come.
func (c *conn) stage(rest int) []byte {
	in := c.in
	most := max(readLeast, turnMessages*c.each)
	if in.kept > 0 {
		most = min(most, max(peekLen, (keptMax-in.kept)/2))
	}
	return in.staging[:min(len(in.staging), rest+most)]
}

// interest is what the loop watches the socket for.
func (c *conn) interest() (ev eventloop.Events) {
	if !c.waits {
		ev = eventloop.Readable
	}
	if c.watched {
		ev |= eventloop.Writable
	}
	return ev
}

// checkWaiting follows the core, which waits for a receive, or not any more.
func (c *conn) checkWaiting() {
	if c.waits == c.core.Waiting() {
		return
	}
	if c.waits = !c.waits; c.waits {
		c.enlist()
	} else {
		c.delist()
	}
	c.countKept()
	_ = c.reg.Modify(c.interest()) // the fd is open, so this cannot fail
}

// enlist queues c for its shared queue's next receive.
func (c *conn) enlist() {
	if q := c.qp; q != nil && q.srq != nil && !q.paused && !q.srq.waiting.has(c) {
		q.srq.waiting.add(c)
		q.srq.offer()
	}
}

func (c *conn) delist() {
	if q := c.qp; q != nil && q.srq != nil {
		q.srq.waiting.remove(c)
	}
}

// countKept counts what c keeps as one of its loop's.
func (c *conn) countKept() {
	now := c.core.Kept()
	c.in.kept += now - c.kept
	c.kept = now
}

// waitOver forgets that c waits, at the end of its input.
func (c *conn) waitOver() {
	if c.waits {
		c.waits = false
		c.delist()
	}
	if c.kept > 0 {
		c.in.kept -= c.kept
		c.kept = 0
	}
}

// resume lets the message that waits look for a receive again. What the socket has is left for the
// loop to find, so that nobody's turn is long.
func (c *conn) resume(now time.Time) {
	in := c.in
	if c.phase != phRunning || !c.waits || c.qp == nil {
		return
	}
	q := c.qp
	in.reading, q.served = c, true
	c.resumed(now)
	c.countKept()
	if c.core.Waiting() {
		c.enlist()
	}
	c.settle(now)
}

// resumed has the core go on, as read does.
func (c *conn) resumed(now time.Time) {
	left, q := true, c.qp
	defer func() {
		c.in.reading, q.served = nil, false
		if left {
			c.torn()
		}
	}()
	c.core.Resume(now)
	left = false
}

// lost ends a connection that waits and whose socket is broken: the error is all that will be read
// there.
func (c *conn) lost(now time.Time) {
	var err error = unix.ECONNRESET
	if e, _ := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR); e != 0 {
		err = unix.Errno(e)
	}
	c.core.InputEnd(now, err)
}

// Pause has the peer's messages wait at their sender, from the next one on, or come again
// (verbs.Pauser).
func (q *queuePair) Pause(on bool) {
	c := q.conn
	if c == nil || q.paused == on {
		return
	}
	q.paused = on
	c.core.Pause(on)
	switch {
	case on:
		c.delist()
	case c.core.Waiting():
		c.in.resuming = append(c.in.resuming, c)
		c.in.later()
	}
}

// Waiting reports whether a message waits (verbs.Pauser).
func (q *queuePair) Waiting() bool { return q.conn != nil && q.conn.core.Waiting() }

// serve has the connections go on that a receive was posted for.
func (in *instance) serve(s *sharedQueue) {
	s.served = false
	now := in.loop.Now()
	for n := s.waiting.n; n > 0 && s.waiting.n > 0; n-- {
		c := s.waiting.oldest
		s.waiting.remove(c)
		if c.resume(now); c.waits && s.q.Len() == 0 && !c.qp.paused {
			return // there was no receive for it
		}
	}
}

// resumeAll has those go on that are not paused any more.
func (in *instance) resumeAll() {
	list, i := in.resuming, 0
	in.resuming = nil
	// when the application does not return from one's
	defer func() { in.resuming = append(in.resuming, list[i:]...) }()
	now := in.loop.Now()
	for i < len(list) {
		c := list[i]
		i++
		if c.qp != nil && !c.qp.paused {
			c.resume(now)
		}
	}
}

// Ready is true if there is a receive in the shared queue for q. Its owner is asked when it is
// empty, unless others wait already: then q waits behind them.
func (q *queuePair) Ready() bool {
	s := q.srq
	if s.waiting.n > 0 && !q.served {
		return false
	}
	if s.q.Len() == 0 && s.attr.OnEmpty != nil {
		s.attr.OnEmpty(q)
	}
	return s.q.Len() > 0
}

// Waits says that an owner who is asked for receives may post one later.
func (q *queuePair) Waits() bool { return q.srq.attr.OnEmpty != nil }

// Take gives q the oldest receive.
func (q *queuePair) Take() verbs.RecvWR {
	s := q.srq
	wr := s.q.Pop()
	s.checkLimit()
	return wr
}
