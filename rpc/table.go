package rpc

import (
	"cmp"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// table has the calls of a client's connection that the server has not answered, and the outgoing
// half by which their requests are sent. out.mu guards it. Any goroutine may make calls.
type table struct {
	out    out
	open   *atomic.Int64 // open streams of all connections of the client
	ledger *ledger
	// called with each call's result (0: it was answered), and how long it has taken (0: unknown)
	ended   func(Code, time.Duration)
	latency *latency    // of a pool's server; nil: it is not a pool's
	expired *clientCall // expired calls that the loop has to finish; belongs to the loop

	// Set before the first call.
	max      int // largest message that the server takes
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
}

// slot is the place of a call from its request to its answer.
type slot struct {
	call   *clientCall // nil: the caller has given up, or the slot is free
	number uint64      // number of the message with the request
	use    uint16
	busy   bool // the server has not answered
	stream bool
	marked bool // the call has a deadline, or was given up
}

// fate returns the fate of a request after its connection ended.
func (s *slot) fate(handed uint64, m *rdma.Closed) Fate {
	switch {
	case s.number > handed || s.number > m.Delivered+m.Unknown:
		return FateNotSent
	case s.number <= m.Delivered:
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

// answerLocked takes a frame about a call: an answer, an error or an item. The frame lies in the
// message reading. If it ends the call, answerLocked returns that.
func (l *table) answerLocked(h wire.Header, body []byte, reading *rdma.Received) (*clientCall, error) {
	if h.Type != wire.FrameReply && h.Type != wire.FrameError && h.Type != wire.FrameItem {
		return nil, violation("a frame of type %d from a server", h.Type)
	}
	i := h.Call.Slot()
	if i >= len(l.slots) || !l.slots[i].busy || wire.NewCallID(i, l.slots[i].use) != h.Call {
		return nil, violation("a frame of type %d for call %#x, which does not wait for one", h.Type, h.Call)
	}
	s := &l.slots[i]
	c := s.call
	if h.Type == wire.FrameItem {
		if !s.stream {
			return nil, violation("an item for call %#x, which is no stream", h.Call)
		}
		if c == nil {
			return nil, nil // was in flight when the stream was given up
		}
		t := l.declaredLocked(c.m)
		t.items++
		t.received += uint64(len(body))
		return nil, c.stream.itemLocked(reading, body)
	}
	var failure *Error
	if h.Type == wire.FrameError {
		var err error
		if failure, err = remoteError(h, body); err != nil {
			return nil, err
		}
	}
	l.vacateLocked(i)
	if c == nil {
		return nil, nil
	}
	if c.err = failure; failure != nil {
		failure.Method = c.m.name
		l.countLocked(c, cmp.Or(failure.Code, CodeUnknown))
	} else {
		l.countLocked(c, 0)
		l.declaredLocked(c.m).received += uint64(len(body))
		if !s.stream {
			c.body.b = body
		}
	}
	return c, nil
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
	l.slots[i].call, l.slots[i].busy, l.slots[i].marked = nil, false, false
	l.free = append(l.free, uint16(i))
	l.inUse.Add(-1)
}

// remoteError returns an error that the server has sent.
func remoteError(h wire.Header, body []byte) (*Error, error) {
	text, details, err := wire.ParseError(body)
	if err != nil {
		return nil, malformed(err)
	}
	e := &Error{Code: Code(h.Number), Message: text, Details: details, Fate: FateAnswered}
	if h.Flags&wire.FlagRefused != 0 {
		e.Fate = FateRefused
	}
	return e, nil
}

// widen lets the server send more of a stream.
func (l *table) widen(c *clientCall, n uint32) {
	l.out.mu.Lock()
	i := c.id.Slot()
	if i >= len(l.slots) || l.slots[i].call != c {
		l.out.mu.Unlock()
		return
	}
	l.out.putLocked(wire.Header{Type: wire.FrameWindow, Call: c.id, Arg: n}, nil)
	l.out.unlock()
}
