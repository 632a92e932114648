package rpc

import (
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A request's way into a connection, and out of it again when its caller gives up. It may wait in
// the client: for the loop, for credits, for memory to be offered from. trimLocked decides about it
// when its turn has come.

// start puts a request, or says why not.
func (l *table) start(c *clientCall, metadata, body []byte) error {
	var h wire.Header
	n := wire.RequestLen(metadata, body)
	if len(metadata) > 0 {
		h.Flags |= wire.FlagMetadata
	}
	if c.m.stream {
		h.Flags |= wire.FlagStream
	}
	if wire.HeaderLen+n > l.max {
		return &Error{
			Code: CodeTooLarge, Method: c.m.name, Fate: FateNotSent,
			Message: fmt.Sprintf("the request has %d bytes, the server takes %d", n, l.max-wire.HeaderLen),
		}
	}
	own := large(metadata, body)
	l.out.mu.Lock()
	if err := l.refusalLocked(c.m); err != nil {
		l.out.mu.Unlock()
		return err
	}
	number, ok := l.numberLocked(c.m)
	if !ok {
		l.out.mu.Unlock()
		return &Error{Code: CodeUnknownMethod, Method: c.m.name, Fate: FateNotSent, Message: tooManyMethods}
	}
	h.Type, h.Number = wire.FrameCall, number
	h.Call = l.enterLocked(c)
	l.slots[h.Call.Slot()].number = l.out.putLargeLocked(h, own, metadata, body)
	l.out.unlock()
	return nil
}

// refusalLocked is why there can be no further call now; nil: there can.
func (l *table) refusalLocked(m *method) error {
	switch {
	case l.failed != nil:
		return l.endedLocked(m, FateNotSent)
	case l.draining:
		return &Error{Code: CodeDraining, Method: m.name, Fate: FateNotSent}
	case l.inUse >= l.limit:
		return &Error{Code: CodeOverloaded, Method: m.name, Fate: FateNotSent}
	case m.stream && l.open.Load() >= l.streams:
		return &Error{Code: CodeOverloaded, Method: m.name, Fate: FateNotSent, Message: "as many streams are open"}
	}
	return nil
}

// tooManyMethods is why a method has no number.
var tooManyMethods = fmt.Sprintf("%d others were called on this connection, which has numbers for no more", wire.MaxMethods)

// numberLocked is what a method is called on this connection. Not ok: all numbers are taken.
func (l *table) numberLocked(m *method) (n uint16, ok bool) {
	for len(l.methods) <= m.index {
		l.methods = append(l.methods, 0)
	}
	if l.methods[m.index] == 0 {
		if l.declared == wire.MaxMethods {
			return 0, false
		}
		l.out.putLocked(wire.Header{Type: wire.FrameDeclare, Number: l.declared}, []byte(m.name))
		l.declared++
		l.methods[m.index] = l.declared
	}
	return l.methods[m.index] - 1, true
}

// enterLocked gives a call its slot.
func (l *table) enterLocked(c *clientCall) wire.CallID {
	var i int
	if n := len(l.free); n > 0 {
		i = int(l.free[n-1])
		l.free = l.free[:n-1]
	} else {
		i = len(l.slots)
		l.slots = append(l.slots, slot{})
	}
	l.inUse++
	if c.m.stream {
		l.open.Add(1)
	}
	s := &l.slots[i]
	s.use++
	s.call, s.busy, s.stream = c, true, c.m.stream
	if !c.deadline.IsZero() {
		l.markLocked(s)
	}
	c.id = wire.NewCallID(i, s.use)
	return c.id
}

// markLocked notes that a request may not go as it was put.
func (l *table) markLocked(s *slot) {
	if !s.marked {
		s.marked = true
		l.marked++
	}
}

// abandon has the answer of a call go to nobody, and notifies the server if the request has gone.
// Not ok: the call is being finished, or was.
func (l *table) abandon(c *clientCall) (f Fate, ok bool) {
	l.out.mu.Lock()
	i := c.id.Slot()
	if i >= len(l.slots) || l.slots[i].call != c {
		l.out.mu.Unlock()
		return FateUnknown, false
	}
	l.slots[i].call = nil
	l.markLocked(&l.slots[i])
	if l.slots[i].number > l.out.handed { // trimLocked cuts it out
		l.out.mu.Unlock()
		return FateNotSent, true
	}
	l.out.putLocked(wire.Header{Type: wire.FrameCancel, Call: c.id}, nil)
	l.out.unlock()
	return FateUnknown, true
}

// trimLocked gives what is still to be sent of a message that is next. Requests that were given up
// are cut out. So are those whose deadline has passed: their calls are lost, and are the caller's
// to finish. The others say how much time they have left. Without any of these nothing is looked
// through, unless the server wants no calls any more.
func (l *table) trimLocked(b []byte) (rest []byte) {
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
			if !l.wantedLocked(&h, &now) {
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

// wantedLocked reports whether somebody waits for a request, and has it say how long. now is read
// when it is needed.
func (l *table) wantedLocked(h *wire.Header, now *time.Time) bool {
	i := h.Call.Slot()
	s := &l.slots[i]
	if !s.busy || wire.NewCallID(i, s.use) != h.Call {
		return false // the connection is over, or about to be
	}
	c := s.call
	if c == nil {
		l.vacateLocked(i)
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
		l.vacateLocked(i)
		c.next, l.expired = l.expired, c
		return false
	}
	var unit uint8
	h.Arg, unit = wire.PutTimeout(left)
	h.Flags = h.Flags&^wire.FlagMillis | unit
	return true
}
