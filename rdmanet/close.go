package rdmanet

import (
	"errors"
	"math"
	"net"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A stream ends as one of TCP's does. Close sends a FIN behind what was written, and the
// connection lingers until the peer has taken that. But a side that has closed reads nothing more.
// So bytes of the peer's that nobody has read, or that come now, are lost. The peer must learn of
// it, so the connection is reset (RFC 9293, 3.6.1). A reset ends the connection at once. The peer
// gets no FIN, unless that was sent already, and nothing of what still waits to be sent.

// errLost is the cause of a reset because the peer has sent what nobody will read.
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

// CloseRead has Read return io.EOF, and drops what comes from the peer. The peer does not learn of
// it. But if this side has called CloseWrite too, what comes resets the connection, as after
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

// SetLinger says what Close does with what was written and has not arrived, as net.TCPConn's does.
// If sec < 0, Config.Linger counts, as without SetLinger. If it is 0, the bytes are dropped, and
// the connection is reset. If sec > 0, Close delivers them for so many seconds. Close does not
// block in any case.
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

// Close ends the stream, as TCP's does. Calls that block return net.ErrClosed. What was written is
// still sent, and then a FIN, for as long as Config.Linger or SetLinger says. But if there are
// bytes of the peer's that were not read, or as soon as some come, the connection is reset. Then
// the peer's Write returns EPIPE or ECONNRESET, and its Read ECONNRESET if the FIN has not
// arrived. Close does not block. Runtime.Shutdown waits for connections that linger.
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

// unwanted handles bytes that nobody will read. It is called on the loop.
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
