package rpc

import (
	"context"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/health"
	"github.com/rdmactor/rdmactor/rpc/internal/share"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// handler is a method at a server.
type handler struct {
	m      *method
	inline bool
	task   *rdma.Task // set if inline
	raw    func(ctx context.Context, q, reply []byte) ([]byte, error)
	call   func(ctx context.Context, q any) (any, error)
	// of a stream: q is the request, and nil if the client sends items
	stream func(q any, s streaming) (answer any, err error)
	newReq func() any
	counts *methodCounts
}

// streaming is a stream that is being handled.
type streaming struct {
	ctx  context.Context
	call *serverCall
	info *Info // of the innermost interceptor
}

// senderOf returns the sending end of a stream.
func senderOf[T any](s streaming) *Sender[T] { return &Sender[T]{s.call, s.info.OnSend} }

// receiverOf returns the receiving end of a stream.
func receiverOf[Q any](s streaming) *Receiver[Q] {
	return &Receiver[Q]{r: &s.call.stream.inbound, received: s.info.OnReceive}
}

// onLoopRequest is the size of the largest request of an OnLoop handler whose method has no
// MaxRequest: it is decoded on the loop.
const onLoopRequest = 64 << 10

// maxRequest returns the size of the largest request; 0: MaxMessage is the only limit.
func (h *handler) maxRequest() int {
	if most := h.m.cfg.MaxRequest; most > 0 || !h.inline {
		return most
	}
	return onLoopRequest
}

// tooLarge returns why a request of n bytes is refused; "": the method takes it. most is the size
// of the largest message.
func (h *handler) tooLarge(n, most int) (why string) {
	if limit := h.maxRequest(); limit > 0 && n > limit {
		return beyondMaxRequest(h.m, n, limit, FateRefused).Message
	}
	if wire.HeaderLen+n > most { // only one that was announced
		return tooLarge(h.m, "the request", "Server", n, most, FateRefused).Message
	}
	return ""
}

// placeKind returns the kind of place that a call takes, unless its handler is OnLoop.
func (h *handler) placeKind() share.Resource {
	switch {
	case h.stream == nil:
		return share.Calls
	case h.m.name == health.Watch:
		return share.Watches
	}
	return share.Streams
}

// invoke calls the handler with a call's request, and appends the answer to reply, if it is no
// stream.
func (h *handler) invoke(call *serverCall, reply []byte) ([]byte, error) {
	guarded := len(call.c.s.cfg.Interceptors) > 0
	switch {
	case h.raw != nil && guarded:
		return h.guardRaw(call)
	case h.raw != nil:
		return h.raw(&call.ctx, call.body.b, reply)
	}
	var msg any
	if !h.m.sends {
		msg = h.newReq()
		if err := h.m.req.decode(call.body.b, msg); err != nil {
			return nil, &Error{Code: CodeBadMessage, Message: "request: " + err.Error()}
		}
	}
	var answer any
	var err error
	if guarded {
		answer, err = h.serveGuarded(call, msg)
	} else {
		answer, err = h.serveMessage(&call.ctx, msg, call, &call.ctx.info)
	}
	switch {
	case err != nil || h.m.items:
		return nil, err
	}
	if reply, err = h.m.rep.encode(reply, answer); err != nil {
		return nil, &Error{Code: CodeBadMessage, Message: "reply: " + err.Error()}
	}
	return reply, nil
}

// serveMessage calls the handler of messages.
func (h *handler) serveMessage(ctx context.Context, msg any, call *serverCall, info *Info) (answer any, err error) {
	if h.stream != nil {
		return h.stream(msg, streaming{ctx, call, info})
	}
	return h.call(ctx, msg)
}

// serveGuarded calls serveMessage within the interceptors. It is not in invokeHandler, because its
// closure's captured variables are allocated: in invokeHandler that would happen in every call.
func (h *handler) serveGuarded(call *serverCall, msg any) (answer any, err error) {
	call.setPassage(msg, func(ctx context.Context, in *Info) error {
		a, err := h.serveMessage(ctx, in.Request, call, in)
		if err == nil {
			in.Reply = a
		}
		return err
	})
	return answerOf[any](&call.ctx, call.passage)
}

// guardRaw calls raw within the interceptors. The answer is not appended to memory that is reused:
// an interceptor may keep it, or return while the handler still appends to it.
func (h *handler) guardRaw(call *serverCall) (answer []byte, err error) {
	call.setPassage(call.body.b, func(ctx context.Context, in *Info) error {
		a, err := h.raw(ctx, in.Request.([]byte), nil)
		if err == nil {
			in.Reply = a
		}
		return err
	})
	return answerOf[[]byte](&call.ctx, call.passage)
}
