package rpc

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// callContext is the context of a handler. Most handlers never wait for its end. So the real
// context, which can be cancelled, is made on first use.
type callContext struct {
	info     Info
	metadata []byte
	deadline time.Time // zero: none

	mu   sync.Mutex
	meta atomic.Pointer[answerMeta] // metadata of the answer; nil: none; set with mu held
	// the header was taken to be sent, or may not follow any longer; set with mu held
	headed atomic.Bool
	real   atomic.Pointer[realContext] // set with mu held, like over
	// final state if the call ended before there was a real context; set once
	over  atomic.Uint32
	cause error // the reason if over is canceled
}

// The values of callContext.over.
const (
	running uint32 = iota
	canceled
	expired
)

type realContext struct {
	context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
}

type callKey struct{}

// infoKey is the key of the Info that the innermost interceptor has been given.
type infoKey struct{}

var errHandled = errors.New("rpc: the handler has returned")

// InfoOf returns the Info of the call that is being handled with ctx, or with a context derived
// from it. It is nil for every other context.
func InfoOf(ctx context.Context) *Info {
	info, _ := ctx.Value(infoKey{}).(*Info)
	return info
}

// Deadline returns when the caller stops waiting, on this side's clock.
func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// Done is closed when the caller cancels, the deadline passes, the connection ends or the handler
// returns.
func (c *callContext) Done() <-chan struct{} { return c.makeReal().Done() }

// Err returns nil until one of these has happened. Then it is context.Canceled or
// context.DeadlineExceeded, and never changes.
func (c *callContext) Err() error {
	r := c.real.Load()
	if r == nil && c.over.Load() == running && c.deadlinePassed() {
		c.mu.Lock()
		if r = c.real.Load(); r == nil {
			c.noteLocked(nil)
		}
		c.mu.Unlock()
	}
	if r != nil {
		return r.Err()
	}
	switch c.over.Load() {
	case canceled:
		return context.Canceled
	case expired:
		return context.DeadlineExceeded
	}
	return nil
}

// endCause returns the cause of the context's end. nil: it has not ended.
func (c *callContext) endCause() error {
	err := c.Err()
	if err == nil {
		return nil
	}
	return cmp.Or(context.Cause(c.makeReal()), err)
}

// deadlinePassed reports whether the deadline has passed.
func (c *callContext) deadlinePassed() bool {
	return !c.deadline.IsZero() && time.Until(c.deadline) <= 0
}

// noteLocked records the end of the call if there is no real context.
func (c *callContext) noteLocked(cause error) {
	switch {
	case c.over.Load() != running:
	case c.deadlinePassed():
		c.over.Store(expired)
	default:
		c.cause = cause
		c.over.Store(canceled)
	}
}

// Value returns the callContext to this package. Other keys are for the real context:
// context.Cause, and contexts derived from this one, look for it so.
func (c *callContext) Value(key any) any {
	switch key.(type) {
	case callKey:
		return c
	case infoKey:
		return &c.info
	}
	if r := c.real.Load(); r != nil {
		return r.Value(key)
	}
	return nil
}

// makeReal returns the real context, and makes it if there is none.
func (c *callContext) makeReal() *realContext {
	if r := c.real.Load(); r != nil {
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.real.Load(); r != nil {
		return r
	}
	r := &realContext{}
	r.Context, r.cancel = context.WithCancelCause(context.Background())
	r.stop = func() {}
	switch {
	case c.over.Load() == canceled:
		r.cancel(c.cause)
	case !c.deadline.IsZero(): // it may have passed
		r.Context, r.stop = context.WithDeadline(r.Context, c.deadline)
	}
	c.real.Store(r)
	return r
}

// cancelContext cancels the context, and frees its resources. It may be called from any goroutine
// and more than once.
func (c *callContext) cancelContext(cause error) {
	c.mu.Lock()
	r := c.real.Load()
	if r == nil {
		c.noteLocked(cause)
	}
	c.mu.Unlock()
	if r != nil {
		r.cancel(cause)
		r.stop()
	}
}

// wasMade reports whether the real context was made, which may be used after the handler.
func (c *callContext) wasMade() bool { return c.real.Load() != nil }

type metadataKey struct{}

// WithMetadata adds a key and its value to the metadata of calls made with the context:
// credentials, a trace. A key has 1 to 255 bytes, a value up to 4 KiB, and all pairs together up to
// 8 KiB. Calls with anything else fail with ErrTooLarge. If a key was added twice, the later value
// counts.
func WithMetadata(ctx context.Context, key, value string) context.Context {
	was, _ := ctx.Value(metadataKey{}).(*Pairs)
	if was == nil {
		was = &Pairs{}
	}
	p, ok := was.withPair(key, value)
	if !ok {
		p.b = make([]byte, wire.MaxMetadata+1) // makes the call fail
	}
	return context.WithValue(ctx, metadataKey{}, &p)
}

// MetadataRoom returns the number of bytes of metadata that WithMetadata can still add. A pair
// takes its key, its value and 3 bytes. Optional pairs should be left out if there is no room for
// them, because calls whose metadata is too large fail.
func MetadataRoom(ctx context.Context) int {
	p, _ := ctx.Value(metadataKey{}).(*Pairs)
	if p == nil {
		return wire.MaxMetadata
	}
	return max(wire.MaxMetadata-len(p.b), 0)
}

// outgoingMetadata returns the metadata that a call made with ctx carries.
func outgoingMetadata(ctx context.Context) (b []byte, err error) {
	p, _ := ctx.Value(metadataKey{}).(*Pairs)
	if p == nil {
		return nil, nil
	}
	if len(p.b) > wire.MaxMetadata {
		return nil, errMetadata()
	}
	return p.b, nil
}

// Metadata returns the value that the caller has sent for a key. ok is false if it has sent none.
// ctx is the handler's context, or derived from it.
func Metadata(ctx context.Context, key string) (value string, ok bool) {
	c, _ := ctx.Value(callKey{}).(*callContext)
	if c == nil {
		return "", false
	}
	return Pairs{c.metadata}.Get(key)
}
