package rdmanet

import (
	"errors"
	"math"
	"net"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A stream ends as one of TCP's does. Close sends a FIN behind what was written, and the connection
// lingers until the peer has taken that. But a side that has closed reads nothing more. So bytes of
// the peer's that nobody has read, or that come now, are lost. The peer must learn of it, so the
// connection is reset (RFC 9293, 3.6.1). A reset ends the connection at once. Its peer gets no FIN,
// unless that has gone already, and nothing of what has found no room yet.

// errLost is why a stream is reset when its peer has sent what nobody will read.
var errLost = errors.New("the peer has sent bytes that nobody reads any more")

// CloseWrite sends a FIN: the peer reads io.EOF behind everything that was written. Reading goes
// on. It does not block.
func (c *Conn) CloseWrite() error {
	c.wr.mu.Lock()
	defer c.wr.mu.Unlock()
	switch {
	case c.wr.closed:
		return c.opError("close", net.ErrClosed)
	case c.wr.err != nil && !errors.Is(c.wr.err, unix.EPIPE):
		return c.opError("close", c.wr.err)
	}
	c.wr.finishLocked()
	return nil
}

// CloseRead has Read return io.EOF, and drops what comes from the peer. The peer is not notified
// until this side has called CloseWrite too. Then what comes resets the connection, as behind
// Close.
func (c *Conn) CloseRead() error {
	c.rd.mu.Lock()
	defer c.rd.mu.Unlock()
	if c.rd.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.rd.shut = true
	c.rd.discardLocked()
	c.rd.signalLocked()
	return nil
}

// SetLinger says what Close does with what was written and has not arrived, as net.TCPConn's does:
// with sec < 0 it is what Config.Linger says, as it is without SetLinger; with 0 it is
// dropped, and the connection reset; with sec > 0 it is delivered for so many seconds. Close does
// not block in any case.
func (c *Conn) SetLinger(sec int) error {
	c.wr.mu.Lock()
	defer c.wr.mu.Unlock()
	switch {
	case c.wr.closed:
		return c.opError("set", net.ErrClosed)
	case sec < 0:
		c.wr.linger = c.wr.byDefault
	default:
		c.wr.linger = time.Duration(min(sec, math.MaxInt32)) * time.Second
	}
	return nil
}

// Close ends the stream, as TCP's does. Calls that block return net.ErrClosed. What was written
// goes to the peer still, with a FIN behind it, for as long as Config.Linger or SetLinger says. But
// where there are bytes of the peer's that were not read, and as soon as there are any, the
// connection is reset: the peer's Write says EPIPE or ECONNRESET, and its Read ECONNRESET where the
// FIN has not come. It does not block: Runtime.Shutdown is what waits for connections that linger.
func (c *Conn) Close() error {
	unread, ok := c.close()
	if !ok {
		return c.opError("close", net.ErrClosed)
	}
	c.wr.mu.Lock()
	defer c.wr.mu.Unlock()
	if unread || c.wr.linger <= 0 {
		c.wr.resetLocked()
	}
	c.wr.finishLocked()
	if !c.wr.endedLocked() {
		c.wr.rt.System().Root.Send(c.wr.id, &rdma.Close{Timeout: c.wr.linger})
	}
	return nil
}

// close ends both halves for whoever calls them. Not ok: they were closed before.
func (c *Conn) close() (unread, ok bool) {
	c.wr.mu.Lock()
	c.wr.closeLocked() // before the reader: see unwanted
	c.wr.mu.Unlock()
	c.rd.mu.Lock()
	defer c.rd.mu.Unlock()
	ok, unread = !c.rd.closed, c.rd.unreadLocked()
	c.rd.closeLocked()
	c.rd.discardLocked()
	return unread, ok
}

// unwanted takes note of bytes that nobody will read. The loop's.
func (c *Conn) unwanted() {
	c.wr.mu.Lock()
	over := c.wr.closed || c.wr.fin
	c.wr.mu.Unlock()
	if over {
		c.abort(reset(errLost))
	}
}

// abort ends a stream at once: Read and Write of both sides return ECONNRESET.
func (c *Conn) abort(err error) {
	c.rd.end(err)
	c.wr.mu.Lock()
	c.wr.resetLocked()
	c.wr.mu.Unlock()
	c.wr.end(err)
}

// discard ends a stream that nobody will use.
func (c *Conn) discard() {
	c.close()
	c.abort(net.ErrClosed)
}
