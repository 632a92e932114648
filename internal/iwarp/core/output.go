package core

import (
	"encoding/binary"
	"time"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// iovMax is how many slices one writev takes (UIO_MAXIOV).
const iovMax = 1024

// Overhead is the most that an FPDU adds to its payload, except for the pad: length, the longer
// header, CRC.
const Overhead = wire.LengthLen + wire.UntaggedLen + wire.CRCLen

// output is MPA's sending side: FPDUs on their way to the socket. Offsets count the bytes of FPDUs.
type output struct {
	pool *Pool
	// sent first: an MPA frame, or at the end the rest of an FPDU and a Terminate
	raw        []byte
	batch      *batch // FPDUs that were made and that the socket has not taken yet; nil: none
	staged     uint64 // stream offset behind the batch's last byte
	sent       uint64 // stream offset of the next byte the socket takes
	maxSegment uint32 // payload bytes of one FPDU
	within     bool   // the last FPDU staged was not its message's last
	crc        bool   // CRC in use
}

// isEmpty reports whether the socket has taken everything.
func (o *output) isEmpty() bool { return o.raw == nil && o.batch == nil }

// addFPDU adds one FPDU to the batch. The result is false if the batch has no room.
func (o *output) addFPDU(h *wire.Header, rr *wire.ReadRequest, p payload) bool {
	b := o.batch
	size := int(p.n)
	if !b.hasRoom(size, p.maxPieces()) {
		return false
	}
	ulpdu := h.Len() + size
	if rr != nil {
		ulpdu += wire.ReadRequestLen
	}
	begin := b.ends[0]
	if o.crc && o.staged > begin && o.staged-begin+uint64(wire.FPDULen(ulpdu)) > uint64(o.maxSegment+Overhead) {
		return false
	}
	b.beginFPDU()
	b.arena = binary.BigEndian.AppendUint16(b.arena, uint16(ulpdu))
	b.arena = wire.AppendHeader(b.arena, h)
	if rr != nil {
		b.arena = wire.AppendReadRequest(b.arena, rr)
	}
	var crc uint32
	if size > 0 {
		crc = b.addPayload(&p, size <= copyMax, o.crc)
	}
	for range wire.PadLen(ulpdu) {
		b.arena = append(b.arena, 0)
	}
	if o.crc {
		crc = wire.UpdateCRC(crc, b.arena[b.mark:])
	}
	b.arena = binary.LittleEndian.AppendUint32(b.arena, crc)
	b.flushArena()
	o.staged += uint64(wire.FPDULen(ulpdu))
	b.endFPDU(o.staged, h.Last)
	o.within = !h.Last
	return true
}

// gather appends to dst the slices that the socket takes next.
func (o *output) gather(dst [][]byte) [][]byte {
	if o.raw != nil {
		return append(dst, o.raw)
	}
	if o.batch == nil {
		return dst
	}
	room := cap(dst) - len(dst)
	if room == 0 {
		room = iovMax
	}
	for _, p := range o.batch.pendingSlices() {
		if room == 0 {
			break
		}
		dst = append(dst, p)
		room--
	}
	return dst
}

// takeRaw removes n bytes from the front of raw. It returns how many bytes there were not, and
// whether it has removed the last.
func (o *output) takeRaw(n int) (left int, done bool) {
	k := min(n, len(o.raw))
	if k == 0 {
		return n, false
	}
	if o.raw = o.raw[k:]; len(o.raw) == 0 {
		o.raw = nil
	}
	return n - k, o.raw == nil
}

// advance removes n bytes from the front of the batch.
func (o *output) advance(n int) {
	o.sent += o.batch.advance(n)
	if o.sent == o.staged {
		o.dropBatch()
	}
}

func (o *output) dropBatch() {
	o.batch.release()
	o.batch = nil
}

// messageEnd returns the stream offset behind the message that has begun to be written.
func (o *output) messageEnd() uint64 {
	if o.batch == nil {
		return o.staged
	}
	return o.batch.messageEnd(o.sent)
}

// truncate drops the bytes behind stream offset end, which messageEnd returned.
func (o *output) truncate(end uint64) {
	if o.batch == nil {
		return
	}
	o.within = o.within && end == o.staged
	o.batch.truncate(end, end-o.sent)
	if o.staged = end; end == o.sent {
		o.dropBatch()
	}
}

// partialFPDU returns a copy of the bytes that must still be sent before the stream is at the start
// of an FPDU again.
func (o *output) partialFPDU() []byte {
	if o.raw != nil {
		return append([]byte(nil), o.raw...)
	}
	if o.batch == nil {
		return nil
	}
	return o.batch.copyHead(o.batch.nextBoundary(o.sent) - o.sent)
}

// terminate returns what replaces the pending output: the rest of an FPDU or a frame that has begun
// to be written, and a Terminate.
func (o *output) terminate(t *wire.Terminate) []byte {
	h := wire.Header{Last: true, Opcode: wire.OpTerminate, QN: wire.OpTerminate.Queue(), MSN: 1}
	fpdu := wire.FPDU{ULPDU: wire.AppendTerminate(wire.AppendHeader(nil, &h), t)}
	if o.crc {
		fpdu.CRC = fpdu.Checksum()
	}
	return wire.AppendFPDU(o.partialFPDU(), &fpdu)
}

// Pending is true while Gather has something, or finds that the memory of a Read Response is gone,
// which Timeout then reports.
func (c *Conn) Pending() bool { return !c.closeNow && (!c.out.isEmpty() || c.canStage()) }

// canStage reports whether an FPDU could be staged.
func (c *Conn) canStage() bool {
	live := c.state == stAccepted || c.state == stOpen || c.state == stFinishing
	if !live || c.pacing.held || c.out.raw != nil || c.stream.served.lost != nil {
		return false
	}
	return c.pacing.due != 0 || c.stream.hasOutput()
}

// Gather appends to dst the slices to write next, as many as fit cap(dst) (up to 1024 if dst has no
// room at all). With CRC in use these are FPDUs that together fill one TCP segment, or the rest of
// them. Send them as a separate segment (sendmsg with MSG_EOR; see CRC and SetMaxSegment).
func (c *Conn) Gather(dst [][]byte) [][]byte {
	if c.closeNow {
		return dst
	}
	c.stageFPDUs()
	return c.out.gather(dst)
}

// stageFPDUs makes FPDUs of the queued messages, as long as the batch has room. With CRC it makes
// at most one TCP segment, and nothing in advance: memory that a peer reads may change until the
// socket has taken it, and then the CRC would be wrong.
func (c *Conn) stageFPDUs() {
	o := &c.out
	if o.crc && o.batch != nil || !c.canStage() {
		return
	}
	if o.batch == nil {
		o.batch = o.pool.get(o.staged, !o.within)
	}
	for c.stream.stageNext(o, &c.pacing.due) {
	}
	// a Read Response whose memory is gone was all there was
	if b := o.batch; b != nil && len(b.ends) == 1 {
		o.dropBatch()
	}
}

// Advance reports that the socket took the first n of the gathered bytes; n is 0 when the socket is
// full.
func (c *Conn) Advance(now time.Time, n int) {
	o := &c.out
	n, done := o.takeRaw(n)
	if done && c.state == stAccepted && !c.setup.awaitsRTR() { // the Reply is out
		c.pacing.at = now.Add(holdOff)
		c.reportEstablished(nil)
	}
	if n > 0 && o.batch != nil {
		o.advance(n)
		if c.setup.initiator && c.state == stOpen {
			c.pacing.armKick(now)
		}
		c.stream.sends.complete(o.sent, c.up)
		c.cutDone()
	}
	if o.crc && o.batch != nil {
		o.batch.freezePending()
	}
}

// cutDone flushes, after Disconnect, the remaining sends and unanswered Reads once every message
// that had begun is out.
func (c *Conn) cutDone() {
	q := &c.stream.sends
	if c.state != stFinishing || c.out.batch != nil || q.next < q.keep {
		return
	}
	// the memory of the Reads whose answers are under way belongs to the owner again
	q.reads.orphans += q.reads.out
	if c.in.seg.h.Opcode == wire.OpReadResponse {
		c.in.dst = nil
	}
	q.flush(c.up, verbs.StatusFlushed)
}
