package iwarp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// sendFIN sends a FIN.
func (c *conn) sendFIN() {
	if t := c.currentTap(); t != nil {
		t.addEnd(c, false, false)
	}
	_ = c.in.sys.Shutdown(c.fd, unix.SHUT_WR) // ENOTCONN: a reset came first, and will be read
}

// abort immediately ends the protocol, in any phase. Posted work is written as far as the socket
// accepts it. A connection in set-up ends as MPA requires: see core.Conn.Abort.
func (c *conn) abort(now time.Time) {
	if c.phase == phConnecting && c.in.tcpConnected(c.fd) {
		// the peer has already accepted the connection: a reset would kill a listener of soft-iWARP
		c.beginMPA(now)
	}
	switch c.phase {
	case phIdle, phClosed:
		c.core.Abort(now)
	case phConnecting:
		c.connectFailed(now, fmt.Errorf("iwarp: connect: queue pair destroyed: %w", unix.ECONNABORTED))
	case phRunning:
		if c.over { // a Terminate or a rejecting Reply is still on its way
			return
		}
		c.writeOutput(now)
		c.core.Abort(now)
		c.writeOutput(now)
		if _, closeNow := c.core.WantClose(); closeNow && c.established && c.loss == nil {
			c.lingerOn(now)
		}
		c.applyCoreState(now)
	case phDiscarding:
	}
}

// lingerOn sends a FIN and discards later input. If the socket were closed with unread bytes, TCP
// would send a reset, and the peer could lose data that it has not read yet.
func (c *conn) lingerOn(now time.Time) {
	c.phase, c.blocked, c.watched = phDiscarding, false, false
	c.waitOver()
	c.sendFIN()
	_ = c.reg.Modify(c.events())
	c.timer.stop()
	c.timer.arm(c, now, now.Add(c.in.cfg.LingerTimeout))
}

// discardInput reads until the peer's FIN.
func (c *conn) discardInput() {
	c.in.keepInput()
	for range readRounds {
		n, err := c.in.sys.Recv(c.fd, c.in.input)
		if t := c.currentTap(); t != nil && n > 0 {
			t.addRead(c, n, [][]byte{c.in.input})
		}
		switch {
		case err == unix.EAGAIN:
			return
		case err == unix.EINTR:
		case err != nil || n == 0:
			c.captureEnd(err)
			c.close()
			return
		case n < len(c.in.input):
			return
		}
	}
}

// identDestroyed aborts c, whose identifier is destroyed.
func (c *conn) identDestroyed(now time.Time) {
	c.id = nil
	c.abort(now)
	if c.qp != nil {
		c.qp.detachConn()
	}
	if c.fd >= 0 {
		c.in.lingers.push(c, c.in.cfg.MaxLinger)
	}
}
