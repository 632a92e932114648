package handshakes

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"sync"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// TLS is a handshake in TLS mode. It is fed with the frames that come, and says what to send.
//
// Certificates are checked, and the user's code runs, so nothing of it is done on the loop. What
// has come is taken in a step, which has a goroutine of its own. There is one step at a time, and
// between two of them the handshake has no goroutine but that of crypto/tls. Until its peer sends
// something, a server has not even that.
//
// Its methods are for the loop, except for Step's.
type TLS struct {
	Request, Reply secure.Hello

	// The loop's.
	waiting     [][]byte // what has come for the next step: frames, and perhaps records behind them
	came, bytes int      // in all
	begun       bool     // there was a step
	under       bool     // there is one, or its outcome was not handled

	mu      sync.Mutex
	busy    bool                    // a step is under way, and has what is below
	over    bool                    // the identifier needs it no more
	cancel  context.CancelCauseFunc // ends what takes too long in a step
	tls     *secure.TLS             // nil: not begun, or closed
	channel *secure.Channel         // nil: it is not done, or the connection has it
}

// Outcome is what has come of a step.
type Outcome struct {
	Frames [][]byte             // to send; after an error, an alert
	State  *tls.ConnectionState // nil: it is not done
	Err    error
	rest   [][]byte // records of the peer's
}

// What comes at most before the handshake is done here: frames, the request and a probe.
const (
	maxFramesCome = secure.MaxTLSFrames + 2
	maxFrameBytes = secure.MaxTLSBytes + maxFramesCome*secure.TLSFrameOverhead + firstRecords
	firstRecords  = 1 << 10
)

// Put keeps a frame for the next step. An error ends the connection.
func (h *TLS) Put(b []byte) error {
	h.came++
	h.bytes += len(b)
	err := secure.PeerAlert(b) // at once: the end of the connection is behind it
	if h.came > maxFramesCome || h.bytes > maxFrameBytes {
		err = &secure.HandshakeError{What: fmt.Sprintf("more than %d bytes or %d frames", secure.MaxTLSBytes, secure.MaxTLSFrames)}
	}
	if err != nil {
		return err
	}
	h.waiting = append(h.waiting, bytes.Clone(b))
	return nil
}

// Heard reports whether the peer has sent something.
func (h *TLS) Heard() bool { return h.came > 0 }

// Step is a part of the handshake that is computed at once.
type Step struct {
	of     *TLS
	frames [][]byte
	begin  func() error // what the first one does first; nil: nothing
}

// Next returns the next step: who connects begins with one, after that each takes what has come.
// nil: there is nothing to do, or a step is under way. A step is computed, and then Done.
func (h *TLS) Next(server bool) *Step {
	if h.under || len(h.waiting) == 0 && (server || h.begun) || !h.take() {
		return nil
	}
	s := &Step{of: h, frames: h.waiting}
	h.waiting, h.begun, h.under = nil, true, true
	return s
}

// First reports whether the handshake is still to be begun.
func (s *Step) First() bool { return s.of.cancel == nil }

// Begin has the first step begin the handshake, before it takes anything.
func (s *Step) Begin(begin func(context.Context) (*secure.TLS, error)) {
	h := s.of
	ctx, cancel := context.WithCancelCause(context.Background())
	h.cancel = cancel
	s.begin = func() (err error) {
		h.tls, err = begin(ctx)
		return err
	}
}

// Done notes that the outcome of a step is being handled.
func (h *TLS) Done() { h.under = false }

// take begins a step. Not ok: there are to be no more.
func (h *TLS) take() (ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy = !h.over
	return h.busy
}

// giveBack ends a step.
func (h *TLS) giveBack() {
	h.mu.Lock()
	h.busy = false
	over := h.over
	h.mu.Unlock()
	if over {
		h.Close()
	}
}

// Compute takes the frames, and says what has come of that. Any goroutine.
func (s *Step) Compute() *Outcome {
	m := s.compute()
	s.of.giveBack()
	return m
}

func (s *Step) compute() *Outcome {
	m, h, frames := new(Outcome), s.of, s.frames
	if s.begin != nil {
		if m.Err = s.begin(); m.Err != nil {
			m.Frames = [][]byte{secure.InternalAlert()}
			return m
		}
	}
	t := h.tls
	for len(frames) > 0 && m.Err == nil && !t.Done() {
		m.Err = t.Take(frames[0])
		frames = frames[1:]
	}
	for f := t.Next(); f != nil; f = t.Next() {
		m.Frames = append(m.Frames, f)
	}
	if m.Err == nil && t.Done() {
		var state tls.ConnectionState
		if h.channel, state, m.Err = t.Finish(); m.Err == nil {
			m.rest, m.State = frames, &state
		}
	}
	if m.Err != nil || m.State != nil {
		h.tls = nil
		t.Close()
	}
	return m
}

// Finish hands out the channel of a handshake that is done, by its last step's outcome, and the
// peer's records that are behind the handshake.
func (h *TLS) Finish(m *Outcome) (channel *secure.Channel, records [][]byte) {
	channel, records = h.channel, append(m.rest, h.waiting...)
	h.channel, h.waiting = nil, nil
	h.cancel(nil)
	return channel, records
}

// End ends a handshake that the identifier needs no more. It reports whether Close is still to be
// called: otherwise the step under way does that.
func (h *TLS) End(cause error) (unclosed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.over = true
	if h.cancel != nil {
		h.cancel(cause)
	}
	return !h.busy && (h.tls != nil || h.channel != nil)
}

// Close frees what a handshake has. It may wait for crypto/tls, so it is not for the loop.
func (h *TLS) Close() {
	if h.tls != nil {
		h.tls.Close()
		h.tls = nil
	}
	if h.channel != nil {
		h.channel.Forget()
		h.channel = nil
	}
}
