package rpc

import (
	"context"

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
	stream func(ctx context.Context, q any, out sink) error
	newReq func() any
	counts *methodCounts
}

// sink is where the items of a stream go.
type sink interface{ send(item any) error }

// place is the kind of place that a call takes, unless its handler is OnLoop.
func (h *handler) place() share.Resource {
	if h.stream != nil {
		return share.Streams
	}
	return share.Calls
}

// invoke calls the handler with a request, and appends the answer to reply, if it is no stream.
func (h *handler) invoke(is []Interceptor, ctx *callContext, q, reply []byte, out sink) ([]byte, error) {
	guarded := len(is) > 0
	switch {
	case h.raw != nil && guarded:
		return h.guardRaw(is, ctx, q, reply)
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
		answer, err = h.guard(is, ctx, msg, out)
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
func (h *handler) serve(ctx context.Context, msg any, out sink) (answer any, err error) {
	if h.stream != nil {
		return nil, h.stream(ctx, msg, out)
	}
	return h.call(ctx, msg)
}

// guard is serve within the interceptors. It is not a part of invoke, because what its closure
// captures is allocated: there that would happen in every call.
func (h *handler) guard(is []Interceptor, ctx *callContext, msg any, out sink) (answer any, err error) {
	ctx.info.Request = msg
	answer, _, err = around(is, ctx, &ctx.info, h.m, func(in context.Context) (any, error) {
		return h.serve(in, ctx.info.Request, out)
	})
	return answer, err
}

// guardRaw is raw within the interceptors.
func (h *handler) guardRaw(is []Interceptor, ctx *callContext, q, reply []byte) (answer []byte, err error) {
	ctx.info.Request = q
	answer, _, err = around(is, ctx, &ctx.info, h.m, func(in context.Context) ([]byte, error) {
		return h.raw(in, ctx.info.Request.([]byte), reply)
	})
	return answer, err
}
