package rpc

import (
	"context"
	"fmt"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/optional"
)

// HandlerConfig is how a handler of Handle or HandleRaw is called.
type HandlerConfig struct {
	// If OnLoop is set, the handler is called on the loop of its connection, so it must not block.
	// That is the fastest way to an answer, but other connections of that loop wait for it. The
	// loop's watchdog (eventloop.Config.StallAfter) reports a slow handler as "rpc" and the
	// method's name. The handler's context, and a raw request, are valid until it and the
	// interceptors have returned. Handlers of streams always run on goroutines.
	//
	// Its request is decoded on the loop, so it has at most 64 KiB, unless MethodConfig.MaxRequest
	// is set: larger ones are refused (ErrTooLarge). Its answer is encoded and copied there,
	// however large it is: a method with large messages is better off on a goroutine.
	OnLoop bool
}

// Handle registers fn as the handler of a method. The result of fn is encoded when fn and the
// interceptors have returned. fn runs on a goroutine of the server, unless OnLoop is set. Handle
// panics if the method has a handler already. Handlers are registered before Listen.
func Handle[Q, R any](s *Server, m Method[Q, R], fn func(ctx context.Context, q *Q) (*R, error), cfg ...HandlerConfig) {
	s.addHandler(&handler{
		m:      m.m,
		inline: optional.Value(cfg).OnLoop,
		newReq: func() any { return new(Q) },
		call: func(ctx context.Context, q any) (any, error) {
			r, err := fn(ctx, q.(*Q))
			return r, checkAnswer(r, err)
		},
	})
}

// checkAnswer returns the error of a handler that has returned r and err.
func checkAnswer[R any](r *R, err error) error {
	if err == nil && r == nil {
		return &Error{Code: CodeInternal, Message: "the handler has answered with nothing"}
	}
	return err
}

// HandleRaw registers fn as the handler of a raw method. fn appends its answer to reply and returns
// that, or returns other bytes, which are copied when fn and the interceptors have returned. q is
// valid until then. With interceptors, reply is nil.
func HandleRaw(s *Server, m RawMethod, fn func(ctx context.Context, q, reply []byte) ([]byte, error), cfg ...HandlerConfig) {
	s.addHandler(&handler{m: m.m, inline: optional.Value(cfg).OnLoop, raw: fn})
}

// HandleStream registers fn as the handler of a stream whose items the server sends. fn sends the
// items to out. When it returns the stream ends, with its error if there is one.
func HandleStream[Q, T any](s *Server, m Stream[Q, T], fn func(ctx context.Context, q *Q, out *Sender[T]) error) {
	s.addHandler(&handler{
		m:      m.m,
		newReq: func() any { return new(Q) },
		stream: func(q any, s streaming) (any, error) { return nil, fn(s.ctx, q.(*Q), senderOf[T](s)) },
	})
}

// HandleClientStream registers fn as the handler of a client's stream. fn receives items from in,
// until io.EOF if it wants all of them, and its result is the answer. The client may send ahead as
// much as ServerConfig.StreamWindow, and more as fn receives.
func HandleClientStream[Q, R any](s *Server, m ClientStream[Q, R], fn func(ctx context.Context, in *Receiver[Q]) (*R, error)) {
	s.addHandler(&handler{
		m: m.m,
		stream: func(_ any, s streaming) (any, error) {
			r, err := fn(s.ctx, receiverOf[Q](s))
			return r, checkAnswer(r, err)
		},
	})
}

// HandleBidiStream registers fn as the handler of a stream in both directions. in and out may be
// used by a goroutine each, until fn returns. That ends the stream, with its error if there is one.
func HandleBidiStream[Q, T any](s *Server, m BidiStream[Q, T], fn func(ctx context.Context, in *Receiver[Q], out *Sender[T]) error) {
	s.addHandler(&handler{
		m:      m.m,
		stream: func(_ any, s streaming) (any, error) { return nil, fn(s.ctx, receiverOf[Q](s), senderOf[T](s)) },
	})
}

func (s *Server) addHandler(h *handler) {
	if h.inline {
		h.task = rdma.NewTask("rpc " + h.m.name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers[h.m.name] != nil {
		panic(fmt.Sprintf("rpc: %s has a handler", h.m.name))
	}
	h.counts = s.ledger.addMethod(h.m, h.inline)
	s.handlers[h.m.name] = h
}
