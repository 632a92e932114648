package rdmanet

import (
	"errors"
	"math"
	"net"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A stream ends as one of TCP's does. Close sends a FIN after the written bytes, and the connection
// lingers until the peer has taken both. But a side that has closed no longer reads, so the peer's
// unread and later bytes are lost. The peer must learn of it, so the connection is reset (RFC 9293,
// 3.6.1). A reset ends the connection immediately. The peer gets no FIN, unless that was sent
// already, and none of the bytes that still wait to be sent.

// errLost is the cause of a reset due to bytes of the peer's that will not be read.
var errLost = errors.New("the peer has sent bytes that nobody reads any more")

// CloseWrite sends a FIN: after all written bytes the peer reads io.EOF. Reading goes on.
// CloseWrite does not block.
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

// CloseRead makes Read return io.EOF, and drops the peer's unread and later bytes. The peer is not
// notified. But if this side has called CloseWrite too, later bytes reset the connection, as after
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

// SetLinger sets what Close does with written bytes that have not arrived, as net.TCPConn's does.
// If sec < 0, Config.Linger applies, as without SetLinger. If sec is 0, Close drops them and resets
// the connection. If sec > 0, Close goes on delivering them for at most sec seconds. Close never
// blocks.
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

// Close ends the stream, as TCP's does. Blocked calls return net.ErrClosed. The written bytes are
// still sent, followed by a FIN, for at most Config.Linger or SetLinger's time. But if there are
// unread bytes of the peer's, or as soon as more arrive, the connection is reset. Then the peer's
// Write returns EPIPE or ECONNRESET, and its Read ECONNRESET if the FIN has not arrived. Close does
// not block. Runtime.Shutdown waits for connections that linger.
func (c *Conn) Close() error {
	unread, ok := c.closeHalves()
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

// closeHalves ends both halves for their callers. Not ok: they were closed before.
func (c *Conn) closeHalves() (unread, ok bool) {
	c.wr.mu.Lock()
	c.wr.closeLocked() // before the reader: see handleUnwanted
	c.wr.mu.Unlock()
	c.rd.mu.Lock()
	defer c.rd.mu.Unlock()
	ok, unread = !c.rd.closed, c.rd.unreadLocked()
	c.rd.closeLocked()
	c.rd.discardLocked()
	return unread, ok
}

// handleUnwanted handles bytes that will not be read. It is called on the loop.
func (c *Conn) handleUnwanted() {
	c.wr.mu.Lock()
	over := c.wr.closed || c.wr.fin
	c.wr.mu.Unlock()
	if over {
		c.failStream(resetError(errLost))
	}
}

// failStream ends a stream immediately: Read and Write of both sides return ECONNRESET.
func (c *Conn) failStream(err error) {
	c.rd.failWait(err)
	c.wr.mu.Lock()
	c.wr.resetLocked()
	c.wr.mu.Unlock()
	c.wr.failWait(err)
}

// closeUnused ends a stream that will not be used.
func (c *Conn) closeUnused() {
	c.closeHalves()
	c.failStream(net.ErrClosed)
}
