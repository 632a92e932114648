package rdmanet

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Conn is one end of a byte stream over a connection: a net.Conn. Its methods are for any
// goroutine but a loop's, which they need. There is no SyscallConn: the stream is not a file
// descriptor's.
type Conn struct {
	local, peer Addr // set before anybody has the Conn
	rd          reader
	wr          writer
}

var (
	_ net.Conn    = (*Conn)(nil)
	_ io.WriterTo = (*Conn)(nil)
)

// newConn makes a Conn that is about to be connected; id is its identifier.
func newConn(rt *rdma.Runtime, id *actor.PID, cfg *Config) *Conn {
	c := &Conn{}
	c.rd.wake, c.wr.wake = newWake(), newWake()
	c.rd.rt, c.wr.rt = rt, rt
	c.wr.id, c.wr.inFlight.Limits = id, &limits
	c.wr.byDefault, c.wr.linger = cfg.Linger, cfg.Linger
	return c
}

// established is called before anybody has the Conn.
func (c *Conn) established(ev *rdma.Established) {
	c.local, c.peer = Addr{ev.Local}, Addr{ev.Peer}
	c.wr.piece = min(ev.MaxMessage, pieceMax)
}

// Read copies what has come into p, and gives the peer its credits back when a message was read
// whole. It blocks while there is nothing. io.EOF is the peer's FIN, behind everything before it;
// ECONNRESET is an end without one.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.rd.read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.opError("read", err)
	}
	return n, err
}

// WriteTo reads to the end and writes to w: what io.Copy uses. A message is written from where the
// device has put it. What w does not take, also when it panics, is read next.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	n, readErr, err := c.rd.writeTo(w)
	switch {
	case err != nil:
		return n, err
	case !errors.Is(readErr, io.EOF):
		return n, c.opError("read", readErr)
	}
	return n, nil
}

// Write sends p, in pieces of at most the peer's MaxMessage, and returns when the last one has
// been taken. It blocks while the peer does not keep up; a deadline or Close then interrupts it
// between two pieces, and n says how many bytes were taken. p is the caller's again when Write
// returns. Taken is not arrived: only an answer of the peer's says that.
func (c *Conn) Write(p []byte) (n int, err error) {
	if n, err = c.wr.write(p); err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// LocalAddr is this end's Addr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the peer's Addr.
func (c *Conn) RemoteAddr() net.Addr { return c.peer }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.setDeadline(&c.rd.waiter, t); err != nil {
		return err
	}
	return c.setDeadline(&c.wr.waiter, t)
}

// SetReadDeadline says until when Read may block, one that blocks already included; from then on
// it says os.ErrDeadlineExceeded. The zero Time is for ever.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.rd.waiter, t) }

// SetWriteDeadline is the same for Write, which may have taken some bytes when it is interrupted.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.wr.waiter, t) }

func (c *Conn) setDeadline(w *waiter, t time.Time) error {
	if !w.setDeadline(t) {
		return c.opError("set", net.ErrClosed)
	}
	return nil
}
