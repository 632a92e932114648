package rpc

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A request may wait in the client: for the loop, for credits, for memory to be offered from. Here
// is what becomes of it when its turn has come.

// late has what is left of a message sent whose turn has come: see turn. The loop's.
func (l *link) late(b []byte) []byte {
	l.out.mu.Lock()
	b, lost := l.turn(b)
	l.out.mu.Unlock()
	l.lapse(lost)
	if l.draining {
		l.out.tell() // it may have been the last that this connection was there for
	}
	return b
}

// turn gives what is still to be sent of a message that is next. Requests that were given up are
// cut out. So are those whose deadline has passed: their calls are lost, and are the caller's to
// finish. The others say how much time they have left. Without any of these nothing is looked
// through, unless the server wants no calls any more. out.mu is held.
func (l *link) turn(b []byte) (rest []byte, lost *clientCall) {
	if l.marked == 0 && !l.draining && l.failed == nil {
		return b, nil
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
			wanted, c := l.wanted(&h, &now)
			if c != nil {
				c.next, lost = lost, c
			}
			if !wanted {
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
	return b[:kept], lost
}

// wanted reports whether somebody waits for a request, and has it say how long. late: its call,
// whose deadline has passed. now is read when it is needed. out.mu is held.
func (l *link) wanted(h *wire.Header, now *time.Time) (ok bool, late *clientCall) {
	i := h.Call.Slot()
	s := &l.slots[i]
	if !s.busy || wire.NewCallID(i, s.use) != h.Call {
		return false, nil // the connection is over, or about to be
	}
	c := s.call
	if c == nil {
		l.vacate(i)
		return false, nil
	}
	if c.deadline.IsZero() {
		return true, nil
	}
	if now.IsZero() {
		*now = time.Now()
	}
	left := c.deadline.Sub(*now)
	if left <= 0 {
		c.err = &Error{Code: CodeDeadline, Method: c.m.name, Fate: FateNotSent}
		l.vacate(i)
		return false, c
	}
	var unit uint8
	h.Arg, unit = wire.PutTimeout(left)
	h.Flags = h.Flags&^wire.FlagMillis | unit
	return true, nil
}

// lapse finishes calls that were never sent. The loop's.
func (l *link) lapse(lost *clientCall) {
	if lost != nil {
		l.finish(lost)
		l.local.Woke()
	}
}

// flush sends what has been put, and parts from a server that drains when the last call was given
// up unsent. The loop's.
func (l *link) flush(ctx actor.Context) {
	l.out.flush(ctx, l.id)
	if l.draining {
		l.part(ctx)
	}
}

// renew has a message whose turn has come be what is left of it: see turn. mu is held.
func (o *out) renew(seg *segment) (lost *clientCall) {
	if seg.send == nil {
		seg.frames, lost = o.link.turn(seg.frames)
		return lost
	}
	p := seg.send.Bytes()
	rest, lost := o.link.turn(p)
	if len(rest) < len(p) { // its memory need not wait with it
		large := seg.send
		seg.send = rdma.NewSend(rest)
		large.Release()
	}
	return lost
}
