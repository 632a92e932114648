package iwarp

import (
	"time"

	"golang.org/x/sys/unix"
)

// A connection is lost when its socket has an error. Linux still delivers the data that had
// arrived, and then the error. Messages in that data may have to wait for receives. So a lost
// connection sends nothing, and is read to its end, as after a FIN. The messages wait for
// UserTimeout, which restarts with each that is received. Without this limit an owner that keeps
// the receives until the peer has answered would never learn of the peer's end.

// loss describes how a connection was lost.
type loss struct {
	err    error     // of the write that detected it; nil: still in the socket
	until  time.Time // if a message waits: when the connection is given up
	parked bool      // the loop does not watch the socket
}

// handleLoss records an error of the socket that the loop has reported (nil), or a failed write.
func (c *conn) handleLoss(now time.Time, err error) {
	if c.loss == nil {
		c.loss = new(loss)
		if err != unix.EPIPE { // which follows the peer's FIN: the end of the stream was orderly
			c.loss.err = err
		}
		c.blocked, c.watched = true, false
		c.loss.extendWait(c, now)
	}
	c.updateWatch()
}

// extendWait restarts the time for which a message may wait.
func (l *loss) extendWait(c *conn, now time.Time) {
	if l != nil {
		l.until = now.Add(c.in.cfg.UserTimeout)
	}
}

// updateWatch makes the loop watch the socket for c.events. While a message waits, the loop does
// not watch a lost connection, because epoll always reports errors.
func (c *conn) updateWatch() {
	l := c.loss
	switch {
	case l == nil || !c.waits && !l.parked:
		_ = c.reg.Modify(c.events()) // the fd is open, so this cannot fail
	case c.waits:
		l.parked = true
		_ = c.reg.Remove() // as above
	default:
		reg, err := c.in.loop.Add(c.fd, c.events(), c)
		if err != nil { // the system has no memory for it
			l.until = c.in.loop.Now() // the timer reads the socket instead
			return
		}
		c.reg, l.parked = reg, false
	}
}

// lossTimeout gives up a lost connection whose message has waited for too long.
func (c *conn) lossTimeout(now time.Time) {
	switch l := c.loss; {
	case l == nil || now.Before(l.until):
	case c.waits:
		c.core.InputEnd(now, c.lossCause())
	case !c.core.Waiting():
		c.readInput()
	}
}

// lossCause returns the error of a lost connection that is not read to its end.
func (c *conn) lossCause() error {
	if c.loss.err != nil {
		return c.loss.err
	}
	if err := c.in.sockError(c.fd); err != nil {
		return err
	}
	return unix.ECONNRESET
}

// streamEnd returns the meaning of the end of the stream: nil for an orderly end. A socket reports
// an error once, and then the end of the stream. So a write may already have consumed the error.
func (l *loss) streamEnd() error {
	if l != nil {
		return l.err
	}
	return nil
}
