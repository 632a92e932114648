package rpc

import (
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// This file puts requests into a connection's queue, and takes them out again when their callers
// give up. A request may wait in the client for the loop, for credits, or for memory for a large
// message (docs/wire.md). When its turn comes, trimLocked decides whether it is still sent.

// queueRequest queues a request, or returns the reason why it cannot.
func (l *table) queueRequest(c *clientCall, metadata, body []byte) error {
	e := readyFrame{h: wire.Header{Type: wire.FrameCall, Flags: c.m.callFlags()}, metadata: metadata, body: body}
	n := wire.RequestLen(metadata, body)
	if len(metadata) > 0 {
		e.h.Flags |= wire.FlagMetadata
	}
	if wire.HeaderLen+n > l.max {
		return tooLarge(c.m, "the request", "Server", n, l.max, FateNotSent)
	}
	e.encodeLarge(l.out.cuts.on)
	l.out.mu.Lock()
	err := l.refusalLocked(c.m)
	var number uint16
	if err == nil {
		var ok bool
		if number, ok = l.numberLocked(c.m); !ok {
			err = &Error{Code: CodeUnknownMethod, Method: c.m.name, Fate: FateNotSent, Message: tooManyMethods}
		}
	}
	if err != nil {
		l.out.mu.Unlock()
		e.release()
		return err
	}
	e.h.Number, e.h.Call = number, l.enterLocked(c)
	l.methods[number].sent += uint64(len(metadata) + len(body))
	s := &l.slots[e.h.Call.Slot()]
	s.number, s.cut = l.out.putEncodedLocked(&e), e.cut
	l.out.unlockAndWake()
	return nil
}

// refusalLocked returns why no further call can begin now. nil: one can.
func (l *table) refusalLocked(m *method) error {
	switch {
	case l.failed != nil:
		return l.endedLocked(m, FateNotSent)
	case l.draining:
		return &Error{Code: CodeDraining, Method: m.name, Fate: FateNotSent}
	case int(l.inUse.Load()) >= l.limit:
		return l.overloadedError(m, "%d calls of the connection wait for their answers (MaxCalls, here or at the server)", l.limit)
	case m.sends && l.version < 2:
		return &Error{Code: CodeVersion, Method: m.name, Fate: FateNotSent, Message: "the server takes no streams of clients"}
	case m.countsAsStream() && l.open.Load() >= l.streams:
		return l.overloadedError(m, "%d streams are open, or not read to their end (ClientConfig.MaxStreams, StreamWindow and Memory)", int(l.streams))
	}
	return nil
}

// overloadedError returns the error of a call beyond a limit of this side.
func (l *table) overloadedError(m *method, text string, limit int) error {
	return &Error{Code: CodeOverloaded, Method: m.name, Fate: FateNotSent, Message: fmt.Sprintf(text, limit)}
}

// tooManyMethods is the text of the error for a method that gets no number.
var tooManyMethods = fmt.Sprintf("%d others were called on this connection, which has numbers for no more", wire.MaxMethods)

// numberLocked returns the method's number on this connection, and declares the method if that was
// not done yet. Not ok: all numbers are taken.
func (l *table) numberLocked(m *method) (n uint16, ok bool) {
	for len(l.numbers) <= m.index {
		l.numbers = append(l.numbers, 0)
	}
	if l.numbers[m.index] == 0 {
		n = uint16(len(l.methods))
		if n == wire.MaxMethods {
			return 0, false
		}
		l.out.putLocked(wire.Header{Type: wire.FrameDeclare, Number: n}, []byte(m.name))
		l.methods = append(l.methods, declared{counts: l.ledger.countsOf(m)})
		l.numbers[m.index] = n + 1
	}
	return l.numbers[m.index] - 1, true
}

// enterLocked assigns a slot to a call.
func (l *table) enterLocked(c *clientCall) wire.CallID {
	var i int
	if n := len(l.free); n > 0 {
		i = int(l.free[n-1])
		l.free = l.free[:n-1]
	} else {
		i = len(l.slots)
		l.slots = append(l.slots, slot{})
	}
	l.inUse.Add(1)
	counts := c.m.countsAsStream()
	if counts {
		l.open.Add(1)
	}
	s := &l.slots[i]
	s.use++
	s.call, s.busy, s.stream, s.items = c, true, counts, c.m.items
	s.window, s.closed, s.headed, s.before = l.window, !c.m.sends, false, l.out.pieces
	if !c.deadline.IsZero() {
		l.markLocked(s)
	}
	c.id = wire.NewCallID(i, s.use)
	l.beginLocked(c)
	return c.id
}

// markLocked notes that a request may not be sent as it was queued: trimLocked may have to cut it
// out, or to update its time-out.
func (l *table) markLocked(s *slot) {
	if !s.marked {
		s.marked = true
		l.marked++
	}
}

// cancelCall cancels a call: its answer is dropped. If the request was sent, the server is
// notified. It counts as failed with the code of why. Not ok: the call was finished before, or is
// being finished.
func (l *table) cancelCall(c *clientCall, why *Error) (f Fate, ok bool) {
	text := reasonOfEnd(why)
	l.out.mu.Lock()
	i := c.id.Slot()
	if i >= len(l.slots) || l.slots[i].call != c {
		l.out.mu.Unlock()
		return FateUnknown, false
	}
	f = l.giveUpLocked(i, why.Code, text)
	l.out.unlockAndWake()
	return f, true
}

// giveUpLocked gives up the call of a slot, and returns its fate. code and text are the reason.
func (l *table) giveUpLocked(i int, code Code, text string) Fate {
	s := &l.slots[i]
	c := s.call
	s.call = nil
	result := code
	if code != CodeDeadline { // the reason is this side's, whatever its code
		result = CodeCanceled
	}
	l.countResultLocked(c, code, result)
	l.markLocked(s)
	f := FateUnknown
	if s.number > l.out.handed || s.cut != nil && !s.cut.isComplete() && !c.m.sends {
		f = FateNotSent
	}
	l.dropCutLocked(s)
	if s.number > l.out.handed { // trimLocked cuts it out
		return f
	}
	h, body := wire.Header{Type: wire.FrameCancel, Call: c.id}, []byte(nil)
	if text != "" && l.version >= 2 {
		h.Number, body = uint16(code), wire.AppendError(nil, text, nil)
	}
	l.out.putLocked(h, body)
	return f
}

// reasonOfEnd returns the text that a server gets with the cancellation of a call: the cause of its
// context's end, if that has one. The cause is the user's, and its Error may not return.
func reasonOfEnd(why *Error) (text string) {
	if text = why.Message; text == "" && why.Err != nil {
		tryCall(func() { text = why.Err.Error() }, func(*PanicError) {})
	}
	return text
}

// handLocked is trimLocked for a message that is handed to the connection. If pieces have
// overtaken it, it corrects the number of those that precede its requests.
func (l *table) handLocked(b []byte) (rest []byte) {
	if l.out.handed <= l.out.overtaken {
		for left := b; len(left) > 0; {
			h, _, after, err := wire.ParseFrame(left)
			if err != nil {
				panic(err) // was written by this side
			}
			if i := h.Call.Slot(); h.Type == wire.FrameCall && h.Call == wire.NewCallID(i, l.slots[i].use) {
				l.slots[i].before = l.out.pieces
			}
			left = after
		}
	}
	return l.trimLocked(b)
}

// trimLocked returns the part of b, the next message, that is still to be sent. It cuts out
// requests that were given up. It also cuts out those whose deadline has passed, and puts their
// calls on l.expired, which its caller finishes. It updates the remaining time in other requests
// with a deadline. If no request is marked, it returns b as it is, unless the server drains or the
// connection has failed.
func (l *table) trimLocked(b []byte) (rest []byte) {
	if l.marked == 0 && !l.draining && l.failed == nil {
		return b
	}
	var now time.Time
	var last wire.CallID // of the requests cut out
	kept := 0
	for at := 0; at < len(b); {
		h, body, _, err := wire.ParseFrame(b[at:])
		if err != nil {
			panic(err) // was written by this side
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
	if kept == 0 { // messages are counted, so this one must be sent: it cancels a call
		wire.Header{Type: wire.FrameCancel, Call: last}.Put(b)
		kept = wire.HeaderLen
	}
	return b[:kept]
}

// wantedLocked reports whether a caller still waits for a request. If its call has a deadline, it
// writes the remaining time into h. It sets now on first use.
func (l *table) wantedLocked(h *wire.Header, now *time.Time) bool {
	i := h.Call.Slot()
	s := &l.slots[i]
	if !s.busy || wire.NewCallID(i, s.use) != h.Call {
		return false // the connection is over, or about to be
	}
	c := s.call
	if c == nil {
		l.methods[h.Number].counts.late.Add(1)
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
		l.countLocked(c, CodeDeadline)
		l.declaredLocked(c.m).counts.late.Add(1)
		l.vacateLocked(i)
		c.next, l.expired = l.expired, c
		return false
	}
	var unit uint8
	h.Arg, unit = wire.PutTimeout(left)
	h.Flags = h.Flags&^wire.FlagMillis | unit
	return true
}
