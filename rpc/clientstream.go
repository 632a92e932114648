package rpc

import (
	"cmp"
	"context"
	"io"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// clientStream is an open stream of a client, without its types: the items of both directions.
type clientStream struct {
	inbound
	c    *Client
	l    *link      // set when the request is queued: items may arrive earlier
	call clientCall // not reused: Close may come late

	sent waiter // for room for an item
	full bool   // the last item left no room, or found none; the sender's

	ending sync.Mutex
	stop   func() bool // stops watching the context; nil: not watched
	ended  func(error) // called with the final error; nil: not registered, or called
	// the server has ended the stream, and its items count until they are read or dropped
	held   bool
	left   error // why the caller has given the stream up; nil: it has not
	beyond int64 // those of Client.beyond, while it is held
}

// openStream opens a stream of m, within the interceptors. q is the request; nil: m has none.
func openStream(ctx context.Context, c *Client, m *method, q any) (s *clientStream, info *Info, err error) {
	if len(c.cfg.Interceptors) == 0 {
		s, err = c.startStream(ctx, m, q, nil)
		return s, &Info{}, err
	}
	p := c.newPassage(m, q)
	p.do = func(ctx context.Context, call *Info) (err error) {
		call.stream, err = c.startStream(ctx, m, call.Request, p)
		call.opened = err == nil
		return err
	}
	p.unopened = func(call *Info) { c.notifyUnopened(m, call, nil) }
	delivered := false
	defer func() { // an interceptor behind next failed or panicked
		if delivered {
			return
		}
		if p.info.stream != nil {
			p.info.stream.closeStream(nil)
		}
		if p.info.opened {
			c.notifyUnopened(m, p.info, err)
		}
	}()
	if err = p.runInterceptors(ctx); err == nil && p.info.stream == nil {
		err = p.unansweredError()
	}
	if err != nil {
		return nil, nil, err
	}
	delivered = true
	p.info.stream.onEnd(p.info.Ended)
	return p.info.stream, p.info, nil
}

// notifyUnopened notifies an interceptor whose stream was opened, but not for the caller, of its
// end. err is nil if another one has panicked.
func (c *Client) notifyUnopened(m *method, info *Info, err error) {
	if info.Ended == nil {
		return
	}
	if err == nil {
		err = &Error{Code: CodeCanceled, Method: m.name, Fate: FateUnknown}
	}
	tryCall(func() { info.Ended(err) }, func(why *PanicError) { publishEndedPanic(c.rt.System(), m, why) })
}

// startStream sends the request of a stream. p is the way through the interceptors; nil: there are
// none.
func (c *Client) startStream(ctx context.Context, m *method, q any, p *passage) (_ *clientStream, err error) {
	var body []byte
	if !m.sends {
		var scratch *buffer
		if p != nil {
			scratch, body, err = c.packWithin(p, q)
		} else {
			scratch, body, err = c.packRequest(m, q)
		}
		if err != nil {
			return nil, err
		}
		defer func() { scratch.put(len(body)) }()
	}
	s := c.newStream(m)
	ready, cancel := c.withTimeout(ctx, c.methodSettings(m).Timeout)
	defer cancel()
	if s.l, err = c.startCall(ctx, ready, &s.call, body, avoided{}); err != nil {
		return nil, c.withServer(err, nil, 1)
	}
	s.watchContext(ctx)
	return s, nil
}

// newStream makes a stream that is not open yet.
func (c *Client) newStream(m *method) *clientStream {
	s := &clientStream{c: c}
	s.init(c.rt, m, &m.rep, c.cfg.StreamWindow, c.cfg.MaxMessage, s)
	s.call.m, s.call.stream, s.call.meta = m, s, new(answerMeta)
	if m.sends {
		s.sent.room = make(chan struct{}, 1)
	}
	return s
}

// watchContext ends the stream with ctx.
func (s *clientStream) watchContext(ctx context.Context) {
	s.ending.Lock()
	defer s.ending.Unlock()
	if (s.held || s.finalError() == nil) && ctx.Done() != nil {
		s.stop = s.rt.Scheduler().OnDone(ctx, func() { s.giveUp(contextError(ctx, s.m, FateUnknown), nil) })
	}
}

// giveUp ends the stream for its caller: if the server has not ended it, and otherwise if there may
// be items that were not read. These are dropped. why is the reason for the server, and err the
// final error; nil: why.
func (s *clientStream) giveUp(why *Error, err error) {
	f, first := s.l.cancelCall(&s.call, why)
	if first {
		why.Fate = f
	}
	if err == nil {
		err = why
	}
	s.ending.Lock()
	s.left = err
	if s.held {
		s.dropItems(err)
		s.releaseLocked()
	}
	s.ending.Unlock()
	if first {
		s.recordEnd(err)
	}
}

// holdLocked counts the items that were not read as long as they can be read: the window as that of
// an open stream.
func (s *clientStream) holdLocked() {
	s.held, s.beyond = true, s.beyondWindow()
	s.c.streams.Add(1)
	s.c.beyond.Add(s.beyond)
}

// releaseLocked releases what holdLocked has counted.
func (s *clientStream) releaseLocked() {
	if s.held {
		s.held = false
		s.c.streams.Add(-1)
		s.c.beyond.Add(-s.beyond)
	}
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// itemsDrained implements feeder.
func (s *clientStream) itemsDrained() {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.releaseLocked()
}

// callFinished records the end of the stream. It is called on the loop, unless the answer is large.
func (s *clientStream) callFinished(c *clientCall) {
	c.ownReply()
	s.recordEnd(cmp.Or(c.errOrNil(), io.EOF))
}

// recordEnd records the final error of the stream, and calls Info.Ended.
func (s *clientStream) recordEnd(err error) {
	ended := s.finishLocking(err)
	if ended == nil {
		return
	}
	tryCall(func() { ended(err) }, func(why *PanicError) { publishEndedPanic(s.l.sys, s.m, why) })
}

// publishEndedPanic publishes that an Info.Ended has panicked.
func publishEndedPanic(sys *actor.ActorSystem, m *method, why *PanicError) {
	publishEvent(sys, &rdma.Panicked{Kind: "rpc Info.Ended", Name: m.name, Value: why.Value, Stack: why.Stack})
}

// finishLocking records the end, and if it is the first, returns the function to notify.
func (s *clientStream) finishLocking(err error) (ended func(error)) {
	s.ending.Lock()
	defer s.ending.Unlock()
	if s.closeItems(err) {
		ended, s.ended = s.ended, nil
		switch {
		case s.left != nil:
			s.dropItems(s.left)
		case s.m.items:
			s.holdLocked()
		}
	}
	if !s.held {
		s.releaseLocked()
	}
	if s.m.sends {
		s.sent.goOn()
	}
	return ended
}

// onEnd registers ended, which is called with the stream's final error, immediately if the stream
// has ended. nil: none.
func (s *clientStream) onEnd(ended func(error)) {
	if ended == nil {
		return
	}
	s.ending.Lock()
	err := s.finalError()
	if err == nil {
		s.ended = ended
	}
	s.ending.Unlock()
	if err != nil {
		ended(err)
	}
}

// closeStream implements feeder: it gives the stream up, if it has not ended. err is why; nil: it
// was asked for.
func (s *clientStream) closeStream(err error) {
	why := &Error{Code: CodeCanceled, Method: s.m.name}
	if err != nil {
		why.Code, why.Err = CodeOf(err), err
	}
	s.giveUp(why, err)
}

// grantBytes implements feeder.
func (s *clientStream) grantBytes(n uint32) { s.l.grantWindow(&s.call, n) }

// waitEnd implements feeder: the end of the stream wakes its reader.
func (s *clientStream) waitEnd() <-chan struct{} { return nil }

// endCause implements feeder.
func (s *clientStream) endCause() error { return nil }

// headerMeta implements feeder.
func (s *clientStream) headerMeta() Pairs { return s.l.metaOf(&s.call.meta.header) }

// trailerMeta implements feeder.
func (s *clientStream) trailerMeta() Pairs { return s.l.metaOf(&s.call.meta.trailer) }

// sendWhenRoom encodes an item and queues it, when there is room.
func (s *clientStream) sendWhenRoom(item any) error {
	for n := 0; ; { // the item is not kept encoded while it waits, to save memory
		if s.full {
			if err := s.awaitRoom(n); err != nil {
				return err
			}
		}
		var sent bool
		var err error
		if n, sent, err = s.queueItem(item); sent || err != nil {
			return err
		}
	}
}

// roomForLocked reports whether an item of n bytes may be queued. It must not overtake a large one
// of its stream, and if it is large itself, waits behind those of other streams.
func (s *clientStream) roomForLocked(sl *slot, n int) bool {
	o := &s.l.out
	return sl.window > 0 && !sl.sendsItem() && o.bytes <= highWater && (n <= gatherBytes || o.cuts.bytes <= highWater)
}

// awaitRoom waits until there is room for an item of n bytes. If the stream has ended, it returns
// the final error: io.EOF if the server has answered.
func (s *clientStream) awaitRoom(n int) error {
	for {
		if err := s.finalError(); err != nil {
			return err
		}
		o := &s.l.out
		o.mu.Lock()
		sl := s.l.slotLocked(&s.call)
		if sl != nil && sl.closed {
			o.mu.Unlock()
			return &Error{Code: CodeClosed, Method: s.m.name, Message: "CloseSend was called", Fate: FateNotSent}
		}
		if sl != nil && !o.ended {
			if s.roomForLocked(sl, n) {
				o.mu.Unlock()
				return nil
			}
			if sl.window > 0 && !sl.sendsItem() {
				o.awaitLocked(&s.sent)
			}
		} // otherwise a window frame, the last piece, or the end of the stream wakes this goroutine
		o.mu.Unlock()
		select {
		case <-s.sent.room:
			s.rt.Scheduler().Resume()
		case <-s.rt.Stalled():
			s.rt.Scheduler().Resume()
			if err := onLoop(s.m, FateUnknown); err != nil {
				return err
			}
		}
	}
}

// queueItem encodes an item and queues it, if there is room. n is its size. Neither sent nor an
// error: there is no room for n bytes.
func (s *clientStream) queueItem(item any) (n int, sent bool, err error) {
	scratch := getBuffer()
	var b []byte
	defer func() { scratch.put(len(b)) }()
	if b, err = s.m.req.tryEncode(scratch.b, item); err != nil {
		return 0, false, badMessage(s.m, "item", err, FateNotSent)
	}
	if wire.HeaderLen+len(b) > s.l.max {
		return 0, false, tooLarge(s.m, "the item", "Server", len(b), s.l.max, FateNotSent)
	}
	o := &s.l.out
	frame := readyFrame{h: wire.Header{Type: wire.FrameItem, Call: s.call.id}, body: b}
	frame.encodeLarge(o.cuts.on)
	o.mu.Lock()
	sl := s.l.slotLocked(&s.call)
	if sl == nil || sl.closed || o.ended || !s.roomForLocked(sl, len(b)) {
		s.full = true
		o.mu.Unlock()
		frame.release()
		return len(b), false, nil
	}
	o.putEncodedLocked(&frame)
	if sl.cut = frame.cut; sl.cut != nil {
		sl.cut.waiter = &s.sent
	}
	sl.window -= wire.HeaderLen + int64(len(b))
	s.full = !s.roomForLocked(sl, 0)
	d := s.l.declaredLocked(s.m)
	d.items++
	d.sent += uint64(len(b))
	o.unlockAndWake()
	return len(b), true, nil
}

// closeSend ends the items that are sent.
func (s *clientStream) closeSend() {
	o := &s.l.out
	o.mu.Lock()
	sl := s.l.slotLocked(&s.call)
	if sl == nil || sl.closed {
		o.mu.Unlock()
		return
	}
	sl.closed = true
	end := wire.Header{Type: wire.FrameEnd, Call: s.call.id}
	if sl.sendsItem() {
		o.appendFrameLocked(sl.cut, end)
	} else {
		o.putLocked(end, nil)
	}
	o.unlockAndWake()
}
