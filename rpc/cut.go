package rpc

import (
	"runtime"
	"slices"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A server cuts its large answers and items into pieces (wire.FramePart), if the client speaks
// version 2. A client does the same with its large requests and items, if the server speaks version
// 3. Pieces take turns with each other and with the gathered frames, and the peer confirms the
// bytes that it has read (wire.FrameTaken). So no frame waits behind more than cutAhead bytes of
// large ones, and a piece.
const (
	// pieceBytes is the size of a piece, header included.
	pieceBytes = 16 << 10
	// cutAhead is how many bytes of pieces the peer may not have confirmed.
	cutAhead = 256 << 10
	// confirmBytes is how many bytes of pieces a side reads before it confirms them. Peers of
	// former versions send only 32 KiB ahead.
	confirmBytes = 16 << 10
)

// cut is a large frame, or a request, in pieces, each in the Send that carries it.
type cut struct {
	pieces []*rdma.Send // not handed to the connection yet
	after  uint64       // number of gathered messages that precede it
	number uint64       // number of the last piece among all messages; 0: it was not handed over
	waiter *waiter      // goes on when there are no pieces left; nil: none
	// not all of it was handed to the connection, and the rest will not be
	dropped bool
}

// cuts are the large frames of a connection that are being sent. out.mu.
type cuts struct {
	on    bool   // large frames are cut; set before the first one
	all   []*cut // the next turn first
	bytes int    // in all
	ahead int    // bytes that the peer has not confirmed
	turn  bool   // the next message is a piece
	// received messages of a client wait, so no confirmation is read: pieces do not wait for them.
	// The loop's
	blind bool
}

// readyFrame is a frame that is about to be put. Large ones are encoded before out.mu is locked, so
// that other goroutines need not wait for it.
type readyFrame struct {
	h              wire.Header
	own            *rdma.Send // a large frame
	cut            *cut       // a large frame, or the request that follows this frame, in pieces
	metadata, body []byte     // of any other frame
}

// encodeLarge encodes the frame, if it is large. cuts: it is cut then. A call becomes a small frame
// that announces its request.
func (e *readyFrame) encodeLarge(cuts bool) {
	switch {
	case wire.RequestLen(e.metadata, e.body) <= gatherBytes:
	case !cuts || e.isWhole():
		e.own = newLargeSend(e.metadata, e.body)
	case e.h.Type == wire.FrameCall:
		e.cut = cutFrame(wire.Header{Type: wire.FramePart}, nil, e.body)
		e.h.Flags |= wire.FlagFollows
		e.body = wire.AppendFollows(nil, len(e.body))
	default:
		e.h.Flags |= wire.FlagParts
		e.cut = cutFrame(e.h, e.metadata, e.body)
	}
}

// isWhole reports whether the frame is not cut, however large it is: an error, which the client
// reads as a whole, and a request that may be an OnLoop handler's, because these are called in the
// order of the calls.
func (e *readyFrame) isWhole() bool {
	return e.h.Type == wire.FrameError || e.h.Type == wire.FrameCall && len(e.body) <= onLoopRequest
}

// isEncoded reports whether the frame is encoded already, so that its body is not needed any
// longer.
func (e *readyFrame) isEncoded() bool { return e.own != nil || e.cut != nil }

// release releases the memory of a frame that is not put.
func (e *readyFrame) release() {
	if e.own != nil {
		e.own.Release()
	}
	if e.cut != nil {
		e.cut.release()
	}
	*e = readyFrame{}
}

// cutFrame cuts a frame into pieces. Its metadata is in the last one.
func cutFrame(h wire.Header, metadata, body []byte) *cut {
	c := &cut{pieces: make([]*rdma.Send, 0, len(body)/(pieceBytes-wire.HeaderLen)+1)}
	part := wire.Header{Type: wire.FramePart, Call: h.Call, Length: pieceBytes - wire.HeaderLen}
	for len(body) > int(part.Length) {
		s := rdma.NewSendBuffer(pieceBytes)
		part.Put(s.Bytes())
		copy(s.Bytes()[wire.HeaderLen:], body)
		body = body[part.Length:]
		c.pieces = append(c.pieces, s)
		runtime.Gosched() // loops do not wait for the whole
	}
	h.Length = uint32(wire.RequestLen(metadata, body))
	s := rdma.NewSendBuffer(wire.HeaderLen + int(h.Length))
	h.Put(s.Bytes())
	wire.PutRequest(s.Bytes()[wire.HeaderLen:], metadata, body)
	c.pieces = append(c.pieces, s)
	return c
}

// setCall sets the call in all pieces.
func (c *cut) setCall(id wire.CallID) {
	for _, s := range c.pieces {
		wire.PutCall(s.Bytes(), id)
	}
}

// isComplete reports whether all pieces were handed to the connection.
func (c *cut) isComplete() bool { return c.number > 0 }

// totalBytes returns the size of the pieces.
func (c *cut) totalBytes() (n int) {
	for _, s := range c.pieces {
		n += s.Len()
	}
	return n
}

// release releases the pieces that were not handed to the connection.
func (c *cut) release() {
	for _, s := range c.pieces {
		s.Release()
	}
	c.dropped = c.dropped || len(c.pieces) > 0
	c.pieces = nil
	if c.waiter != nil {
		c.waiter.goOn()
	}
}

// putEncodedLocked puts a frame after encodeLarge. It returns the number of the message with
// the frame, unless that is cut.
func (o *out) putEncodedLocked(e *readyFrame) (number uint64) {
	if e.cut == nil {
		return o.putLargeLocked(e.h, e.own, e.metadata, e.body)
	}
	if e.h.Type == wire.FrameCall {
		number = o.putLargeLocked(e.h, nil, e.metadata, e.body)
		e.cut.setCall(e.h.Call)
	}
	if e.cut.after = o.number; len(o.cur) > 0 { // cur may have the call, or an earlier item
		e.cut.after++
	}
	o.cuts.all = append(o.cuts.all, e.cut)
	o.cuts.bytes += e.cut.totalBytes()
	return number
}

// appendFrameLocked puts a frame behind the pieces of c, not all of which were handed over.
func (o *out) appendFrameLocked(c *cut, h wire.Header) {
	s := rdma.NewSendBuffer(wire.HeaderLen)
	h.Put(s.Bytes())
	c.pieces = append(c.pieces, s)
	o.cuts.bytes += s.Len()
}

// dropCutLocked drops the rest of a large frame. The caller has to request a flush, because parked
// messages may have waited for the memory.
func (o *out) dropCutLocked(c *cut) {
	o.cuts.bytes -= c.totalBytes()
	c.release()
	o.cuts.all = slices.DeleteFunc(o.cuts.all, func(other *cut) bool { return other == c })
	o.settleLocked()
	o.releaseLocked()
}

// popPieceLocked takes the next piece, if it is a piece's turn, or there is nothing else.
func (o *out) popPieceLocked() (seg segment, ok bool) {
	q := &o.cuts
	gathered := o.number - uint64(len(o.full)) // messages that were taken
	if len(q.all) == 0 || q.ahead >= cutAhead && !q.blind || gathered < q.all[0].after || !q.turn && len(o.full)+len(o.cur) > 0 {
		q.turn = true
		return seg, false
	}
	c := q.all[0]
	seg.send, c.pieces = c.pieces[0], c.pieces[1:]
	o.pieces++
	o.overtaken = o.number
	copy(q.all, q.all[1:])
	if q.all[len(q.all)-1] = c; len(c.pieces) == 0 {
		c.number = o.handed + o.pieces
		q.all = slices.Delete(q.all, len(q.all)-1, len(q.all))
		if c.waiter != nil {
			c.waiter.goOn()
		}
		if o.bytes <= highWater/2 {
			o.releaseLocked()
		}
	}
	q.turn = false
	q.bytes -= seg.len()
	q.ahead += seg.len() - wire.HeaderLen
	return seg, true
}

// requestRoomLocked reports whether a request of n bytes may be read although large answers wait:
// if they have used up the memory it waits for them, and is not refused.
func (o *out) requestRoomLocked(n int) bool {
	return o.bytes <= highWater && o.roomLocked(0) && (o.cuts.bytes == 0 || o.mayLocked(n))
}

// mayPopPieceLocked reports whether there is a piece that may be sent now.
func (o *out) mayPopPieceLocked() bool { return len(o.cuts.all) > 0 && o.cuts.ahead < cutAhead }

// takenLocked notes that the peer has read n bytes of pieces. It is called on the loop, whose turn
// ends with a flush.
func (o *out) takenLocked(n int) error {
	if n <= 0 || n > o.cuts.ahead {
		return violationError("%d bytes of parts were read, of %d that were sent", n, o.cuts.ahead)
	}
	o.cuts.ahead -= n
	return nil
}

// confirmLocked confirms the bytes of parts that were read, if there are enough: the peer sends
// only cutAhead bytes ahead.
func (o *out) confirmLocked(unread *int) {
	if *unread >= confirmBytes {
		o.putLocked(wire.Header{Type: wire.FrameTaken, Arg: uint32(*unread)}, nil)
		*unread = 0
	}
}

// endLocked drops all.
func (q *cuts) endLocked() {
	for _, c := range q.all {
		c.release()
	}
	q.all, q.bytes = nil, 0
}
