package core

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Deadline returns when Timeout must be called, if at all. That may be in the past. It may change
// with every call of c's methods.
func (c *Conn) Deadline() (time.Time, bool) {
	if c.stream.served.lost != nil {
		return time.Unix(0, 0), !c.closeNow
	}
	t := earlierTime(earlierTime(c.phaseAt, c.pacing.at), c.stallAt())
	return t, !t.IsZero() && !c.closeNow
}

// earlierTime returns the earlier of two times. A zero time means none.
func earlierTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isDue reports whether a time has come. A zero time means none.
func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// inMessage reports whether the input is in the middle of a message.
func (c *Conn) inMessage() bool { return c.in.seg.have > 0 || c.stream.inMessage() }

// stallAt returns when a partly received message will have waited too long for its next byte. It is
// zero if there is no such message.
func (c *Conn) stallAt() time.Time {
	if c.state != stOpen && c.state != stFinishing || !c.inMessage() || c.in.waits {
		return time.Time{}
	}
	return c.in.heardAt.Add(c.in.timeout)
}

// Overdue is true if Timeout would now give up a silent peer, in the set-up or in the middle of a
// message. The owner should first read the socket: if there is input, the owner was slow and not
// the peer.
func (c *Conn) Overdue(now time.Time) bool {
	switch c.state {
	case stReply, stRequest, stAccepted:
		return isDue(c.phaseAt, now)
	case stIdle, stAnswer, stOpen, stFinishing, stEnded:
	}
	return isDue(c.stallAt(), now)
}

// Timeout acts on the deadlines that have passed at now, if any.
func (c *Conn) Timeout(now time.Time) {
	if f := c.stream.served.lost; f != nil {
		c.stream.served.lost = nil
		c.failWithTerminate(now, f)
		return
	}
	c.pacing.timeout(now)
	if isDue(c.stallAt(), now) {
		c.closeSocket()
		c.closeProtocol(&Error{Op: "receive", Errno: unix.ETIMEDOUT, Text: fmt.Sprintf(
			"nothing came for %v in the middle of a message", c.in.timeout)})
	}
	if isDue(c.phaseAt, now) {
		c.phaseTimeout()
	}
}

// silence has the reasons why a peer may not have answered a Request. They cannot be distinguished.
const silence = "the peer is busy, or what listens there does not speak iWARP"

func (c *Conn) phaseTimeout() {
	c.closeSocket()
	late := &Error{Op: "receive", Errno: unix.ETIMEDOUT}
	switch c.state {
	case stReply:
		late.Op, late.Text = "reply", fmt.Sprintf(
			"TCP is connected, but no Reply came within %v, %d bytes of it: %s", c.setup.timeout, len(c.setup.frame), silence)
		c.reportRejected(nil, late)
	case stRequest:
		late.Op, late.Text = "request", fmt.Sprintf("no complete Request within %v, %d bytes of it", c.setup.timeout, len(c.setup.frame))
		c.closeProtocol(late)
	case stAccepted:
		late.Text = fmt.Sprintf("no sign of life within %v of accepting", c.setup.timeout)
		c.closeProtocol(late)
	case stFinishing:
		late.Op, late.Text = "close", fmt.Sprintf("output or the peer's FIN not done within %v", fin)
		c.closeProtocol(late)
	// stEnded: the time for the peer to read the Terminate is over
	case stIdle, stAnswer, stOpen, stEnded:
	}
}
