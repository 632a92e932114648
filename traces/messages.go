package traces

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/ctxext"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// maxName is the largest length of an actor's name in a span: a peer can choose it.
const maxName = 128

// Props are for actors that receive and send messages within traces, from and to any node:
// actor.PropsFromFunc(receive, t.Props()...). A message that belongs to a trace has a consumer
// span. Messages that the actor sends while it receives that one (Send, Request, RequestFuture,
// Respond, Forward) continue its trace, and so do those that it sends later in ReenterAfter.
func (t *Tracing) Props() []actor.PropsOption {
	return []actor.PropsOption{actor.WithReceiverMiddleware(t.receiverMiddleware), actor.WithSenderMiddleware(t.senderMiddleware)}
}

// Context returns the context of the message that an actor with Props is receiving. It contains the
// message's span, and the received baggage. Outside of a trace it is context.Background().
func (t *Tracing) Context(ctx actor.Context) context.Context { return t.currentContext(ctx) }

// Root returns a copy of root whose messages belong to ctx's trace. It is for code outside of
// actors, such as an rpc handler. The copy has no other sender middleware, and need not be kept.
func (t *Tracing) Root(ctx context.Context, root *actor.RootContext) *actor.RootContext {
	return root.Copy().WithSenderMiddleware(func(next actor.SenderFunc) actor.SenderFunc {
		return func(c actor.SenderContext, target *actor.PID, env *actor.MessageEnvelope) {
			t.sendTraced(ctx, next, c, target, env)
		}
	})
}

// extensionID identifies the current of an actor's context.
var extensionID = ctxext.NextContextExtensionID()

// current is the trace context of the message that an actor is receiving; nil: no trace. Any
// goroutine may read it: users' code also sends from others.
type current struct {
	ctx atomic.Pointer[context.Context]
}

// ExtensionID implements Proto.Actor's interface.
func (*current) ExtensionID() ctxext.ContextExtensionID { return extensionID }

// currentOf returns an actor's current; nil: none yet. Proto.Actor's Get panics if there were never
// as many extensions.
func currentOf(c actor.ExtensionContext) (cur *current) {
	defer func() { _ = recover() }()
	cur, _ = c.Get(extensionID).(*current)
	return cur
}

// currentContext returns the trace context in which an actor runs.
func (t *Tracing) currentContext(c actor.SenderContext) context.Context {
	ext, ok := c.(actor.ExtensionContext)
	if !ok {
		return context.Background()
	}
	if cur := currentOf(ext); cur != nil {
		if in := cur.ctx.Load(); in != nil {
			return *in
		}
	}
	// in ReenterAfter: no middleware was called, but the message is there
	return t.contextOf(c.MessageHeader())
}

// contextOf returns the trace context that a message arrived with.
func (t *Tracing) contextOf(header actor.ReadonlyMessageHeader) context.Context {
	if header == nil || header.Length() == 0 {
		return context.Background()
	}
	return t.extractFields(context.Background(), header.Get)
}

// receiverMiddleware returns a middleware that makes the spans of received messages in a trace.
func (t *Tracing) receiverMiddleware(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, env *actor.MessageEnvelope) {
		cur := currentOf(c)
		if cur == nil {
			cur = &current{}
			c.Set(cur)
		}
		if len(env.Header) == 0 {
			next(c, env)
			return
		}
		ctx := t.contextOf(env.Header)
		if !trace.SpanContextFromContext(ctx).IsValid() {
			next(c, env)
			return
		}
		in, span := t.startSpan(ctx, "process "+kindOf(env.Message), trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(messageAttributes("process", c.Self(), env.Message)...))
		was := cur.ctx.Swap(&in)
		finish := markUnreturned
		defer func() {
			cur.ctx.Store(was)
			t.endSpan(span, finish)
		}()
		next(c, env)
		finish = nil
	}
}

// senderMiddleware returns a middleware that makes a sent message's span and header in a trace.
func (t *Tracing) senderMiddleware(next actor.SenderFunc) actor.SenderFunc {
	return func(c actor.SenderContext, target *actor.PID, env *actor.MessageEnvelope) {
		if _, timer := env.Message.(*actor.ReceiveTimeout); timer {
			// a timer sends it, on its goroutine, whatever the actor is receiving
			next(c, target, env)
			return
		}
		t.sendTraced(t.currentContext(c), next, c, target, env)
	}
}

func (t *Tracing) sendTraced(ctx context.Context, next actor.SenderFunc, c actor.SenderContext, target *actor.PID, env *actor.MessageEnvelope) {
	if target == nil || !trace.SpanContextFromContext(ctx).IsValid() || ofConnection(env.Message) {
		next(c, target, env)
		return
	}
	in, span := t.startSpan(ctx, "send "+kindOf(env.Message), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(messageAttributes("send", target, env.Message)...))
	finish := markUnreturned
	defer func() { t.endSpan(span, finish) }()
	next(c, target, t.withHeader(in, env))
	finish = nil
}

// ofConnection reports whether a message is a connection's command, where a trace ends.
func ofConnection(msg any) bool {
	_, ok := msg.(rdma.Command)
	return ok
}

// kindOf returns the type of a message. The number of types is bounded.
func kindOf(msg any) string { return fmt.Sprintf("%T", msg) }

func messageAttributes(what string, to *actor.PID, msg any) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		semconv.MessagingSystemKey.String(system), semconv.MessagingOperationName(what),
		semconv.MessagingOperationTypeKey.String(what), semconv.MessagingDestinationName(clipTo(to.Id, maxName)),
		attribute.String("rdmactor.message.type", kindOf(msg)),
	}
	if what == "send" {
		attrs = append(attrs, semconv.ServerAddress(clipTo(to.Address, maxName)))
	}
	return attrs
}
