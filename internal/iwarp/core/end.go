package core

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
)

// closeProtocol ends the protocol: it flushes everything and calls Closed. The caller decides when
// the socket is closed.
func (c *Conn) closeProtocol(err *Error) { c.endWith(err, flushed) }

func (c *Conn) endWith(err *Error, hit hits) {
	if c.closed {
		return
	}
	c.state = stEnded
	c.closed = true
	c.tx.dropStaged()
	c.mpa, c.rx.dst, c.rx.mr, c.rx.bad, c.rx.wait = nil, nil, nil, nil, waiting{}
	c.rx.rest, c.rx.owned = nil, 0
	c.flushQueues(hit)
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

// closeSetup ends set-up with nothing but a FIN: there is nothing to answer, or the peer would not
// understand it.
func (c *Conn) closeSetup(op, text string) {
	c.closeNow, c.phaseAt = true, time.Time{}
	c.closeProtocol(&Error{Op: op, Errno: unix.EPROTO, Text: text})
}

// startLinger leaves the socket open until raw and a FIN are out and the peer has had d to answer
// with its own.
func (c *Conn) startLinger(now time.Time, raw []byte, d time.Duration) {
	c.tx.raw, c.shut, c.phaseAt = raw, true, now.Add(d)
}

// failWithTerminate ends the connection because of the peer's error f: Terminate, FIN.
func (c *Conn) failWithTerminate(now time.Time, f *fault) {
	err := f.err
	var out []byte
	if !c.finReady() {
		out = c.appendTerminate(c.tx.partialFPDU(), f)
		err.Sent = true
	}
	c.startLinger(now, out, finAfterError)
	c.endWith(&err, f.hit)
}

// appendTerminate appends the FPDU of a Terminate message to b.
func (c *Conn) appendTerminate(b []byte, f *fault) []byte {
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
