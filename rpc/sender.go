package rpc

import (
	"context"
	"fmt"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Sender sends the items of a stream. It is for the handler's goroutine, until the handler returns.
type Sender[T any] struct{ out sink }

// Send sends an item, which is the handler's again when Send returns. It waits while the stream's
// window is full or the connection has no memory for the item: a slow receiver stops its own
// stream, and nothing else. If the stream has ended (its caller has cancelled it, its deadline has
// passed, the connection has ended), Send returns why, and the handler should return. After the
// handler has returned, Send fails.
func (s *Sender[T]) Send(item *T) error { return s.out.send(item) }

// send is Sender's Send.
func (call *serverCall) send(item any) error {
	for n := 0; ; { // the item is not kept encoded while it waits, to save memory
		if err := call.wait(n); err != nil {
			return err
		}
		var sent bool
		var err error
		if n, sent, err = call.put(item); sent || err != nil {
			return err
		}
	}
}

// put encodes an item and puts it, if there is room. n is its size. Neither sent nor an error:
// there is no room for n bytes.
func (call *serverCall) put(item any) (n int, sent bool, err error) {
	c := call.c
	scratch := getBuffer()
	b, err := call.h.m.rep.encode(scratch.b, item)
	defer func() { scratch.put(len(b)) }()
	if err == nil && wire.HeaderLen+len(b) > c.limit {
		err = &Error{
			Code: CodeTooLarge, Method: call.h.m.name, Fate: FateAnswered,
			Message: fmt.Sprintf("an item of %d bytes, the client takes %d", len(b), c.limit-wire.HeaderLen),
		}
	}
	if err != nil {
		return 0, false, err
	}
	own := large(nil, b)
	c.out.mu.Lock()
	switch {
	case c.out.ended || !call.roomForLocked(len(b)):
		c.out.mu.Unlock()
		return len(b), false, nil
	case c.calls[call.id.Slot()] != call:
		// the handler has returned: another goroutine uses its Sender
		c.out.mu.Unlock()
		return 0, false, errHandled
	}
	c.out.putLargeLocked(wire.Header{Type: wire.FrameItem, Call: call.id}, own, nil, b)
	call.window -= wire.HeaderLen + int64(len(b))
	c.sentLocked(call.h, len(b))
	c.out.unlock()
	return len(b), true, nil
}

// roomForLocked reports whether an item of n bytes may be put now, with out.mu held.
func (call *serverCall) roomForLocked(n int) bool {
	o := &call.c.out
	return call.window > 0 && o.bytes <= highWater && o.roomLocked(wire.HeaderLen+n)
}

// wait waits until there is room for an item of n bytes. Others may take that room before put does.
func (call *serverCall) wait(n int) error {
	for {
		if err := call.ctx.Err(); err != nil {
			if cause := context.Cause(call.ctx.make()); cause != nil {
				return cause
			}
			return err
		}
		c := &call.c.out
		c.mu.Lock()
		if !c.ended && call.roomForLocked(n) {
			c.mu.Unlock()
			return nil
		}
		if call.window > 0 { // otherwise widen wakes it
			c.awaitLocked(&call.waiter)
		}
		c.mu.Unlock()
		if err := call.pause(); err != nil {
			return fmt.Errorf("rpc: %s: Send: %w", call.h.m.name, err)
		}
	}
}

// pause waits until there may be room, or the call's context ends. On a loop's goroutine, which
// must not wait, it returns an error.
func (call *serverCall) pause() error {
	s := call.c.s.rt
	select {
	case <-call.room:
		s.Scheduler().Resume()
	case <-call.ctx.Done():
		s.Scheduler().Resume()
	case <-s.Stalled():
		s.Scheduler().Resume()
		return eventloop.MayWait()
	}
	return nil
}
