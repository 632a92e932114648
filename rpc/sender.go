package rpc

import (
	"context"
	"fmt"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Sender is where a stream's handler sends its items. It is the handler's goroutine's, until that returns.
type Sender[T any] struct{ out *sending }

// Send sends an item, which is the caller's again when it returns. It waits while the receiver has not taken what is under way: a slow
// receiver stops its stream, and nothing else. When the caller has gone (cancelled, deadline, connection) it returns why, and the
// handler should return.
func (s *Sender[T]) Send(item *T) error { return s.out.send(item) }

// sending is the part of a Sender that does not depend on the type.
type sending struct{ call *serverCall }

func (o *sending) send(item any) error {
	call := o.call
	scratch := getBuffer()
	b, err := call.h.m.rep.encode(scratch.b, item)
	if err == nil && headerLen+len(b) > call.c.limit {
		err = &Error{
			Code: CodeTooLarge, Method: call.h.m.name, Fate: FateAnswered,
			Message: fmt.Sprintf("an item of %d bytes, the client takes %d", len(b), call.c.limit-headerLen),
		}
	}
	if err == nil {
		err = o.wait(int64(len(b)) + headerLen)
	}
	if err != nil {
		scratch.put(len(b))
		return err
	}
	// mu is held.
	c := call.c
	h := header{typ: frameItem, call: call.id, length: uint32(len(b))}
	if len(b) > gatherBytes {
		s, p := rdma.BuildSend(headerLen + len(b))
		h.put(p)
		copy(p[headerLen:], b)
		c.out.putSend(s)
	} else {
		c.out.put(h, b)
	}
	tell := c.out.wake()
	c.out.mu.Unlock()
	scratch.put(len(b))
	if tell {
		c.out.tell()
	}
	return nil
}

// wait waits until n bytes may be put. If it returns nil, the connection's mu is held.
func (o *sending) wait(n int64) error {
	call := o.call
	for {
		if err := call.ctx.Err(); err != nil {
			if cause := context.Cause(call.ctx.make()); cause != nil {
				return cause
			}
			return err
		}
		c := &call.c.out
		c.mu.Lock()
		if call.window > 0 && c.bytes <= highWater && !c.ended {
			call.window -= n
			return nil
		}
		if c.bytes > highWater && !call.waits { // else a window has woken it meanwhile
			call.waits = true
			c.waiters = append(c.waiters, call)
		}
		c.mu.Unlock()
		select {
		case <-call.room:
		case <-call.ctx.Done():
		case <-call.c.s.rt.Stalled():
			if err := rdma.MayWait(); err != nil {
				return fmt.Errorf("rpc: %s: Send: %w", call.h.m.name, err)
			}
		}
	}
}

// maxStreamWindow is what a stream's window may not exceed.
const maxStreamWindow = 1 << 31

// widen lets more of a stream be sent. Loop.
func (call *serverCall) widen(n uint32) error {
	out := &call.c.out
	out.mu.Lock()
	defer out.mu.Unlock()
	if call.room == nil {
		return violation("a window for call %#x, which is no stream", call.id)
	}
	if call.window += int64(n); n == 0 || call.window > maxStreamWindow {
		return violation("a window of %d bytes", call.window)
	}
	call.goOn()
	return nil
}

// goOn has the sender look again.
func (call *serverCall) goOn() {
	select {
	case call.room <- struct{}{}:
	default:
	}
}
