package core

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// checkSegment checks the headers of a segment before its payload arrives, and sets the payload's
// destination.
func (c *Conn) checkSegment() *fault {
	r := &c.rx
	r.seg = uint32(wire.LengthLen + r.ulpdu - int(r.have))
	var f *fault
	switch op := r.h.Opcode; {
	case op.Send():
		f = c.checkSendSegment()
	case op == wire.OpWrite:
		f = c.checkWriteSegment()
	case op == wire.OpReadRequest:
		f = c.checkReadRequest()
	case op == wire.OpReadResponse:
		f = c.checkReadResponse()
	case op == wire.OpTerminate:
		return nil
	default:
		f = rdmapFault(wire.RDMAPOperation, 6, "unexpected %v", op)
	}
	if f != nil && f.hit == flushed {
		f.hitBy(r.h.Opcode, verbs.StatusGeneral)
	}
	return f
}

// checkSendSegment checks queue, MSN and MO of a Send's segment (RFC 5041 section 7), and takes a
// receive for the first.
func (c *Conn) checkSendSegment() *fault {
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
		switch {
		case c.mustWait():
			c.letWait()
			return nil
		case !c.recvReady():
			return ddpFault(wire.DDPUntagged, 2, "%v with no receive posted", h.Opcode)
		}
		r.recv, r.taken, r.op = c.takeRecv(), true, h.Opcode
	}
	if !c.isUsable(r.recv.SGE.MR) { // freed since it was posted
		return c.freedFault()
	}
	buf := landingOf(&r.recv)[r.off:]
	if uint64(r.seg) > uint64(len(buf)) {
		f := ddpFault(wire.DDPUntagged, 5, "%v of at least %d bytes into a receive of %d",
			h.Opcode, uint64(r.off)+uint64(r.seg), r.recv.SGE.Length)
		f.hit.recv = verbs.StatusLocLen
		return f
	}
	r.dst, r.mr = buf[:r.seg:r.seg], r.recv.SGE.MR
	return nil
}

// deliverSegment processes a complete segment.
func (c *Conn) deliverSegment(now time.Time) {
	switch op := c.rx.h.Opcode; {
	case op.Send():
		c.deliverSend(now)
	case op == wire.OpWrite:
		c.rx.goOn()
	case op == wire.OpReadRequest:
		c.queueReadResponse(now)
	case op == wire.OpReadResponse:
		c.rx.goOn()
		c.readResponseReceived()
	}
}

func (c *Conn) deliverSend(now time.Time) {
	r := &c.rx
	if r.off += r.seg; !r.h.Last {
		return
	}
	wc, se := verbs.WC{ID: r.recv.ID, Op: verbs.Recv, Bytes: r.off}, isSolicited(r.op)
	if invalidatesSTag(r.op) {
		if f := c.invalidateForPeer(r.h.STag); f != nil {
			c.failWithTerminate(now, f)
			return
		}
		wc.InvalidatedRKey = r.h.STag
	}
	r.msn++
	r.off, r.taken, r.recv = 0, false, verbs.RecvWR{}
	c.up.Complete(wc, se)
}

// terminateReceived ends the connection because the peer sent a Terminate.
func (c *Conn) terminateReceived() {
	e := &Error{Op: "receive", Protocol: true, Received: true, Errno: unix.ECONNRESET, Text: "ended by the peer"}
	// at least its first four bytes are here
	t, _, _ := wire.ConsumeTerminate(c.rx.hdr[wire.LengthLen+wire.UntaggedLen : c.rx.have])
	e.Layer, e.Type, e.Code = t.Layer, t.Type, t.Code
	c.closeNow, c.phaseAt = true, time.Time{}
	c.closeProtocol(e)
}

// isSolicited reports whether op is a Send that asks for an event.
func isSolicited(op wire.Opcode) bool { return op == wire.OpSendSE || op == wire.OpSendSEInvalidate }

// invalidatesSTag reports whether op is a Send that invalidates an STag.
func invalidatesSTag(op wire.Opcode) bool {
	return op == wire.OpSendInvalidate || op == wire.OpSendSEInvalidate
}
