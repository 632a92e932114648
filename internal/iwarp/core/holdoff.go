package core

import "time"

const kicksOver = 4

// kickAfter are the pauses before the kicks: 2, 20 and 200 ms after the first FPDU.
var kickAfter = [...]time.Duration{2 * time.Millisecond, 18 * time.Millisecond, 180 * time.Millisecond}

// armKick starts the kick timer with the first FPDU of an initiator. siw's responder can miss an
// FPDU that comes while it installs its receive callback, and looks again when more bytes come.
func (c *Conn) armKick(now time.Time) {
	if c.cfg.Initiator && c.tx.kicks == 0 && c.state == stOpen {
		c.tx.kicks = 1
		c.tx.wireAt = now.Add(kickAfter[0])
	}
}

// HoldOver is true when Timeout would end a responder's pause behind its Reply. See whether the
// peer has acknowledged that, else HoldOn.
func (c *Conn) HoldOver(now time.Time) bool {
	at := c.tx.wireAt
	return !c.cfg.Initiator && !at.IsZero() && !now.Before(at)
}

// HoldOn reports that the peer has not acknowledged the Reply. Bytes sent now would arrive together
// with the retransmitted Reply, so a whole new pause begins.
func (c *Conn) HoldOn(now time.Time) {
	c.tx.wireAt, c.tx.late = now.Add(holdOff), true
}

// wireTimeout ends the hold-off, or kicks.
func (c *Conn) wireTimeout(now time.Time) {
	c.tx.wireAt = time.Time{}
	switch {
	case c.cfg.Initiator:
	case c.tx.late: // the peer may have the Reply since just now
		c.tx.wireAt, c.tx.late = now.Add(holdOff), false
		return
	default:
		c.tx.waits = false
		return
	}
	c.tx.ctl |= ctlWrite
	if int(c.tx.kicks) < len(kickAfter) {
		c.tx.wireAt = now.Add(kickAfter[c.tx.kicks])
	}
	c.tx.kicks++
}

// noteFPDU records that a correct FPDU arrived, which shows that the peer works.
func (c *Conn) noteFPDU() {
	if c.cfg.Initiator {
		if c.tx.kicks != kicksOver {
			if c.tx.kicks > 0 {
				c.tx.ctl &^= ctlWrite
			}
			c.tx.kicks, c.tx.wireAt = kicksOver, time.Time{}
		}
		return
	}
	if c.tx.waits {
		c.tx.waits, c.tx.wireAt = false, time.Time{}
	}
	if c.state == stAccepted {
		c.reportEstablished(nil)
	}
}
