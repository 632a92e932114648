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

// Conn is one end of a byte stream over a connection: a net.Conn. Any goroutine except a loop's may
// call its methods, because they need that loop. There is no SyscallConn: the stream has no file
// descriptor.
type Conn struct {
	local, peer *net.TCPAddr // set before the Conn is handed out, as is identity
	identity    string       // the peer's
	from        netip.Addr   // address whose share of the backlog it occupies
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

// setEstablished sets the fields that are known from Established, before the Conn is handed out.
func (c *Conn) setEstablished(ev *rdma.Established) {
	c.local, c.peer, c.identity = netAddr(ev.Local), netAddr(ev.Peer), ev.Identity
	c.wr.piece = min(ev.MaxMessage, pieceMax)
}

// Read copies received bytes into p. It blocks while there are none. When a message was read whole,
// the peer gets its credit back. After all bytes before the peer's FIN, Read returns io.EOF.
// ECONNRESET means an end without a FIN.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.rd.read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.opError("read", err)
	}
	return n, err
}

// WriteTo reads to the end and writes to w. io.Copy uses it. w gets the memory that the device
// placed the message in. Bytes that w does not take, even if it panics, can be read afterwards.
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
// queued. It blocks while the peer does not keep up. A deadline or Close can interrupt it between
// two pieces; n is the number of bytes queued. p is the caller's again when Write returns. Queued
// bytes have not necessarily arrived: only an answer from the peer shows that.
func (c *Conn) Write(p []byte) (n int, err error) {
	if n, err = c.wr.write(p); err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// LocalAddr returns this end's address, a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the peer's address, a *net.TCPAddr: programs that limit or log their peers
// expect one.
func (c *Conn) RemoteAddr() net.Addr { return c.peer }

// netAddr returns a as programs for TCP expect it. a is never an AF_IB address, as addresses are
// looked up from "host:port".
func netAddr(a rdma.Addr) *net.TCPAddr { return net.TCPAddrFromAddrPort(a.AddrPort) }

// Identity returns the peer's identity: of a secured connection the one that its key or certificate
// proves (actor.Security), as in Established. It is "" if the connection is not secured, or the
// peer needs no certificate. An http.Server finds it in ConnContext.
func (c *Conn) Identity() string { return c.identity }

// SetDeadline calls SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.setDeadline(&c.rd.waiter, t); err != nil {
		return err
	}
	return c.setDeadline(&c.wr.waiter, t)
}

// SetReadDeadline sets the time until which Read may block, including a blocked Read. From then on
// Read returns os.ErrDeadlineExceeded. The zero Time means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.rd.waiter, t) }

// SetWriteDeadline does the same for Write. An interrupted Write may have queued some bytes.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.wr.waiter, t) }

func (c *Conn) setDeadline(w *waiter, t time.Time) error {
	if !w.setDeadline(t) {
		return c.opError("set", net.ErrClosed)
	}
	return nil
}
