package traces

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/ctxext"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// receiving is an actor that receives a message of a trace.
type receiving struct {
	actor.SenderContext
	cur *current
}

func (r receiving) Get(ctxext.ContextExtensionID) ctxext.ContextExtension { return r.cur }
func (r receiving) Set(ctxext.ContextExtension)                           {}

// A ReceiveTimeout, which a timer sends while the actor receives a message, does not belong to that
// message's trace.
func TestReceiveTimeout(t *testing.T) {
	m := boot(t)
	ctx, span := m.tr.startSpan(t.Context(), "all")
	defer span.End()
	r := receiving{cur: &current{}}
	r.cur.ctx.Store(&ctx)
	var got *actor.MessageEnvelope
	send := m.tr.senderMiddleware(func(_ actor.SenderContext, _ *actor.PID, env *actor.MessageEnvelope) { got = env })
	send(r, actor.NewPID("here", "1"), &actor.MessageEnvelope{Message: wrapperspb.String("x")})
	if got.Header["traceparent"] == "" {
		t.Error("a message is not of the trace")
	}
	send(r, actor.NewPID("here", "1"), &actor.MessageEnvelope{Message: &actor.ReceiveTimeout{}})
	if got.Header["traceparent"] != "" {
		t.Error("a ReceiveTimeout is of the trace")
	}
}
