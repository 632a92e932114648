package handshakes

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"sync"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// TLS is a handshake in TLS mode. It takes the incoming frames and returns the outgoing ones.
//
// It checks certificates and runs the user's code, so it is not computed on the loop. A step on a
// separate goroutine takes the frames that have arrived. There is one step at a time, and between
// two of them the handshake has only the goroutine of crypto/tls. Until its peer sends something, a
// server does not have even that.
//
// Only the loop may call its methods.
type TLS struct {
	Request, Reply secure.Hello

	// Only for the loop.
	waiting     [][]byte // for the next step: frames, and perhaps records behind them
	came, bytes int      // in all
	begun       bool     // the first step was taken
	under       bool     // a step is under way, or its outcome is not handled

	mu      sync.Mutex
	busy    bool                    // a step is under way and owns tls and channel
	over    bool                    // the identifier no longer needs the handshake
	cancel  context.CancelCauseFunc // cancels the user's code in a step
	tls     *secure.TLS             // nil: not begun, or closed
	channel *secure.Channel         // nil: not done, or handed out
}

// Outcome is the result of a step.
type Outcome struct {
	Frames [][]byte             // to send; after an error, an alert
	State  *tls.ConnectionState // nil: the handshake is not done
	Err    error
	rest   [][]byte // the peer's records
}

// Bounds on the input before the handshake is done here: frames, the request and a probe.
const (
	maxFramesCome = secure.MaxTLSFrames + 2
	maxFrameBytes = secure.MaxTLSBytes + maxFramesCome*secure.TLSFrameOverhead + firstRecords
	firstRecords  = 1 << 10
)

// Put keeps a frame for the next step. An error ends the connection.
func (h *TLS) Put(b []byte) error {
	h.came++
	h.bytes += len(b)
	err := secure.PeerAlert(b) // not in a step: the end of the connection follows
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

// Step is a part of the handshake that is computed in one go.
type Step struct {
	of     *TLS
	frames [][]byte
	begin  func() error // set for the first step; nil: nothing to begin
}

// Next returns the next step, which takes the waiting frames; a client's first step needs none.
// nil: there is nothing to do, or a step is under way. Call Compute, and then Done.
func (h *TLS) Next(server bool) *Step {
	if h.under || len(h.waiting) == 0 && (server || h.begun) || !h.beginStep() {
		return nil
	}
	s := &Step{of: h, frames: h.waiting}
	h.waiting, h.begun, h.under = nil, true, true
	return s
}

// First reports whether the handshake has not begun.
func (s *Step) First() bool { return s.of.cancel == nil }

// Begin sets the function with which the first step begins the handshake.
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

// beginStep begins a step. Not ok: the handshake has ended.
func (h *TLS) beginStep() (ok bool) {
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

// Compute processes the frames and returns the outcome. Any goroutine.
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

// Finish hands out the channel of a handshake that is done, and the peer's records behind the
// handshake. m is the last step's outcome.
func (h *TLS) Finish(m *Outcome) (channel *secure.Channel, records [][]byte) {
	channel, records = h.channel, append(m.rest, h.waiting...)
	h.channel, h.waiting = nil, nil
	h.cancel(nil)
	return channel, records
}

// End ends a handshake that the identifier no longer needs. It reports whether the caller must call
// Close: otherwise the step under way does, or there is nothing to close.
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

// Close releases a handshake's resources. It may wait for crypto/tls, so it is not for the loop.
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
