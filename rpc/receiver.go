package rpc

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/sched"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Receiver receives the items of a stream. One goroutine at a time may use it, but any may call
// Close.
type Receiver[T any] struct{ r *receiving }

// Open opens a stream. It returns before the server has answered: if the server refuses the
// stream, Recv returns the error. The stream ends when ctx ends. It is not repeated
// (Config.Retry). Config.Timeout limits how long Open waits for a connection (WaitForReady), and
// not how long the stream lasts. A stream that is not read to its end must be closed, or its ctx
// must end.
func Open[Q, T any](ctx context.Context, c *Client, m Stream[Q, T], q *Q) (*Receiver[T], error) {
	if len(c.cfg.Interceptors) > 0 {
		return openWithin(ctx, c, m, q)
	}
	scratch, body, err := c.packRequest(m.m, q)
	if err != nil {
		return nil, err
	}
	r, err := c.open(ctx, m.m, scratch, body)
	if err != nil {
		return nil, err
	}
	return &Receiver[T]{r}, nil
}

// openWithin is Open within the interceptors.
func openWithin[Q, T any](ctx context.Context, c *Client, m Stream[Q, T], q *Q) (*Receiver[T], error) {
	p := c.passage(m.m, q)
	p.do = func(ctx context.Context, call *Info) error {
		scratch, body, err := c.packWithin(p, call.Request)
		if err != nil {
			return err
		}
		call.stream, err = c.open(ctx, m.m, scratch, body)
		call.opened = err == nil
		return err
	}
	p.unopened = func(call *Info) { c.unopened(m.m, call, nil) }
	var err error
	delivered := false
	defer func() { // an interceptor behind next failed or panicked
		if delivered {
			return
		}
		if p.info.stream != nil {
			p.info.stream.close(nil)
		}
		if p.info.opened {
			c.unopened(m.m, p.info, err)
		}
	}()
	if err = p.run(ctx); err == nil && p.info.stream == nil {
		err = p.unanswered()
	}
	if err != nil {
		return nil, err
	}
	delivered = true
	r := p.info.stream
	r.onEnd(p.info.Ended)
	return &Receiver[T]{r}, nil
}

// unopened notifies an interceptor whose stream was opened, but not for the caller, of its end. err
// is nil if another one has panicked.
func (c *Client) unopened(m *method, info *Info, err error) {
	if info.Ended == nil {
		return
	}
	if err == nil {
		err = &Error{Code: CodeCanceled, Method: m.name, Fate: FateUnknown}
	}
	try(func() { info.Ended(err) }, func(why *PanicError) { panicked(c.rt.System(), m, why) })
}

// Recv waits for the next item. At the end of the stream it returns io.EOF. Every other error is
// an *Error and ends the stream, too, with one exception: on a loop's goroutine, which must not
// wait, Recv may return an *Error with eventloop.ErrOnLoop in it, and the stream goes on.
func (r *Receiver[T]) Recv() (*T, error) {
	b, err := r.r.next()
	if err != nil {
		return nil, err
	}
	item := new(T)
	decoded := false
	defer func() {
		if !decoded {
			r.r.fail(badMessage(r.r.call.m, "item", errGoexit, FateAnswered))
		}
	}()
	err = r.r.call.m.rep.unpack(b, item)
	decoded = true
	if err != nil {
		err = badMessage(r.r.call.m, "item", err, FateAnswered)
		r.r.fail(err)
		return nil, err
	}
	return item, nil
}

// All returns an iterator over the items that are still to come. If the stream ends with another
// error than io.EOF, that comes last. The stream is closed when the loop is left.
func (r *Receiver[T]) All() iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		defer r.Close()
		for {
			item, err := r.Recv()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// Close abandons the stream. The context of the server's handler is cancelled. Recv returns the
// items that have arrived, and then context.Canceled. A stream that has ended need not be closed.
// Any goroutine.
func (r *Receiver[T]) Close() { r.r.close(nil) }

// receiving is the part of a Receiver that does not depend on the type.
type receiving struct {
	l      *link // set when the request is queued: items may arrive earlier
	sched  *sched.Scheduler
	call   clientCall // not reused: Close may come late
	window int64
	ready  chan struct{} // has a token after a change

	read []byte // taken from in; belongs to the reader, like at
	at   int

	mu     sync.Mutex
	stop   func() bool // stops watching the context; nil: not watched
	in     []byte      // items, each preceded by its length or largeItem
	large  []*landing  // large items of in and read
	credit int64       // bytes that the server may still send
	taken  int64       // bytes read and not granted again
	err    error       // final error
	ended  func(error) // called with err; nil: not registered, or called
}

// open sends the request of a stream, body, which lies in scratch.
func (c *Client) open(ctx context.Context, m *method, scratch *buffer, body []byte) (_ *receiving, err error) {
	defer scratch.put(len(body))
	r := c.newReceiving(m)
	ready, cancel := c.limited(ctx)
	defer cancel()
	if r.l, err = c.start(ctx, ready, &r.call, body, avoided{}); err != nil {
		return nil, err
	}
	r.watch(ctx)
	return r, nil
}

// newReceiving makes the receiving end of a stream.
func (c *Client) newReceiving(m *method) *receiving {
	r := &receiving{sched: c.rt.Scheduler(), window: int64(c.cfg.StreamWindow), credit: int64(c.cfg.StreamWindow), ready: make(chan struct{}, 1)}
	r.call.m, r.call.stream = m, r
	return r
}

// watch ends the stream with ctx.
func (r *receiving) watch(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && ctx.Done() != nil {
		r.stop = r.sched.OnDone(ctx, func() {
			why := contextError(ctx, r.call.m, FateUnknown)
			if f, ok := r.l.abandon(&r.call, why.Code); ok {
				why.Fate = f
				r.end(why)
			}
		})
	}
}

// itemLocked takes an item. It is called on the loop.
func (r *receiving) itemLocked(m *rdma.Received, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.credit <= 0 {
		return violation("an item of call %#x that its window has no room for", r.call.id)
	}
	r.credit -= wire.HeaderLen + int64(len(body))
	if len(body) > copyOnLoop {
		r.in = binary.BigEndian.AppendUint32(r.in, largeItem)
		r.large = append(r.large, land(r.sched, m, body))
	} else {
		r.in = binary.BigEndian.AppendUint32(r.in, uint32(len(body)))
		r.in = append(r.in, body...)
	}
	r.notify()
	return nil
}

func (r *receiving) notify() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// finish records the end of the stream. It is called on the loop.
func (r *receiving) finish(c *clientCall) { r.end(cmp.Or(c.failure(), io.EOF)) }

func (r *receiving) end(err error) {
	ended := r.endLocking(err)
	if ended == nil {
		return
	}
	try(func() { ended(err) }, func(why *PanicError) { panicked(r.l.sys, r.call.m, why) })
}

// panicked publishes that an Info.Ended has.
func panicked(sys *actor.ActorSystem, m *method, why *PanicError) {
	publish(sys, &rdma.Panicked{Kind: "rpc Info.Ended", Name: m.name, Value: why.Value, Stack: why.Stack})
}

// endLocking records the end, and if it is the first, returns the function to notify.
func (r *receiving) endLocking(err error) (ended func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
		ended, r.ended = r.ended, nil
	}
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
	r.notify()
	return ended
}

// onEnd registers ended, which is called with the stream's final error, immediately if the stream
// has ended. nil: none.
func (r *receiving) onEnd(ended func(error)) {
	if ended == nil {
		return
	}
	r.mu.Lock()
	err := r.err
	if err == nil {
		r.ended = ended
	}
	r.mu.Unlock()
	if err != nil {
		ended(err)
	}
}

// close gives the stream up, if it has not ended. err is why; nil: it was asked for.
func (r *receiving) close(err error) {
	code := CodeCanceled
	if err != nil {
		code = CodeOf(err)
	}
	f, ok := r.l.abandon(&r.call, code)
	if !ok {
		return
	}
	if err == nil {
		err = &Error{Code: CodeCanceled, Method: r.call.m.name, Fate: f}
	}
	r.end(err)
}

// fail ends the stream immediately: items that have arrived are dropped. It is called on the
// reader's goroutine.
func (r *receiving) fail(err error) {
	r.close(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in, r.err = nil, err
	r.read, r.at = nil, 0
}

// next returns the next item's bytes, which are good until the next call.
func (r *receiving) next() ([]byte, error) {
	for r.at == len(r.read) {
		r.mu.Lock()
		if len(r.in) == 0 && r.err != nil {
			defer r.mu.Unlock()
			return nil, r.err
		}
		spare := r.read[:0]
		if cap(spare) > 2*keepBuffer {
			spare = nil
		}
		r.read, r.in, r.at = r.in, spare, 0
		r.mu.Unlock()
		if len(r.read) == 0 {
			if err := r.wait(); err != nil {
				return nil, err
			}
		}
	}
	n := binary.BigEndian.Uint32(r.read[r.at:])
	r.at += 4
	var item []byte
	if n == largeItem {
		item = r.landed()
	} else {
		item = r.read[r.at : r.at+int(n) : r.at+int(n)]
		r.at += int(n)
	}
	r.widen(wire.HeaderLen + int64(len(item)))
	return item, nil
}

// wait waits until something has changed.
func (r *receiving) wait() error {
	select {
	case <-r.ready:
		r.sched.Resume()
	case <-r.l.rt.Stalled():
		r.sched.Resume()
		if err := onLoop(r.call.m, FateUnknown); err != nil {
			return err
		}
	}
	return nil
}

// widen notes that n bytes were read. As soon as half a window was, it lets the server send as
// much more.
func (r *receiving) widen(n int64) {
	r.mu.Lock()
	r.taken += n
	due := r.err == nil && r.taken >= r.window/2
	if due {
		n = r.taken
		r.credit += n
		r.taken = 0
	}
	r.mu.Unlock()
	if due {
		r.l.widen(&r.call, uint32(n))
	}
}

// landed returns the large item that is next, when it was copied.
func (r *receiving) landed() []byte {
	r.mu.Lock()
	l := r.large[0]
	r.large[0] = nil
	r.large = r.large[1:]
	r.mu.Unlock()
	<-l.here
	r.sched.Resume()
	return l.item
}
