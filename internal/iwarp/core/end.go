package core

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// closeProtocol ends the protocol: it flushes everything and calls Closed. The caller decides when
// the socket is closed.
func (c *Conn) closeProtocol(err *Error) { c.closeWith(err, flushed) }

// closeWith is closeProtocol with the statuses of the work requests that err has hit.
func (c *Conn) closeWith(err *Error, hit hits) {
	if c.closed {
		return
	}
	c.state = stEnded
	c.closed = true
	c.out.dropBatch()
	c.pacing.stop()
	c.stream.served.drop()
	c.setup.frame = nil
	c.in.drop()
	c.stream.flush(c.up, hit)
	if err == nil {
		c.up.Closed(nil)
		return
	}
	c.up.Closed(err)
}

// reportRejected ends an initiator's set-up, and reports Rejected.
func (c *Conn) reportRejected(private []byte, err *Error) {
	c.state = stEnded
	c.up.Rejected(private, err)
	c.closeProtocol(err)
}

// closeSocket has the owner close the socket.
func (c *Conn) closeSocket() { c.closeNow, c.phaseAt = true, time.Time{} }

// closeSetup ends set-up with nothing but a FIN: there is nothing to answer, or the peer would not
// understand it.
func (c *Conn) closeSetup(op, text string) {
	c.closeSocket()
	c.closeProtocol(&Error{Op: op, Errno: unix.EPROTO, Text: text})
}

// startLinger leaves the socket open until raw and a FIN are out and the peer has had time to
// answer with its own.
func (c *Conn) startLinger(now time.Time, raw []byte) {
	c.out.raw, c.shut, c.phaseAt = raw, true, now.Add(finAfterError)
}

// failWithTerminate ends the connection because of the peer's error f: Terminate, FIN.
func (c *Conn) failWithTerminate(now time.Time, f *fault) {
	err := f.err
	var out []byte
	if shut, _ := c.WantClose(); !shut { // otherwise the FIN may be out
		t := wire.Terminate{Layer: err.Layer, Type: err.Type, Code: err.Code}
		if f.copy {
			c.in.seg.copyHeaders(&t)
		}
		out, err.Sent = c.out.terminate(&t), true
	}
	c.startLinger(now, out)
	c.closeWith(&err, f.hit)
}
