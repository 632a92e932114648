package rpc

import (
	"cmp"
	"fmt"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Sender sends the items of a stream. One goroutine at a time may use it, until the handler
// returns.
type Sender[T any] struct {
	call    *serverCall
	sending func(item any) error // Info.OnSend; nil: none
}

// Send sends an item, which is the handler's again when Send returns. It waits while the stream's
// window is full or the connection has no memory for the item, and until a large item was handed to
// the connection: a slow receiver stops its own stream, and nothing else. If the stream has ended
// (its caller has cancelled it, its deadline has passed, the connection has ended), Send returns
// why, and the handler should return. After the handler has returned, Send fails.
func (s *Sender[T]) Send(item *T) error {
	if s.sending != nil {
		if err := s.sending(item); err != nil {
			return err
		}
	}
	return s.call.sendWhenRoom(item)
}

// sendWhenRoom implements Sender.Send.
func (call *serverCall) sendWhenRoom(item any) error {
	for n := 0; ; { // the item is not kept encoded while it waits, to save memory
		if err := call.ctx.endCause(); err != nil {
			return err
		}
		if call.full {
			if err := call.awaitRoom(n); err != nil {
				return err
			}
		}
		var sent bool
		var err error
		if n, sent, err = call.queueItem(item); sent || err != nil {
			return err
		}
	}
}

// queueItem encodes an item and puts it, if there is room. n is its size. Neither sent nor an
// error: there is no room for n bytes.
func (call *serverCall) queueItem(item any) (n int, sent bool, err error) {
	c := call.c
	scratch := getBuffer()
	b, err := call.h.m.rep.encode(scratch.b, item)
	defer func() { scratch.put(len(b)) }()
	if err == nil && wire.HeaderLen+len(b) > c.limit {
		err = tooLarge(call.h.m, "an item", "Client", len(b), c.limit, FateAnswered)
	}
	if most := call.h.m.cfg.MaxResponse; err == nil && most > 0 && len(b) > most {
		err = beyondMaxResponse(call.h.m, most, FateAnswered)
	}
	if err != nil {
		return 0, false, err
	}
	frame := readyFrame{h: wire.Header{Type: wire.FrameItem, Call: call.id}, body: b}
	frame.encodeLarge(c.out.cuts.on)
	c.out.mu.Lock()
	may := !c.out.ended && call.roomForLocked(len(b))
	if may {
		if c.findLocked(call.id) != call {
			err = errHandled // the handler has returned: another goroutine uses its Sender
		} else {
			err = call.putHeaderLocked()
		}
	}
	if !may || err != nil {
		call.full = !may
		c.out.mu.Unlock()
		frame.release()
		return len(b), false, err
	}
	c.out.putEncodedLocked(&frame)
	call.window -= wire.HeaderLen + int64(len(b))
	call.full = !call.roomForLocked(0)
	c.sentLocked(call.h, len(b))
	if frame.cut != nil {
		frame.cut.waiter, call.cutting = &call.waiter, frame.cut
	}
	c.out.unlockAndWake()
	if frame.cut != nil {
		err = call.awaitCut(frame.cut)
	}
	return len(b), true, err
}

// putHeaderLocked puts the header of the call, if the handler has set one and it was not sent.
func (call *serverCall) putHeaderLocked() error {
	header := call.ctx.takeHeader()
	if len(header) == 0 || call.c.version < 2 {
		return nil
	}
	if wire.HeaderLen+len(header) > call.c.limit {
		return tooLarge(call.h.m, "the header", "Client", len(header), call.c.limit, FateAnswered)
	}
	call.c.out.putLocked(wire.Header{Type: wire.FrameHeader, Call: call.id}, header)
	return nil
}

// awaitCut waits until all of a large item was handed to the connection, because nothing that
// follows may overtake it. If the call ends before that, the rest is not sent. On a loop's
// goroutine it returns an error, and the rest is sent.
func (call *serverCall) awaitCut(cut *cut) error {
	o := &call.c.out
	for {
		err := call.ctx.endCause()
		o.mu.Lock()
		switch {
		case call.cutting != cut: // the answer has dropped it
			o.mu.Unlock()
			return cmp.Or(err, errHandled)
		case len(cut.pieces) == 0 && (!cut.dropped || err != nil):
			// if the connection has dropped it, the end of the call follows
			call.cutting = nil
			o.mu.Unlock()
			return err
		case err != nil:
			o.dropCutLocked(cut)
			call.cutting = nil
			o.unlockAndWake()
			return err
		}
		o.mu.Unlock()
		if err := call.awaitChange(); err != nil {
			return fmt.Errorf("rpc: %s: Send: %w", call.h.m.name, err)
		}
	}
}

// roomForLocked reports whether an item of n bytes may be put now, with out.mu held: it must not
// overtake a large one.
func (call *serverCall) roomForLocked(n int) bool {
	o := &call.c.out
	cutting := call.cutting != nil && len(call.cutting.pieces) > 0
	return !cutting && call.window > 0 && o.bytes <= highWater && o.roomLocked(wire.HeaderLen+n)
}

// awaitRoom waits until there is room for an item of n bytes. Others may take that room before
// queueItem does.
func (call *serverCall) awaitRoom(n int) error {
	for {
		if err := call.ctx.endCause(); err != nil {
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
		if err := call.awaitChange(); err != nil {
			return fmt.Errorf("rpc: %s: Send: %w", call.h.m.name, err)
		}
	}
}

// awaitChange waits until there may be room, or the call's context ends. On a loop's goroutine,
// which must not wait, it returns an error.
func (call *serverCall) awaitChange() error {
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
