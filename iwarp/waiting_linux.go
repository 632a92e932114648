package iwarp

import "time"

// When a connection's next message finds no receive, the core returns (core's Waiting), and the
// connection joins those that wait for a receive of its queue. deliverReports serves them in the
// order in which they began to wait: after it has notified of completions it asks the owner of an
// empty queue for a receive (OnEmpty), and lets the oldest go on if there is one. If a message
// still waits then, its socket is not read, and TCP's flow control stops the peer. Paused
// connections are not among those that wait.

// keptMax limits roughly how many bytes the waiting connections of a loop may have read and keep.
// While some are kept, reads are shorter. They are never shorter than peekLen, so each connection
// may keep that much in any case.
const keptMax = 2 * inputLen

// inflow relates what a connection reads to the receives that it has.
type inflow struct {
	each      int // bytes per message of the last read that completed any
	kept      int // memory for what was read behind the message that waits
	completed int // completions, and the further messages in them
}

// inputBuffer returns the part of the input buffer that the next read may use. rest is how many
// bytes of the current payload are still to come.
func (c *conn) inputBuffer(rest int) []byte {
	in := c.in
	most := max(readLeast, turnMessages*c.each)
	if in.kept > 0 {
		most = min(most, max(peekLen, (keptMax-in.kept)/2))
	}
	return in.input[:min(len(in.input), rest+most)]
}

// stopReading ends the reading of c's socket if a message still waits.
func (c *conn) stopReading() {
	if c.in.keepInput(); !c.core.Waiting() {
		return
	}
	c.waits = true
	c.loss.extendWait(c, c.in.loop.Now())
	c.updateWatch()
}

// checkWaiting updates c if no message waits any longer.
func (c *conn) checkWaiting() {
	if c.core.Waiting() {
		return
	}
	c.removeWaiting()
	if c.waits {
		c.waits = false
		c.countKept()
		c.updateWatch()
	}
}

// addWaiting adds c, whose message waits, to the connections that wait for a receive of its shared
// queue.
func (c *conn) addWaiting() {
	if q := c.qp; q != nil && q.srq != nil && !q.paused && !q.srq.waiting.has(c) {
		q.srq.waiting.add(c)
		q.srq.scheduleServe()
	}
}

// removeWaiting removes c from these connections. The next one may be asked for then.
func (c *conn) removeWaiting() {
	if q := c.qp; q != nil && q.srq != nil && q.srq.waiting.remove(c) {
		if q.srq.asked == c {
			q.srq.asked = nil
		}
		q.srq.scheduleServe()
	}
}

// keepInput copies what a connection whose message waits has in the input buffer.
func (in *instance) keepInput() {
	if c := in.unkept; c != nil {
		in.unkept = nil
		c.core.Keep()
		c.countKept()
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
	c.waits = false
	c.removeWaiting()
	if c.kept > 0 {
		c.in.kept -= c.kept
		c.kept = 0
	}
}

// resumeMessage lets the waiting message take a receive, if there is one now. It does not read the
// socket: the loop does that later, so that no connection's turn is long.
func (c *conn) resumeMessage(now time.Time) {
	before := c.completed
	c.core.Resume(now)
	c.countKept()
	if c.completed > before {
		c.loss.extendWait(c, now)
	}
	c.removeWaiting()
	if c.core.Waiting() {
		c.addWaiting()
	}
	c.applyCoreState(now)
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
		c.removeWaiting()
	case !c.core.Waiting():
	case q.srq != nil && q.WaitsIfEmpty():
		c.addWaiting()
	default: // what finds no receive now ends the connection
		c.resumeMessage(c.in.loop.Now())
	}
}

// Waiting implements verbs.Pauser: it reports whether a message waits.
func (q *queuePair) Waiting() bool { return q.conn != nil && q.conn.core.Waiting() }

// Contained implements verbs.Pauser.
func (q *queuePair) Contained(n int) {
	if q.conn != nil {
		q.conn.completed += n - 1
	}
}

// scheduleServe schedules serveWaiting for the connections that wait for a receive of s.
func (s *sharedQueue) scheduleServe() {
	if in := s.dev.in; s.waiting.n > 0 && !s.scheduled {
		s.scheduled = true
		in.serving = append(in.serving, s)
		in.deferRun()
	}
}

// serveWaiting does one step for the connections that wait for a receive of s: it lets the one that
// has waited longest go on, or asks the owner for a receive, once for each connection.
func (in *instance) serveWaiting(s *sharedQueue) {
	s.scheduled = false
	switch c := s.waiting.oldest; {
	case c == nil:
	case s.q.Len() > 0:
		c.resumeMessage(in.loop.Now())
	case s.asked != c:
		s.asked = c
		s.scheduleServe() // also if OnEmpty panics
		s.attr.OnEmpty(c.qp)
	}
}
