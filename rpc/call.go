package rpc

import (
	"context"
	"errors"
	"sync"
	"time"
)

// call is a call in flight, as its caller has it. They are used again and again.
type call struct {
	m     *method
	id    callID
	done  chan struct{} // holds a token when the call is finished; unused by streams and actors
	reply []byte        // the answer
	err   *Error        // or why there is none
	next  *call         // among those that are being finished

	stream *receiving // of a stream
	actor  *Pending   // whose answer is a message
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

func newCall(m *method) *call {
	c := calls.Get().(*call)
	c.m = m
	return c
}

// release gives a call back that nobody else has any more.
func (c *call) release() {
	if cap(c.reply) > keepBuffer {
		c.reply = nil
	}
	c.err, c.next, c.stream, c.actor = nil, nil, nil, nil
	calls.Put(c)
}

// finish tells whoever waits.
func (c *call) finish() {
	switch {
	case c.stream != nil:
		c.stream.finish(c)
	case c.actor != nil:
		c.actor.finish(c)
	default:
		c.done <- struct{}{}
	}
}

// Call calls a method and waits for its answer, for ctx's end, or the connection's. The deadline of ctx goes to the server as the time
// that is left, and its end cancels the handler's context. q is the caller's again when Call returns. Every error is an *Error, but for
// what interceptors make of it.
func Call[Q, R any](ctx context.Context, c *Client, m Method[Q, R], q *Q) (*R, error) {
	if len(c.cfg.interceptors) > 0 {
		info := c.info(m.m, q)
		err := chain(c.cfg.interceptors, info, ctx, func(ctx context.Context) error {
			r := new(R)
			info.Reply = r
			return c.call(ctx, m.m, info.Request, r)
		})
		r, _ := info.Reply.(*R)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	r := new(R)
	if err := c.call(ctx, m.m, q, r); err != nil {
		return nil, err
	}
	return r, nil
}

// CallRaw is Call of a method that carries bytes: the answer is appended to reply.
func CallRaw(ctx context.Context, c *Client, m RawMethod, q, reply []byte) ([]byte, error) {
	if len(c.cfg.interceptors) == 0 {
		return c.callRaw(ctx, m.m, q, reply)
	}
	info := c.info(m.m, q)
	err := chain(c.cfg.interceptors, info, ctx, func(ctx context.Context) (err error) {
		info.Reply, err = c.callRaw(ctx, m.m, info.Request.([]byte), reply)
		return err
	})
	r, _ := info.Reply.([]byte)
	return r, err
}

func (c *Client) info(m *method, q any) *Info {
	info := &Info{Method: m.name, Stream: m.stream, Request: q}
	if l, err := c.current(); err == nil {
		info.Peer = l.peer
	}
	return info
}

// call encodes, calls and decodes.
func (c *Client) call(ctx context.Context, m *method, q, r any) error {
	scratch := getBuffer()
	body, err := m.req.encode(scratch.b, q)
	if err != nil {
		scratch.put(0)
		return &Error{Code: CodeBadMessage, Method: m.name, Message: "request: " + err.Error(), Fate: FateNotSent}
	}
	cl, err := c.do(ctx, m, body)
	scratch.put(len(body))
	if err != nil {
		return err
	}
	err = m.rep.decode(cl.reply, r)
	cl.release()
	if err != nil {
		return &Error{Code: CodeBadMessage, Method: m.name, Message: "reply: " + err.Error(), Fate: FateAnswered}
	}
	return nil
}

func (c *Client) callRaw(ctx context.Context, m *method, q, reply []byte) ([]byte, error) {
	cl, err := c.do(ctx, m, q)
	if err != nil {
		return reply, err
	}
	reply = append(reply, cl.reply...)
	cl.release()
	return reply, nil
}

// do makes a call, and gives it with its answer.
func (c *Client) do(ctx context.Context, m *method, body []byte) (*call, error) {
	if c.cfg.timeout > 0 {
		if _, has := ctx.Deadline(); !has {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.cfg.timeout)
			defer cancel()
		}
	}
	for attempt := 1; ; attempt++ {
		cl, err := c.once(ctx, m, body)
		if err == nil || !retryable(m, err) || !c.cfg.retry.again(ctx, attempt) {
			return cl, err
		}
	}
}

// once makes a call without retries.
func (c *Client) once(ctx context.Context, m *method, body []byte) (*call, error) {
	l, err := c.current()
	if err != nil {
		return nil, named(err, m)
	}
	h, metadata, err := prepare(ctx, m)
	if err != nil {
		return nil, err
	}
	cl := newCall(m)
	if err := l.start(cl, h, metadata, body); err != nil {
		cl.release()
		return nil, err
	}
	if done := ctx.Done(); done == nil {
		<-cl.done
	} else {
		select {
		case <-cl.done:
		case <-done:
			if ok, f := l.abandon(cl); ok {
				cl.release()
				return nil, contextError(ctx, m, f)
			}
			<-cl.done
		}
	}
	if err := cl.err; err != nil {
		cl.release()
		return nil, err
	}
	return cl, nil
}

// prepare takes what ctx says of a call.
func prepare(ctx context.Context, m *method) (h header, metadata []byte, err error) {
	if ctx.Err() != nil {
		return h, nil, contextError(ctx, m, FateNotSent)
	}
	if deadline, has := ctx.Deadline(); has {
		left := time.Until(deadline)
		if left <= 0 {
			return h, nil, &Error{Code: CodeDeadline, Method: m.name, Fate: FateNotSent}
		}
		h.arg, h.flags = putTimeout(left)
	}
	if metadata, err = outgoing(ctx); err != nil {
		return h, nil, named(err, m)
	}
	return h, metadata, nil
}

// contextError is the error of a call whose context has ended.
func contextError(ctx context.Context, m *method, f Fate) *Error {
	e := &Error{Code: CodeCanceled, Method: m.name, Fate: f}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Code = CodeDeadline
	}
	if cause := context.Cause(ctx); !errors.Is(ctx.Err(), cause) {
		e.Err = cause
	}
	return e
}

// named says in an error which method it is about.
func named(err error, m *method) error {
	var e *Error
	if errors.As(err, &e) {
		e.Method = m.name
	}
	return err
}
