package rpc

import (
	"io"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// serverStream has the items of a stream that a client sends. The window that the client may send
// is part of the call's memory (serverCall.bytes) from the admission to the answer. So the items of
// a stream never lack memory, except those that exceed the window: then the stream is refused.
type serverStream struct {
	inbound
	call   *serverCall
	closed bool // the client sends no further items; only the loop uses it
	kept   int  // memory beyond the window that the call has; out.mu
	ended  bool // the handler has returned, and the memory was given back; out.mu
}

// initStream prepares a call whose client sends items.
func (call *serverCall) initStream() {
	cfg := &call.c.s.cfg
	s := &serverStream{call: call}
	s.init(call.c.s.rt, call.h.m, &call.h.m.req, cfg.StreamWindow, cfg.MaxMessage, s)
	call.stream = s
	call.bytes += cfg.StreamWindow
}

// itemLocked takes an item from the client, or a part of one.
func (c *serverConn) itemLocked(h wire.Header, body []byte) error {
	last := h.Type == wire.FrameItem && h.Flags&wire.FlagParts != 0 && c.version >= 3
	if last {
		c.unread += len(body)
	}
	call := c.findLocked(h.Call)
	if call == nil {
		return nil // answered since
	}
	s := call.stream
	if s != nil && s.ended {
		return nil
	}
	if s == nil || s.closed {
		return violationError("an item for call %#x, which takes none", h.Call)
	}
	if h.Type == wire.FramePart {
		if err := s.partLocked(h.Call, body); err != nil {
			return err
		}
	} else if err := c.wholeLocked(call, h.Call, body, last); err != nil {
		return err
	}
	if s.excess > 0 && !s.keepLocked() {
		why := &Error{Code: CodeOverloaded, Method: call.h.m.name, Message: "no memory for an item", Fate: FateAnswered}
		s.dropItems(why)
		call.ctx.cancelContext(why)
	}
	return nil
}

// wholeLocked takes an item. last: body is the last part of it.
func (c *serverConn) wholeLocked(call *serverCall, id wire.CallID, body []byte, last bool) error {
	n, err := call.stream.itemLocked(c.reading, id, body, last)
	if err != nil {
		return err
	}
	if call.stream.woke {
		c.wakes.add(call.stream.ready)
	}
	if t := c.tallyOf(call.h); t != nil {
		t.items++
		t.received += uint64(n)
	}
	return nil
}

// noItems takes the end of a client's items.
func (c *serverConn) noItems(h wire.Header) error {
	call := c.findCall(h.Call)
	if call == nil {
		return nil // answered since
	}
	s := call.stream
	if s == nil || s.closed {
		return violationError("an end of the items of call %#x, which takes none", h.Call)
	}
	if s.arriving() > 0 {
		return violationError("an end within an item of call %#x", h.Call)
	}
	s.closed = true
	s.closeItems(io.EOF)
	c.local.Woke()
	return nil
}

// keepLocked changes the memory that the call has beyond the window. Not ok: there is none.
func (s *serverStream) keepLocked() (ok bool) {
	out, more := &s.call.c.out, s.excess-s.kept
	if more > 0 && !out.mayLocked(more) {
		return false
	}
	s.kept = s.excess
	s.call.bytes += more
	out.purse.Requests += more
	out.settleLocked()
	return true
}

// grantBytes implements feeder.
func (s *serverStream) grantBytes(n uint32) {
	c := s.call.c
	c.out.mu.Lock()
	if s.ended {
		c.out.mu.Unlock()
		return
	}
	s.measureExcess()
	s.keepLocked()
	c.out.putLocked(wire.Header{Type: wire.FrameWindow, Call: s.call.id, Arg: n}, nil)
	c.out.unlockAndWake()
}

// waitEnd implements feeder.
func (s *serverStream) waitEnd() <-chan struct{} { return s.call.ctx.Done() }

// itemsDrained implements feeder.
func (s *serverStream) itemsDrained() {}

// endCause implements feeder.
func (s *serverStream) endCause() error { return s.call.ctx.endCause() }

// endLocked drops the items that were not received. The call's memory is given back.
func (s *serverStream) endLocked() {
	s.ended = true
	s.dropItems(errHandled)
}

// closeStream implements feeder: the stream ends when the handler returns.
func (s *serverStream) closeStream(error) {}

// headerMeta implements feeder.
func (s *serverStream) headerMeta() Pairs { return Pairs{} }

// trailerMeta implements feeder.
func (s *serverStream) trailerMeta() Pairs { return Pairs{} }
