package rpc

import (
	"context"
	"fmt"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// HandlerConfig is how a handler of Handle or HandleRaw is called.
type HandlerConfig struct {
	// OnLoop says that the handler never blocks: it is called on the loop of its connection, which
	// is the fastest way to an answer, and which holds up that loop's other connections meanwhile.
	// A slow one is named by the loop's watchdog (eventloop.Config.StallAfter), as "rpc" and the
	// method's name. Its context, and a raw request, are valid until it returns. Streams have
	// goroutines.
	//
	// Its request is decoded on the loop, and its answer encoded and copied there, however large
	// they are: a method with large messages is better off on a goroutine.
	OnLoop bool
}

// Handle has fn answer the calls of a method. What fn returns is encoded before anything else
// happens to it. fn runs on a goroutine of the server's unless OnLoop says otherwise. Handle panics
// if the method has a handler. Handlers are registered before Listen.
func Handle[Q, R any](s *Server, m Method[Q, R], fn func(ctx context.Context, q *Q) (*R, error), cfg HandlerConfig) {
	s.handle(&handler{
		m:      m.m,
		inline: cfg.OnLoop,
		newReq: func() any { return new(Q) },
		call: func(ctx context.Context, q any) (any, error) {
			r, err := fn(ctx, q.(*Q))
			if err == nil && r == nil {
				err = &Error{Code: CodeInternal, Message: "the handler has answered with nothing"}
			}
			return r, err
		},
	})
}

// HandleRaw has fn answer the calls of a raw method. It appends its answer to reply and returns
// that, or returns bytes of its own, which are copied when it has returned. q is valid until then.
func HandleRaw(s *Server, m RawMethod, fn func(ctx context.Context, q, reply []byte) ([]byte, error), cfg HandlerConfig) {
	s.handle(&handler{m: m.m, inline: cfg.OnLoop, raw: fn})
}

// HandleStream has fn serve a stream: what it sends to out are the items; the stream ends when it
// returns, with its error or without one.
func HandleStream[Q, T any](s *Server, m Stream[Q, T], fn func(ctx context.Context, q *Q, out *Sender[T]) error) {
	s.handle(&handler{
		m:      m.m,
		newReq: func() any { return new(Q) },
		stream: func(ctx context.Context, q any, out sink) error { return fn(ctx, q.(*Q), &Sender[T]{out}) },
	})
}

func (s *Server) handle(h *handler) {
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
