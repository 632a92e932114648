package core

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// hits are the statuses of the receive in use and of the Read being answered when a connection ends.
type hits struct{ recv, read verbs.Status }

var flushed = hits{verbs.StatusFlushed, verbs.StatusFlushed}

// end is the end of the protocol: everything is flushed, Closed is called. What becomes of the socket is the caller's to say.
func (c *Conn) end(err *Error) { c.endWith(err, flushed) }

func (c *Conn) endWith(err *Error, hit hits) {
	if c.closed {
		return
	}
	c.state = stEnded
	c.closed = true
	c.tx.drop()
	c.mpa, c.rx.dst, c.rx.mr, c.rx.bad, c.rx.wait, c.rx.kept = nil, nil, nil, nil, waiting{}, nil
	c.flush(hit)
	if err == nil {
		c.up.Closed(nil)
		return
	}
	c.up.Closed(err)
}

// rejected ends an initiator's set-up.
func (c *Conn) rejected(private []byte, err *Error) {
	c.state = stEnded
	c.up.Rejected(private, err)
	c.end(err)
}

// linger leaves the socket open until raw and a FIN are out and the peer has had d to answer with its own.
func (c *Conn) linger(now time.Time, raw []byte, d time.Duration) {
	c.tx.raw, c.shut, c.phaseAt = raw, true, now.Add(d)
}

// fault is a wrong segment and what to answer.
type fault struct {
	err  Error
	hit  hits
	copy bool // the Terminate carries the segment's headers
}

func newFault(l wire.Layer, kind, code uint8, text string) *fault {
	return &fault{
		err: Error{Op: "receive", Protocol: true, Layer: l, Type: kind, Code: code, Errno: unix.EPROTO, Text: text},
		hit: flushed,
	}
}

// fail ends the connection because of what the peer sent: Terminate, FIN.
func (c *Conn) fail(now time.Time, f *fault) {
	err := f.err
	var out []byte
	if !c.finReady() {
		out = c.terminate(c.tx.partial(), f)
		err.Sent = true
	}
	c.linger(now, out, finAfterError)
	c.endWith(&err, f.hit)
}

// terminate appends the FPDU of a Terminate message to b.
func (c *Conn) terminate(b []byte, f *fault) []byte {
	t := wire.Terminate{Layer: f.err.Layer, Type: f.err.Type, Code: f.err.Code}
	if f.copy { // RFC 5040 section 4.8: length and headers of the segment
		h := c.rx.hdr[wire.LengthLen:c.rx.have]
		n := c.rx.h.Len()
		t.HasLength, t.Length = true, uint16(c.rx.ulpdu)
		t.DDP = h[:n]
		if c.rx.h.Opcode == wire.OpReadRequest {
			t.RDMAP = h[n:]
		}
	}
	h := wire.Header{Last: true, Opcode: wire.OpTerminate, QN: wire.OpTerminate.Queue(), MSN: 1}
	fpdu := wire.FPDU{ULPDU: wire.AppendTerminate(wire.AppendHeader(nil, &h), &t)}
	if c.crc {
		fpdu.CRC = fpdu.Checksum()
	}
	return wire.AppendFPDU(b, &fpdu)
}

// InputEnd says that the peer's stream is over: FIN (nil) or a socket error.
func (c *Conn) InputEnd(now time.Time, err error) {
	if c.closeNow {
		return
	}
	c.closeNow, c.phaseAt = true, time.Time{}
	e := &Error{Op: "receive", Errno: unix.ECONNRESET, Text: "connection closed by the peer"}
	if err != nil {
		e.Text = err.Error()
		if !errors.As(err, &e.Errno) {
			e.Errno = unix.EIO
		}
	}
	switch c.state {
	case stReply:
		e.Op, e.noReply = "reply", len(c.mpa) == 0
		e.Errno = unix.ECONNRESET // whatever the socket says: rejected
		c.rejected(nil, e)
	case stIdle, stRequest, stAnswer:
		e.Op = "request"
		if c.state == stRequest {
			e.Text += fmt.Sprintf(", %d bytes of a Request were there", len(c.mpa))
		}
		c.gone = true
		c.end(e)
	case stAccepted:
		c.end(e)
	case stOpen, stFinishing:
		switch {
		case err != nil:
			c.end(e)
		case c.rx.busy():
			e.Text = "connection closed by the peer in the middle of a message"
			c.end(e)
		default:
			c.end(nil)
		}
	case stEnded:
	}
}

// Disconnect ends the connection (rdma_disconnect(3)): sends that have not started complete
// flushed, a started one is finished, then FIN. Closed comes with the peer's FIN, or after 5 s. A
// message that waits for a receive, and what is behind it, is dropped. Before set-up is complete it
// is Abort.
func (c *Conn) Disconnect(now time.Time) {
	switch c.state {
	case stIdle, stRequest, stAnswer, stReply:
		c.Abort(now)
	case stAccepted, stOpen, stFinishing:
		c.state, c.shut, c.tx.drain = stFinishing, true, false
		c.phaseAt = now.Add(fin)
		c.tx.ctl, c.tx.wireAt = 0, time.Time{}
		if c.rx.wait.message {
			c.deafen()
		}
		c.cutUnstarted()
	case stEnded:
	}
}

// Shutdown is Disconnect after everything queued was sent. The peer's Reads are answered as far as
// they have come by then; those that come later are not, or a peer could keep the connection with
// them. It waits for a peer that does not read, or does not answer a Read: bound it with Abort.
func (c *Conn) Shutdown(now time.Time) {
	switch c.state {
	case stOpen:
		c.state, c.shut, c.tx.drain = stFinishing, true, true
		if c.rx.wait.message {
			c.deafen()
		}
		c.finDeadline(now)
	case stFinishing, stEnded:
	case stIdle, stRequest, stAnswer, stReply, stAccepted:
		c.Disconnect(now)
	}
}

// finDeadline starts the wait for the peer's FIN once ours is due. Nothing is sent from then on: no kick either, the FIN is one.
func (c *Conn) finDeadline(now time.Time) {
	if c.state == stFinishing && c.phaseAt.IsZero() && c.finReady() {
		c.phaseAt, c.tx.wireAt = now.Add(fin), time.Time{}
	}
}

// Abort ends the connection at once: everything is flushed and Closed called before it returns. The socket is to be closed, but for
// a Request that is out (until the Reply, or 100 ms) and a Request not answered (which is rejected).
func (c *Conn) Abort(now time.Time) {
	aborted := &Error{Op: "close", Errno: unix.ECONNABORTED, Text: "aborted"}
	switch c.state {
	case stReply: // the Request goes out if it can
		c.phaseAt = now.Add(abortReply)
		c.end(aborted)
	case stAnswer:
		c.sendReject(now, nil)
		c.end(aborted)
	case stIdle, stRequest, stAccepted, stOpen, stFinishing, stEnded:
		c.closeNow, c.phaseAt = true, time.Time{}
		c.end(aborted)
	}
}
