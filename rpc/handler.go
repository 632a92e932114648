package rpc

import (
	"context"
	"fmt"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/share"
)

// handler is a method at a server.
type handler struct {
	m      *method
	inline bool
	task   *rdma.Task // of an inline one
	raw    func(ctx context.Context, q, reply []byte) ([]byte, error)
	call   func(ctx context.Context, q any) (any, error)
	stream func(ctx context.Context, q any, out *sending) error
	newReq func() any
}

// place is what a call that is not OnLoop takes a place of.
func (h *handler) place() share.Resource {
	if h.stream != nil {
		return share.Streams
	}
	return share.Calls
}

// HandlerOption is an option of Handle, HandleRaw and HandleStream.
type HandlerOption func(*handler)

// OnLoop says that a handler never blocks: it is called on the loop of its connection, which is the fastest way to an answer, and which
// holds up that loop's other connections meanwhile. A slow one is named by the loop's watchdog (eventloop.Config.StallAfter), as "rpc" and
// the method's name. Its context, and a raw request, are valid until it returns. Streams cannot be OnLoop.
//
// Its request is decoded on the loop, and its answer encoded and copied there, however large they
// are: a method with large messages is better off on a goroutine.
func OnLoop() HandlerOption { return func(h *handler) { h.inline = true } }

// Handle has fn answer the calls of a method. What it returns is encoded before anything else happens to it. It runs on a goroutine of
// the server's unless OnLoop says otherwise. It panics if the method has a handler. Handlers are registered before Listen.
func Handle[Q, R any](s *Server, m Method[Q, R], fn func(ctx context.Context, q *Q) (*R, error), opts ...HandlerOption) {
	s.handle(&handler{
		m:      m.m,
		newReq: func() any { return new(Q) },
		call: func(ctx context.Context, q any) (any, error) {
			r, err := fn(ctx, q.(*Q))
			if err == nil && r == nil {
				err = &Error{Code: CodeInternal, Message: "the handler has answered with nothing"}
			}
			return r, err
		},
	}, opts)
}

// HandleRaw has fn answer the calls of a raw method. It appends its answer to reply and returns that, or returns bytes of its own, which
// are copied when it has returned. q is valid until then.
func HandleRaw(s *Server, m RawMethod, fn func(ctx context.Context, q, reply []byte) ([]byte, error), opts ...HandlerOption) {
	s.handle(&handler{m: m.m, raw: fn}, opts)
}

// HandleStream has fn serve a stream: what it sends to out are the items; the stream ends when it returns, with its error or without one.
func HandleStream[Q, T any](s *Server, m Stream[Q, T], fn func(ctx context.Context, q *Q, out *Sender[T]) error, opts ...HandlerOption) {
	s.handle(&handler{
		m:      m.m,
		newReq: func() any { return new(Q) },
		stream: func(ctx context.Context, q any, out *sending) error { return fn(ctx, q.(*Q), &Sender[T]{out}) },
	}, opts)
}

func (s *Server) handle(h *handler, opts []HandlerOption) {
	for _, o := range opts {
		o(h)
	}
	if h.inline && h.stream != nil {
		panic(fmt.Sprintf("rpc: %s: a stream cannot be OnLoop", h.m.name))
	}
	if h.inline {
		h.task = rdma.NewTask("rpc " + h.m.name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers[h.m.name] != nil {
		panic(fmt.Sprintf("rpc: %s has a handler", h.m.name))
	}
	s.handlers[h.m.name] = h
}

// invoke calls the handler with a request, and appends the answer to reply, if it is no stream.
func (h *handler) invoke(s *Server, ctx *callContext, q, reply []byte, out *sending) ([]byte, error) {
	guarded := len(s.cfg.interceptors) > 0
	switch {
	case h.raw != nil && guarded:
		return h.guardRaw(s, ctx, q, reply)
	case h.raw != nil:
		return h.raw(ctx, q, reply)
	}
	msg := h.newReq()
	if err := h.m.req.decode(q, msg); err != nil {
		return nil, &Error{Code: CodeBadMessage, Message: "request: " + err.Error()}
	}
	var answer any
	var err error
	if guarded {
		answer, err = h.guard(s, ctx, msg, out)
	} else {
		answer, err = h.serve(ctx, msg, out)
	}
	switch {
	case err != nil || h.stream != nil:
		return nil, err
	}
	if reply, err = h.m.rep.encode(reply, answer); err != nil {
		return nil, &Error{Code: CodeBadMessage, Message: "reply: " + err.Error()}
	}
	return reply, nil
}

// serve calls the handler of messages.
func (h *handler) serve(ctx context.Context, msg any, out *sending) (answer any, err error) {
	if h.stream != nil {
		return nil, h.stream(ctx, msg, out)
	}
	return h.call(ctx, msg)
}

// guard is serve within the interceptors. What it captures would be allocated for all in invoke.
func (h *handler) guard(s *Server, ctx *callContext, msg any, out *sending) (answer any, err error) {
	ctx.info.Request = msg
	answer, _, err = around(s.cfg.interceptors, ctx, &ctx.info, h.m, func(in context.Context) (any, error) {
		return h.serve(in, ctx.info.Request, out)
	})
	return answer, err
}

// guardRaw is raw within the interceptors.
func (h *handler) guardRaw(s *Server, ctx *callContext, q, reply []byte) (answer []byte, err error) {
	ctx.info.Request = q
	answer, _, err = around(s.cfg.interceptors, ctx, &ctx.info, h.m, func(in context.Context) ([]byte, error) {
		return h.raw(in, ctx.info.Request.([]byte), reply)
	})
	return answer, err
}
