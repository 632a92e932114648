package rdmanet

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Conn is one end of a byte stream over a connection: a net.Conn. Any goroutine but a loop's may
// call its methods, because they need that loop. There is no SyscallConn: the stream has no file
// descriptor.
type Conn struct {
	local, peer Addr       // set before anybody has the Conn, as is identity
	identity    string     // of the peer
	from        netip.Addr // whose place in the backlog it has
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
	c.local, c.peer, c.identity = Addr{ev.Local}, Addr{ev.Peer}, ev.Identity
	c.wr.piece = min(ev.MaxMessage, pieceMax)
}

// Read copies what has come into p. It blocks while there is nothing. When a message was read
// whole, the peer gets its credit back. After everything that the peer has sent before its FIN,
// Read returns io.EOF. ECONNRESET is an end without a FIN.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.rd.read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.opError("read", err)
	}
	return n, err
}

// WriteTo reads to the end and writes to w. io.Copy uses it. w gets the memory into which the
// device has put a message. What w does not take, also if it panics, can be read afterwards.
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

// Write sends p, in pieces of at most the peer's MaxMessage. It returns when the last piece was
// taken. It blocks while the peer does not keep up. A deadline or Close can interrupt it between
// two pieces; n is how many bytes were taken. p is the caller's again when Write returns. That
// bytes were taken does not mean that they have arrived: only an answer of the peer's says so.
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

// Identity is who the peer is: of a secured connection what its key or certificate proves
// (actor.Security), as Established has it. It is "" if the connection is not secured, or the peer
// needs no certificate. An http.Server finds it in ConnContext.
func (c *Conn) Identity() string { return c.identity }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.setDeadline(&c.rd.waiter, t); err != nil {
		return err
	}
	return c.setDeadline(&c.wr.waiter, t)
}

// SetReadDeadline says until when Read may block, also for a Read that blocks already. From then
// on Read returns os.ErrDeadlineExceeded. The zero Time is no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.rd.waiter, t) }

// SetWriteDeadline is the same for Write, which may have taken some bytes when it is interrupted.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.wr.waiter, t) }

func (c *Conn) setDeadline(w *waiter, t time.Time) error {
	if !w.setDeadline(t) {
		return c.opError("set", net.ErrClosed)
	}
	return nil
}
