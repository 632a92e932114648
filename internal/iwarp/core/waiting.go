package core

import (
	"bytes"
	"time"
)

// Waiting is true while a message waits for a receive. Then do not read from the socket. Call
// Resume when there may be a receive.
func (c *Conn) Waiting() bool { return c.in.waits }

// Resume goes on with the waiting message if there is a receive now. Afterwards that message may
// still wait, or a later one.
func (c *Conn) Resume(now time.Time) {
	in := &c.in
	if !in.waits || c.closeNow || c.stream.receives.paused {
		return
	}
	in.waits = false
	if c.headerReceived(now); in.waits {
		return
	}
	in.heardAt = now
	c.processInput(now, in.rest)
	if int(in.owned) > 2*len(in.rest) { // do not keep much memory for bytes that were consumed
		in.owned = 0
		c.Keep()
	}
}

// Keep lets the message wait for longer. It copies the bytes that Input or Landed left unprocessed,
// so that their memory may be reused before Resume. After Disconnect no receives are posted, so
// Keep drops the message and all input up to the peer's FIN.
func (c *Conn) Keep() {
	switch in := &c.in; {
	case in.waits && c.state == stFinishing:
		in.discard()
		c.stream.tagged = tagged{}
	case in.owned == 0 && len(in.rest) > 0:
		in.rest = bytes.Clone(in.rest)
		in.owned = uint32(cap(in.rest)) // of one read
	}
}

// Kept returns how much memory Keep uses now.
func (c *Conn) Kept() int { return int(c.in.owned) }

// Pause(true) makes messages wait, beginning with the next one, as if there were no receive.
// Pause(false) ends that; then call Resume. A message that has begun is finished. Reads and Writes
// go on unless they are behind a message that waits. Sending goes on.
func (c *Conn) Pause(on bool) { c.stream.receives.paused = on }
