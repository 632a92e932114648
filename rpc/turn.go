package rpc

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A request may wait in the client: for the loop, for credits, for memory to be offered from. Here
// is what becomes of it when its turn has come.

// late has what is left of a message sent whose turn has come: see turn. The loop's.
func (l *link) late(b []byte) []byte {
	l.out.mu.Lock()
	b = l.turn(b)
	l.out.mu.Unlock()
	l.lapse()
	if l.draining {
		l.out.tell() // it may have been the last that this connection was there for
	}
	return b
}

// turn gives what is still to be sent of a message that is next. Requests that were given up are
// cut out. So are those whose deadline has passed: their calls are lost, and are the caller's to
// finish. The others say how much time they have left. Without any of these nothing is looked
// through, unless the server wants no calls any more. out.mu is held.
func (l *link) turn(b []byte) (rest []byte) {
	if l.marked == 0 && !l.draining && l.failed == nil {
		return b
	}
	var now time.Time
	var last wire.CallID // of what was cut out
	kept := 0
	for at := 0; at < len(b); {
		h, body, _, err := wire.ParseFrame(b[at:])
		if err != nil {
			panic(err) // we have written it
		}
		n := wire.HeaderLen + len(body)
		if h.Type == wire.FrameCall {
			if !l.wanted(&h, &now) {
				last = h.Call
				at += n
				continue
			}
			h.Put(b[at:])
		}
		if kept != at {
			copy(b[kept:], b[at:at+n])
		}
		kept += n
		at += n
	}
	if kept == 0 { // messages are counted: this one says what has become of it
		wire.Header{Type: wire.FrameCancel, Call: last}.Put(b)
		kept = wire.HeaderLen
	}
	return b[:kept]
}

// wanted reports whether somebody waits for a request, and has it say how long. now is read when it
// is needed. out.mu is held.
func (l *link) wanted(h *wire.Header, now *time.Time) bool {
	i := h.Call.Slot()
	s := &l.slots[i]
	if !s.busy || wire.NewCallID(i, s.use) != h.Call {
		return false // the connection is over, or about to be
	}
	c := s.call
	if c == nil {
		l.vacate(i)
		return false
	}
	if c.deadline.IsZero() {
		return true
	}
	if now.IsZero() {
		*now = time.Now()
	}
	left := c.deadline.Sub(*now)
	if left <= 0 {
		c.err = &Error{Code: CodeDeadline, Method: c.m.name, Fate: FateNotSent}
		l.vacate(i)
		c.next, l.lapsed = l.lapsed, c
		return false
	}
	var unit uint8
	h.Arg, unit = wire.PutTimeout(left)
	h.Flags = h.Flags&^wire.FlagMillis | unit
	return true
}

// lapse finishes the calls that turn has found too late to be sent. The loop's.
func (l *link) lapse() {
	lost := l.lapsed
	if l.lapsed = nil; lost != nil {
		l.finish(lost)
		l.local.Woke()
	}
}

// flush sends what has been put, and parts from a server that drains when the last call was given
// up unsent. The loop's.
func (l *link) flush(ctx actor.Context) {
	l.out.flush(ctx, l.id)
	l.lapse()
	if l.draining {
		l.part(ctx)
	}
}
