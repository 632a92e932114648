package core

import (
	"bytes"
	"time"
)

// Waiting is true while a message waits for a receive. Then do not read from the socket. Call
// Resume when there may be a receive.
func (c *Conn) Waiting() bool { return c.rx.wait.message }

// Resume goes on with the waiting message if there is a receive now. Afterwards that message may
// still wait, or a later one.
func (c *Conn) Resume(now time.Time) {
	r := &c.rx
	if !r.wait.message || c.closeNow || r.wait.paused {
		return
	}
	r.wait.message = false
	if c.headerReceived(now); r.wait.message {
		return
	}
	r.heardAt = now
	c.processInput(now, r.rest)
	if int(r.owned) > 2*len(r.rest) { // do not keep much memory for bytes that were consumed
		r.owned = 0
		c.Keep()
	}
}

// Keep lets the message wait for longer. It copies the bytes that Input or Landed left unprocessed,
// so that their memory may be reused before Resume. After Disconnect no receives are posted, so
// Keep drops the message and all input up to the peer's FIN.
func (c *Conn) Keep() {
	switch r := &c.rx; {
	case r.wait.message && c.state == stFinishing:
		c.discardInput()
	case r.owned == 0 && len(r.rest) > 0:
		r.rest = bytes.Clone(r.rest)
		r.owned = uint32(cap(r.rest)) // of one read
	}
}

// Kept returns how much memory Keep uses now.
func (c *Conn) Kept() int { return int(c.rx.owned) }

// Pause(true) makes messages wait, beginning with the next one, as if there were no receive.
// Pause(false) ends that; then call Resume. A message that has begun is finished. Reads and Writes
// go on unless they are behind a message that waits. Sending goes on.
func (c *Conn) Pause(on bool) { c.rx.wait.paused = on }

// mustWait reports whether the message that now begins has to wait.
func (c *Conn) mustWait() bool {
	return c.rx.wait.paused || c.cfg.SRQ != nil && c.cfg.SRQ.WaitsIfEmpty() && !c.cfg.SRQ.HasRecv()
}

// letWait makes the message wait whose header has just arrived.
func (c *Conn) letWait() {
	c.rx.wait.message = true
	c.noteFPDU()
}

// discardInput drops all input up to the peer's FIN.
func (c *Conn) discardInput() {
	c.rx.wait, c.rx.rest, c.rx.owned = waiting{deaf: true}, nil, 0
	c.rx.have, c.rx.need, c.rx.phase, c.rx.tag = 0, headLen, phHead, tagged{}
}
