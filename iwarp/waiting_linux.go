package iwarp

import (
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// When a connection's next message finds no receive, its socket is not read until there is one
// (core's Waiting). TCP's flow control then stops the peer. Connections that wait for the same
// shared queue are served in the order in which they began to wait. Paused connections are not
// among them.

// keptMax limits roughly how many bytes the waiting connections of a loop may have read and keep.
// While some are kept, reads are shorter. They are never shorter than peekLen, so each connection
// may keep that much in any case.
const keptMax = 2 * stagingLen

// stage returns the part of the staging buffer that the next read may use. rest is how many bytes
// of the current payload are still to come.
func (c *conn) stage(rest int) []byte {
	in := c.in
	most := max(readLeast, turnMessages*c.each)
	if in.kept > 0 {
		most = min(most, max(peekLen, (keptMax-in.kept)/2))
	}
	return in.staging[:min(len(in.staging), rest+most)]
}

// interest returns the events for which the loop watches the socket.
func (c *conn) interest() (ev eventloop.Events) {
	if !c.waits {
		ev = eventloop.Readable
	}
	if c.watched {
		ev |= eventloop.Writable
	}
	return ev
}

// checkWaiting updates c after the core has begun or stopped to wait for a receive.
func (c *conn) checkWaiting() {
	if c.waits == c.core.Waiting() {
		return
	}
	if c.waits = !c.waits; c.waits {
		c.enlist()
		c.loss.extend(c, c.in.loop.Now())
	} else {
		c.delist()
	}
	c.countKept()
	c.watch()
}

// enlist adds c to the connections that wait for a receive of its shared queue.
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

// countKept updates the loop's count of kept bytes with those of c.
func (c *conn) countKept() {
	now := c.core.Kept()
	c.in.kept += now - c.kept
	c.kept = now
}

// waitOver ends c's waiting because its input has ended.
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

// resume lets the waiting message look for a receive again. It does not read the socket: the loop
// does that later, so that no connection's turn is long.
func (c *conn) resume(now time.Time) {
	in := c.in
	if c.phase != phRunning || !c.waits || c.qp == nil {
		return
	}
	q := c.qp
	in.reading, q.served = c, true
	before := in.completed
	c.resumed(now)
	c.countKept()
	if in.completed > before {
		c.loss.extend(c, now)
	}
	if c.core.Waiting() {
		c.enlist()
	}
	c.settle(now)
}

// resumed calls core.Resume with the same precautions as read.
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

// Pause implements verbs.Pauser: it makes the peer's messages wait at their sender, beginning with
// the next one, or lets them continue.
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

// Waiting implements verbs.Pauser: it reports whether a message waits.
func (q *queuePair) Waiting() bool { return q.conn != nil && q.conn.core.Waiting() }

// serve resumes the connections for which receives were posted.
func (in *instance) serve(s *sharedQueue) {
	s.served = false
	now := in.loop.Now()
	for n := s.waiting.n; n > 0 && s.waiting.n > 0; n-- {
		c := s.waiting.oldest
		s.waiting.remove(c)
		if c.resume(now); c.waits && s.q.Len() == 0 && !c.qp.paused {
			return // it has got no receive
		}
	}
}

// resumeAll resumes the connections that are no longer paused.
func (in *instance) resumeAll() {
	list, i := in.resuming, 0
	in.resuming = nil
	// in case the application panics or exits in one of the calls
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

// Ready reports whether there is a receive in the shared queue for q. If the queue is empty, its
// owner is asked for one (OnEmpty). But if other connections wait already, q waits behind them.
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

// Waits reports whether a message can wait because the owner is asked for receives and may post one
// later.
func (q *queuePair) Waits() bool { return q.srq.attr.OnEmpty != nil }

// Take removes the oldest receive and gives it to q.
func (q *queuePair) Take() verbs.RecvWR {
	s := q.srq
	wr := s.q.Pop()
	s.checkLimit()
	return wr
}
