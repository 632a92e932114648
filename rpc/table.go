package rpc

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// table has the calls of a client's connection that the server has not answered, and the outgoing
// half by which their requests are sent. out.mu guards it. Any goroutine may make calls.
type table struct {
	out     out
	open    *atomic.Int64 // Client.streams
	beyond  *atomic.Int64 // bytes that its calls keep beyond streams' windows, and of answers
	ledger  *ledger
	latency *latency // of a pool's server; nil: it is not a pool's
	// of a pool's server: takes the result of each call; 0: it was answered
	ended   func(began time.Time, code Code)
	expired *clientCall // expired calls that the loop has to finish; belongs to the loop

	// Set before the first call.
	version  uint8 // of the protocol, as both sides speak it
	max      int   // largest message that the server takes
	most     int   // largest message that this side takes
	excess   int64 // limit of beyond
	window   int64 // initial window of a stream whose items this side sends
	peer     rdma.Addr
	identity string
	tls      *tls.ConnectionState

	// out.mu.
	slots    []slot
	free     []uint16     // free slots
	inUse    atomic.Int32 // slots that are taken; changed with out.mu locked
	marked   int          // slots whose request may need a change before it is sent: trimLocked
	limit    int          // limit of slots
	streams  int64        // limit of open
	numbers  []uint16     // declared numbers, indexed by method.index, counted from 1
	methods  []declared   // declared methods, indexed by number, counted from 0
	summed   uint64       // the last reading that included methods
	draining bool         // the server takes no more calls
	failed   error        // why there are no more calls; nil while there is a connection
	unread   int          // bytes of parts that were read, and not confirmed
	wakes    wakeList     // goroutines that wait for an item or a window that has come
}

// slot is the place of a call from its request to its answer.
type slot struct {
	call   *clientCall // nil: the caller has given up, or the slot is free
	number uint64      // number of the message with the request among the gathered ones
	before uint64      // pieces that were handed to the connection before that message
	cut    *cut        // a large request, or the last large item, in pieces; nil: none
	use    uint16
	busy   bool  // the server has not answered
	stream bool  // it counts as one
	items  bool  // the server sends items
	marked bool  // the call has a deadline, or was given up
	headed bool  // a header, an item or a part has come: no header may follow
	closed bool  // no further items are sent
	window int64 // bytes of items that may be sent
}

// sendsItem reports whether pieces of the stream's last item are still to be sent: no other item
// may overtake them.
func (s *slot) sendsItem() bool { return s.cut != nil && len(s.cut.pieces) > 0 }

// requestFate returns the fate of a request after its connection ended. unsure: it is unknown which
// messages were sent.
func (s *slot) requestFate(handed uint64, unsure bool, m *rdma.Closed) Fate {
	n := s.number + s.before
	if s.cut != nil && !s.call.m.sends { // the request ends with its last piece
		n = s.cut.number
	}
	switch {
	case s.number > handed || n == 0:
		return FateNotSent
	case unsure:
		return FateUnknown
	case n > m.Delivered+m.Unknown:
		return FateNotSent
	case n <= m.Delivered:
		return FateDelivered
	}
	return FateUnknown
}

// endedLocked returns the error of a call whose connection is not there.
func (l *table) endedLocked(m *method, f Fate) *Error {
	code, cause := CodeUnavailable, l.failed
	if errors.Is(cause, ErrClosed) {
		code, cause = CodeClosed, nil
	}
	return &Error{Code: code, Method: m.name, Fate: f, Err: cause}
}

// answerLocked takes a frame about a call: an answer, an error, an item, or what belongs to one.
// The frame lies in the message reading. If it ends the call, answerLocked returns that.
func (l *table) answerLocked(h wire.Header, body []byte, reading *rdma.Received) (*clientCall, error) {
	if !l.mayReceive(h.Type) {
		return nil, violationError("a frame of type %d from a server", h.Type)
	}
	if h.Type == wire.FrameTaken {
		return nil, l.out.takenLocked(int(h.Arg))
	}
	i := h.Call.Slot()
	if i >= len(l.slots) || !l.slots[i].busy || wire.NewCallID(i, l.slots[i].use) != h.Call {
		return nil, violationError("a frame of type %d for call %#x, which does not wait for one", h.Type, h.Call)
	}
	s := &l.slots[i]
	switch h.Type {
	case wire.FrameItem, wire.FramePart:
		return l.itemLocked(i, h, body, reading)
	case wire.FrameWindow:
		return nil, l.widenLocked(s, h)
	case wire.FrameHeader:
		return nil, l.headerLocked(s, h, body)
	}
	return l.endLocked(i, h, body)
}

// mayReceive reports whether a server may send frames of a type.
func (l *table) mayReceive(t wire.FrameType) bool {
	switch t {
	case wire.FrameReply, wire.FrameError, wire.FrameItem:
		return true
	case wire.FrameWindow, wire.FrameHeader, wire.FramePart:
		return l.version >= 2
	case wire.FrameTaken:
		return l.version >= 3
	}
	return false
}

// endLocked takes an answer or an error.
func (l *table) endLocked(i int, h wire.Header, body []byte) (*clientCall, error) {
	s := &l.slots[i]
	c := s.call
	var trailer []byte
	if h.Flags&wire.FlagTrailer != 0 && l.version >= 2 {
		var ok bool
		if trailer, body, ok = wire.CutMetadata(body); !ok {
			return nil, violationError("the trailer of call %#x", h.Call)
		}
	}
	var failure *Error
	if h.Type == wire.FrameError {
		var err error
		if failure, err = remoteError(h, body); err != nil {
			return nil, err
		}
	}
	inParts := h.Type == wire.FrameReply && h.Flags&wire.FlagParts != 0 && l.version >= 2
	if inParts {
		l.unread += int(h.Length)
	}
	switch {
	case c == nil:
	case h.Type == wire.FrameReply && c.exceeds(len(body)):
		failure = beyondMaxResponse(c.m, c.most, FateAnswered)
		c.parts.releaseAll()
	case inParts:
		if err := l.partLocked(c, body); err != nil {
			return nil, err
		}
		body = nil
	default:
		c.parts.releaseAll() // of an answer that the server has given up
	}
	l.vacateLocked(i)
	if c == nil {
		return nil, nil
	}
	if c.meta != nil && len(trailer) > 0 {
		c.meta.trailer = Pairs{bytes.Clone(trailer)}
	}
	if c.err = failure; failure != nil {
		failure.Method = c.m.name
		l.countLocked(c, cmp.Or(failure.Code, CodeUnknown))
	} else {
		l.countLocked(c, 0)
		l.declaredLocked(c.m).received += uint64(len(body) + c.parts.n)
		if !c.m.items {
			c.body.b = body
		}
	}
	return c, nil
}

// itemLocked takes an item of a stream, or a part of one or of an answer. If the item or answer is
// too large, or there is no memory for it, itemLocked gives up the call and returns it.
func (l *table) itemLocked(i int, h wire.Header, body []byte, reading *rdma.Received) (*clientCall, error) {
	s := &l.slots[i]
	s.headed = true
	whole := h.Type == wire.FrameItem
	if whole && !s.items {
		return nil, violationError("an item for call %#x, which is no stream", h.Call)
	}
	last := whole && h.Flags&wire.FlagParts != 0 && l.version >= 2
	if !whole || last {
		l.unread += len(body)
	}
	c := s.call
	var err error
	switch {
	case c == nil: // was in flight when the call was given up
		return nil, nil
	case c.exceeds(len(body)):
		return l.rejectLocked(i, beyondMaxResponse(c.m, c.most, FateUnknown)), nil
	case !s.items:
		err = l.partLocked(c, body)
	case !whole:
		err = c.stream.partLocked(h.Call, body)
	default:
		d := l.declaredLocked(c.m)
		d.items++
		var n int
		n, err = c.stream.itemLocked(reading, h.Call, body, last)
		d.received += uint64(n)
		if c.stream.woke {
			l.wakes.add(c.stream.ready)
		}
	}
	if err != nil {
		return nil, err
	}
	return l.boundLocked(i), nil
}

// boundLocked gives up a call for whose last item, or part, there is no memory, and returns it.
func (l *table) boundLocked(i int) *clientCall {
	c := l.slots[i].call
	if l.keepLocked(c) {
		return nil
	}
	what := "an item"
	if !c.m.items {
		what = "an answer"
	}
	text := fmt.Sprintf("no memory for %s: those in parts, or beyond the windows, have %d bytes (half of ClientConfig.Memory)", what, l.excess)
	return l.rejectLocked(i, &Error{Code: CodeOverloaded, Method: c.m.name, Message: text, Fate: FateUnknown})
}

// rejectLocked gives up a call because of the item or answer that is arriving, and returns the
// call. why has the fate of a stream.
func (l *table) rejectLocked(i int, why *Error) *clientCall {
	c := l.slots[i].call
	if !c.m.items {
		why.Fate = FateAnswered
		c.parts.releaseAll()
	}
	c.err = why
	l.giveUpLocked(i, why.Code, why.Message)
	return c
}

// keepLocked changes the memory that a call keeps: a stream's beyond its window, and the parts of
// another call's answer. Not ok: there is none.
func (l *table) keepLocked(c *clientCall) (ok bool) {
	n := c.parts.n
	if c.m.items {
		n = c.stream.excess
	}
	more := int64(n - c.kept)
	if more == 0 {
		return true
	}
	if l.beyond.Add(more) > l.excess && more > 0 {
		l.beyond.Add(-more)
		return false
	}
	c.kept = n
	return true
}

// partLocked takes a part of an answer.
func (l *table) partLocked(c *clientCall, body []byte) error {
	return c.parts.add(c.id, body, l.most-wire.HeaderLen)
}

// widenLocked lets the caller send more items.
func (l *table) widenLocked(s *slot, h wire.Header) error {
	switch s.window += int64(h.Arg); {
	case s.call == nil: // was in flight when the stream was given up
		return nil
	case !s.call.m.sends:
		return violationError("a window for call %#x, which sends no items", h.Call)
	case h.Arg == 0 || s.window > maxStreamWindow:
		return violationError("a window of %d bytes", s.window)
	}
	l.wakes.add(s.call.stream.sent.room)
	return nil
}

// headerLocked takes the metadata that precedes items and the answer.
func (l *table) headerLocked(s *slot, h wire.Header, body []byte) error {
	if s.headed || !wire.ValidMetadata(body) {
		return violationError("the header of call %#x", h.Call)
	}
	s.headed = true
	if s.call != nil && s.call.meta != nil {
		s.call.meta.header = Pairs{bytes.Clone(body)}
	}
	return nil
}

// slotLocked returns the slot of a call that the server has not answered, and the caller has not
// given up; nil: there is none.
func (l *table) slotLocked(c *clientCall) *slot {
	if i := c.id.Slot(); i < len(l.slots) && l.slots[i].call == c {
		return &l.slots[i]
	}
	return nil
}

// metaOf returns metadata of an answer that has come.
func (l *table) metaOf(p *Pairs) Pairs {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return *p
}

// refusedLocked ends the calls whose requests came too late to a draining server: it has answered
// all that it has handled.
func (l *table) refusedLocked() (list *clientCall) {
	if l.inUse.Load() == 0 {
		return nil
	}
	for i := range l.slots {
		if !l.slots[i].busy {
			continue
		}
		if c := l.slots[i].call; c != nil {
			c.err = &Error{Code: CodeDraining, Method: c.m.name, Fate: FateRefused}
			l.countLocked(c, CodeDraining)
			c.next, list = list, c
		}
		l.vacateLocked(i)
	}
	return list
}

// vacateLocked frees a slot for another call.
func (l *table) vacateLocked(i int) {
	if l.slots[i].stream {
		l.open.Add(-1)
	}
	if l.slots[i].marked {
		l.marked--
	}
	l.dropCutLocked(&l.slots[i])
	l.slots[i].call, l.slots[i].busy, l.slots[i].marked = nil, false, false
	l.free = append(l.free, uint16(i))
	l.inUse.Add(-1)
}

// dropCutLocked drops the rest of a large request or item, if there is any.
func (l *table) dropCutLocked(s *slot) {
	if s.cut != nil && len(s.cut.pieces) > 0 {
		l.out.dropCutLocked(s.cut)
	}
	s.cut = nil
}

// remoteError returns an error that the server has sent.
func remoteError(h wire.Header, body []byte) (*Error, error) {
	text, details, err := wire.ParseError(body)
	if err != nil {
		return nil, malformedError(err)
	}
	e := &Error{Code: Code(h.Number), Message: text, Details: details, Fate: FateAnswered}
	if h.Flags&wire.FlagRefused != 0 {
		e.Fate = FateRefused
	}
	return e, nil
}

// grantWindow lets the server send more of a stream.
func (l *table) grantWindow(c *clientCall, n uint32) {
	l.out.mu.Lock()
	if l.slotLocked(c) == nil {
		l.out.mu.Unlock()
		return
	}
	c.stream.measureExcess()
	l.keepLocked(c)
	l.out.putLocked(wire.Header{Type: wire.FrameWindow, Call: c.id, Arg: n}, nil)
	l.out.unlockAndWake()
}
