package core

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Deadline returns when Timeout must be called, if at all. That may be in the past. It may change
// with every call of c's methods.
func (c *Conn) Deadline() (time.Time, bool) {
	if c.tx.lost != nil {
		return time.Unix(0, 0), !c.closeNow
	}
	t := earlierTime(earlierTime(c.phaseAt, c.tx.wireAt), c.stallAt())
	return t, !t.IsZero() && !c.closeNow
}

// earlierTime returns the earlier of two times. A zero time means none.
func earlierTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// stallAt returns when a partly received message will have waited too long for its next byte. It is
// zero if there is no such message.
func (c *Conn) stallAt() time.Time {
	if c.state != stOpen && c.state != stFinishing || !c.rx.inMessage() || c.rx.wait.message {
		return time.Time{}
	}
	return c.rx.heardAt.Add(c.cfg.MessageTimeout)
}

// Overdue is true if Timeout would now give up a silent peer, in the set-up or in the middle of a
// message. The owner should first read the socket: if there is input, the owner was slow and not
// the peer.
func (c *Conn) Overdue(now time.Time) bool {
	switch c.state {
	case stReply, stRequest, stAccepted:
		return !c.phaseAt.IsZero() && !now.Before(c.phaseAt)
	case stIdle, stAnswer, stOpen, stFinishing, stEnded:
	}
	return c.isStalled(now)
}

// isStalled reports whether Timeout would give up a peer in the middle of a message.
func (c *Conn) isStalled(now time.Time) bool {
	at := c.stallAt()
	return !at.IsZero() && !now.Before(at)
}

// Timeout acts on the deadlines that have passed at now, if any.
func (c *Conn) Timeout(now time.Time) {
	if f := c.tx.lost; f != nil {
		c.tx.lost = nil
		c.failWithTerminate(now, f)
		return
	}
	if at := c.tx.wireAt; !at.IsZero() && !now.Before(at) {
		c.wireTimeout(now)
	}
	if c.isStalled(now) {
		c.closeNow, c.phaseAt = true, time.Time{}
		c.closeProtocol(&Error{Op: "receive", Errno: unix.ETIMEDOUT, Text: fmt.Sprintf(
			"nothing came for %v in the middle of a message", c.cfg.MessageTimeout)})
	}
	if !c.phaseAt.IsZero() && !now.Before(c.phaseAt) {
		c.phaseTimeout()
	}
}

// silence has the reasons why a peer may not have answered a Request. They cannot be distinguished.
const silence = "the peer is busy, or what listens there does not speak iWARP"

func (c *Conn) phaseTimeout() {
	c.phaseAt = time.Time{}
	c.closeNow = true
	late := &Error{Op: "receive", Errno: unix.ETIMEDOUT}
	switch c.state {
	case stReply:
		late.Op, late.Text = "reply", fmt.Sprintf(
			"TCP is connected, but no Reply came within %v, %d bytes of it: %s", c.cfg.SetupTimeout, len(c.mpa), silence)
		c.reportRejected(nil, late)
	case stRequest:
		late.Op, late.Text = "request", fmt.Sprintf("no complete Request within %v, %d bytes of it", c.cfg.SetupTimeout, len(c.mpa))
		c.closeProtocol(late)
	case stAccepted:
		late.Text = fmt.Sprintf("no sign of life within %v of accepting", c.cfg.SetupTimeout)
		c.closeProtocol(late)
	case stFinishing:
		late.Op, late.Text = "close", fmt.Sprintf("output or the peer's FIN not done within %v", fin)
		c.closeProtocol(late)
	// stEnded: the time for the peer to read the Terminate is over
	case stIdle, stAnswer, stOpen, stEnded:
	}
}
