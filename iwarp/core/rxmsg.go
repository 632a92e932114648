package core

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// wireFault is the fault for a codec's error.
func wireFault(err error) *fault {
	var w *wire.Error
	if !errors.As(err, &w) {
		return newFault(wire.LayerRDMAP, wire.RDMAPOperation, 7, err.Error())
	}
	return newFault(w.Layer, w.Type, w.Code, err.Error())
}

// ddpFault and rdmapFault are faults whose Terminate carries the headers.
func ddpFault(kind, code uint8, format string, args ...any) *fault {
	f := newFault(wire.LayerDDP, kind, code, fmt.Sprintf(format, args...))
	f.copy = true
	return f
}

func rdmapFault(kind, code uint8, format string, args ...any) *fault {
	f := newFault(wire.LayerRDMAP, kind, code, fmt.Sprintf(format, args...))
	f.copy = true
	return f
}

// segment judges the headers of a segment, before its payload, and says where that goes.
func (c *Conn) segment() *fault {
	r := &c.rx
	h := &r.h
	r.seg = uint32(wire.LengthLen + r.ulpdu - int(r.have))
	switch op := h.Opcode; {
	case op.Send():
		f := c.sendSegment()
		if f != nil && f.hit == verbs.StatusFlushed {
			f.hit = verbs.StatusGeneral
		}
		return f
	case op == wire.OpWrite:
		if r.seg == 0 {
			return nil
		}
		return ddpFault(wire.DDPTagged, 0, "Write of %d bytes to STag %#x, which is not registered", r.seg, h.STag)
	case op == wire.OpReadRequest:
		return c.readRequest()
	case op == wire.OpReadResponse:
		return c.readResponse()
	case op == wire.OpTerminate:
		return nil
	default:
		return rdmapFault(wire.RDMAPOperation, 6, "unexpected %v", op)
	}
}

// sendSegment checks queue, MSN and MO of a Send's segment (RFC 5041 section 7), and takes a receive for the first.
func (c *Conn) sendSegment() *fault {
	r := &c.rx
	h := &r.h
	switch {
	case h.QN != 0:
		return ddpFault(wire.DDPUntagged, 1, "%v on queue %d", h.Opcode, h.QN)
	case h.MSN != r.msn:
		return ddpFault(wire.DDPUntagged, 3, "%v with MSN %d, should be %d", h.Opcode, h.MSN, r.msn)
	case h.MO != r.off:
		return ddpFault(wire.DDPUntagged, 4, "%v with MO %d, should be %d", h.Opcode, h.MO, r.off)
	case r.taken && h.Opcode != r.op:
		return rdmapFault(wire.RDMAPOperation, 6, "%v in the middle of a %v", h.Opcode, r.op)
	}
	if !r.taken {
		wr, ok := c.takeRecv()
		if !ok {
			return ddpFault(wire.DDPUntagged, 2, "%v with no receive posted", h.Opcode)
		}
		r.recv, r.taken, r.op = wr, true, h.Opcode
		if err := CheckRecv(&wr, c.cfg.PD); err != nil { // a shared queue's: PostRecv has not seen it
			f := ddpFault(wire.TypeCatastrophic, 0, "%v", err)
			f.hit = verbs.StatusLocProt
			return f
		}
	}
	buf := landingOf(&r.recv)[r.off:]
	if uint64(r.seg) > uint64(len(buf)) {
		f := ddpFault(wire.DDPUntagged, 5, "%v of at least %d bytes into a receive of %d",
			h.Opcode, uint64(r.off)+uint64(r.seg), r.recv.SGE.Length)
		f.hit = verbs.StatusLocLen
		return f
	}
	r.dst = buf[:r.seg:r.seg]
	return nil
}

// readRequest checks a Read Request. Only empty ones can be served: no memory is registered.
func (c *Conn) readRequest() *fault {
	h := &c.rx.h
	q, _, _ := wire.ConsumeReadRequest(c.rx.hdr[wire.LengthLen+wire.UntaggedLen : c.rx.have])
	switch {
	case h.QN != h.Opcode.Queue():
		return ddpFault(wire.DDPUntagged, 1, "Read Request on queue %d", h.QN)
	case h.MSN != c.rx.readMSN:
		return ddpFault(wire.DDPUntagged, 3, "Read Request with MSN %d, should be %d", h.MSN, c.rx.readMSN)
	case h.MO != 0:
		return ddpFault(wire.DDPUntagged, 4, "Read Request with MO %d", h.MO)
	case c.rx.seg != 0 || !h.Last:
		return ddpFault(wire.DDPUntagged, 5, "Read Request longer than its header")
	case q.Size != 0:
		return rdmapFault(wire.RDMAPProtection, 0, "Read of %d bytes of STag %#x, which is not registered", q.Size, q.SourceSTag)
	case len(c.tx.reads) >= c.readLimit():
		return rdmapFault(wire.RDMAPOperation, 7, "more than %d Reads outstanding", c.readLimit())
	}
	return nil
}

// readLimit is how many Read Responses may be owed. siw rounds the IRD it was told up to a power of two, and its responder takes
// one more than it queues.
func (c *Conn) readLimit() int {
	if c.ird == 0 {
		return 1
	}
	return 1<<bits.Len16(c.ird-1) + 1
}

// readResponse checks the answer to our ready-to-receive Read.
func (c *Conn) readResponse() *fault {
	h := &c.rx.h
	switch {
	case !c.rx.readOut:
		return ddpFault(wire.TypeCatastrophic, 0, "Read Response without a Read")
	case h.STag != 0:
		return ddpFault(wire.DDPTagged, 0, "Read Response to STag %#x, should be 0", h.STag)
	case h.TO != 0 || c.rx.seg != 0 || !h.Last:
		return ddpFault(wire.DDPTagged, 1, "Read Response of %d bytes at TO %#x to an empty Read", c.rx.seg, h.TO)
	}
	return nil
}

// deliver does what a complete segment means.
func (c *Conn) deliver(now time.Time) {
	r := &c.rx
	switch {
	case r.h.Opcode.Send():
		c.deliverSend(now)
	case r.h.Opcode == wire.OpReadRequest:
		r.readMSN++
		q, _, _ := wire.ConsumeReadRequest(r.hdr[wire.LengthLen+wire.UntaggedLen : r.have])
		if !c.finReady() {
			c.tx.reads = append(c.tx.reads, readResponse{stag: q.SinkSTag, to: q.SinkTO})
		}
	case r.h.Opcode == wire.OpReadResponse:
		r.readOut = false
	}
}

func (c *Conn) deliverSend(now time.Time) {
	r := &c.rx
	if r.off += r.seg; !r.h.Last {
		return
	}
	if invalidates(r.op) {
		f := rdmapFault(wire.RDMAPProtection, 9, "%v of STag %#x, which is not registered", r.op, r.h.STag)
		f.hit = verbs.StatusRemInvReq
		c.fail(now, f)
		return
	}
	n := r.off
	r.msn++
	r.off, r.taken = 0, false
	c.completeRecv(verbs.StatusSuccess, n)
}

// terminated ends the connection because the peer said so.
func (c *Conn) terminated() {
	e := &Error{Op: "receive", Protocol: true, Received: true, Errno: unix.ECONNRESET, Text: "ended by the peer"}
	t, _, _ := wire.ConsumeTerminate(c.rx.hdr[wire.LengthLen+wire.UntaggedLen : c.rx.have]) // at least its first four bytes are here
	e.Layer, e.Type, e.Code = t.Layer, t.Type, t.Code
	c.closeNow, c.phaseAt = true, time.Time{}
	c.end(e)
}

// solicited is true for the Sends that ask for an event.
func solicited(op wire.Opcode) bool { return op == wire.OpSendSE || op == wire.OpSendSEInvalidate }

// invalidates is true for the Sends that invalidate an STag.
func invalidates(op wire.Opcode) bool {
	return op == wire.OpSendInvalidate || op == wire.OpSendSEInvalidate
}

// landingOf is the memory of a receive.
func landingOf(wr *verbs.RecvWR) []byte {
	if wr.SGE.MR == nil {
		return nil
	}
	return wr.SGE.MR.Bytes[wr.SGE.Offset : wr.SGE.Offset+wr.SGE.Length]
}
