package rpc

import (
	"fmt"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A request's way into a connection, and out of it again when its caller gives up.

// start puts a request, or says why not.
func (l *link) start(c *clientCall, metadata, body []byte) error {
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
	if err := l.refusal(c.m); err != nil {
		l.out.mu.Unlock()
		return err
	}
	number, ok := l.number(c.m)
	if !ok {
		l.out.mu.Unlock()
		return &Error{Code: CodeUnknownMethod, Method: c.m.name, Fate: FateNotSent, Message: tooManyMethods}
	}
	h.Type, h.Number = wire.FrameCall, number
	h.Call = l.enter(c)
	l.slots[h.Call.Slot()].number = l.out.putLarge(h, own, metadata, body)
	l.out.unlock()
	return nil
}

// refusal is why there can be no further call now; nil: there can. out.mu is held.
func (l *link) refusal(m *method) error {
	switch {
	case l.failed != nil:
		return l.ended(m, FateNotSent)
	case l.draining:
		return &Error{Code: CodeDraining, Method: m.name, Fate: FateNotSent}
	case l.inUse >= l.limit:
		return &Error{Code: CodeOverloaded, Method: m.name, Fate: FateNotSent}
	case m.stream && l.c.streams.Load() >= l.streams:
		return &Error{Code: CodeOverloaded, Method: m.name, Fate: FateNotSent, Message: "as many streams are open"}
	}
	return nil
}

// tooManyMethods is why a method has no number.
var tooManyMethods = fmt.Sprintf("%d others were called on this connection, which has numbers for no more", maxMethods)

// number is what a method is called on this connection. Not ok: all numbers are taken. out.mu is
// held.
func (l *link) number(m *method) (n uint16, ok bool) {
	for len(l.methods) <= m.index {
		l.methods = append(l.methods, 0)
	}
	if l.methods[m.index] == 0 {
		if l.declared == maxMethods {
			return 0, false
		}
		l.out.put(wire.Header{Type: wire.FrameDeclare, Number: l.declared}, []byte(m.name))
		l.declared++
		l.methods[m.index] = l.declared
	}
	return l.methods[m.index] - 1, true
}

// enter gives a call its slot. out.mu is held.
func (l *link) enter(c *clientCall) wire.CallID {
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
		l.c.streams.Add(1)
	}
	s := &l.slots[i]
	s.use++
	s.call, s.busy, s.stream = c, true, c.m.stream
	if !c.deadline.IsZero() {
		l.mark(s)
	}
	c.id = wire.NewCallID(i, s.use)
	return c.id
}

// mark notes that a request may not go as it was put. out.mu is held.
func (l *link) mark(s *slot) {
	if !s.marked {
		s.marked = true
		l.marked++
	}
}

// abandon has a call answered to nobody, and tells the server if the request has gone. Not ok: the
// call is being finished, or was.
func (l *link) abandon(c *clientCall) (f Fate, ok bool) {
	l.out.mu.Lock()
	i := c.id.Slot()
	if i >= len(l.slots) || l.slots[i].call != c {
		l.out.mu.Unlock()
		return FateUnknown, false
	}
	l.slots[i].call = nil
	l.mark(&l.slots[i])
	if l.slots[i].number > l.out.handed { // turn cuts it out
		l.out.mu.Unlock()
		return FateNotSent, true
	}
	l.out.put(wire.Header{Type: wire.FrameCancel, Call: c.id}, nil)
	l.out.unlock()
	return FateUnknown, true
}
