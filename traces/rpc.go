package traces

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc"
)

// system is the name of the system in the spans of calls and messages.
const system = "rdmactor"

// maxText is the largest length of a text that a peer can choose, in bytes.
const maxText = 256

// Client returns an interceptor for clients: it makes a span for each call and each stream, and
// sends its context along. Put it first, so that the other interceptors are within the span.
func (t *Tracing) Client() rpc.Interceptor {
	return func(ctx context.Context, call *rpc.Info, next func(context.Context) error) error {
		in, span := t.startSpan(ctx, call.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(clientAttributes(call)...))
		finish := func(err error) { t.endSpan(span, callFinisher(err, trace.SpanKindClient)) }
		returned := false
		defer func() {
			if !returned {
				t.endSpan(span, markUnreturned)
			}
		}()
		err := next(t.outgoingContext(in))
		returned = true
		if !call.Stream || err != nil {
			finish(err)
			return err
		}
		if !span.IsRecording() {
			return nil
		}
		was := call.Ended
		call.Ended = func(err error) {
			if errors.Is(err, io.EOF) {
				finish(nil)
			} else {
				finish(err)
			}
			if was != nil {
				was(err)
			}
		}
		return nil
	}
}

// Server returns an interceptor for servers: it continues the trace that a call belongs to, or
// begins one. Put it first, so that the other interceptors are within the span. The handler's
// context contains the span of the handler: trace.SpanFromContext.
func (t *Tracing) Server() rpc.Interceptor {
	return func(ctx context.Context, call *rpc.Info, next func(context.Context) error) error {
		now := time.Now()
		from := t.extractFields(ctx, func(key string) string {
			v, _ := rpc.Metadata(ctx, key)
			return v
		})
		in, span := t.startSpan(from, call.Method, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithTimestamp(call.Arrived), trace.WithAttributes(serverAttributes(call)...))
		if !span.IsRecording() { // the handler's calls belong to the trace even so
			return next(in)
		}
		t.addChildSpan(in, "queue", call.Arrived, now)
		in, handler := t.startSpan(in, "handler", trace.WithTimestamp(now))
		finish := markUnreturned
		defer func() {
			t.endSpan(handler, nil)
			t.endSpan(span, finish)
		}()
		err := next(in)
		finish = callFinisher(err, trace.SpanKindServer)
		return err
	}
}

func clientAttributes(call *rpc.Info) []attribute.KeyValue {
	return append(addrAttributes(call.Peer, semconv.ServerAddressKey, semconv.ServerPortKey),
		semconv.RPCSystemNameKey.String(system), semconv.RPCMethod(call.Method))
}

func serverAttributes(call *rpc.Info) []attribute.KeyValue {
	return append(addrAttributes(call.Peer, semconv.ClientAddressKey, semconv.ClientPortKey),
		semconv.RPCSystemNameKey.String(system), semconv.RPCMethod(call.Method))
}

// addrAttributes returns an address as two attributes; none if it is unknown.
func addrAttributes(a rdma.Addr, address, port attribute.Key) []attribute.KeyValue {
	if a.IsZero() {
		return nil
	}
	return []attribute.KeyValue{address.String(a.Source().String()), port.Int(int(a.Port()))}
}

// markUnreturned sets the status of a span whose code has not returned.
func markUnreturned(span trace.Span) {
	span.SetAttributes(semconv.ErrorTypeKey.String("panic"))
	span.SetStatus(codes.Error, "the code has not returned")
}

// callFinisher returns the function that sets the result of a call's span.
func callFinisher(err error, side trace.SpanKind) func(trace.Span) {
	if err == nil {
		return func(span trace.Span) { span.SetAttributes(semconv.RPCResponseStatusCode("OK")) }
	}
	code, text := rpc.CodeOf(err), clipText(textOf(err))
	name := codeName(code)
	attrs := []attribute.KeyValue{semconv.RPCResponseStatusCode(name), semconv.ErrorTypeKey.String(name)}
	if e, ok := errors.AsType[*rpc.Error](err); ok && side == trace.SpanKindClient {
		attrs = append(attrs, attribute.String("rdmactor.fate", e.Fate.String()))
	}
	return func(span trace.Span) {
		span.SetAttributes(attrs...)
		if side == trace.SpanKindClient || serverFault(code) {
			span.SetStatus(codes.Error, text)
		}
	}
}

// serverFault reports whether a code means a fault of the server. The others mean a fault of the
// call, or are a service's answers: at the server they are no errors.
func serverFault(code rpc.Code) bool {
	switch code {
	case rpc.CodeUnknown, rpc.CodeDeadline, rpc.CodeInternal, rpc.CodeTooLarge, rpc.CodeUnavailable:
		return true
	}
	return false
}

var codeNames = [...]string{
	0: "OK", rpc.CodeUnknown: "UNKNOWN", rpc.CodeCanceled: "CANCELED", rpc.CodeDeadline: "DEADLINE_EXCEEDED",
	rpc.CodeInternal: "INTERNAL", rpc.CodeUnknownMethod: "UNKNOWN_METHOD", rpc.CodeBadMessage: "BAD_MESSAGE",
	rpc.CodeTooLarge: "TOO_LARGE", rpc.CodeOverloaded: "OVERLOADED", rpc.CodeDraining: "DRAINING",
	rpc.CodeUnavailable: "UNAVAILABLE", rpc.CodeClosed: "CLOSED", rpc.CodeForeign: "FOREIGN_PEER", rpc.CodeVersion: "VERSION",
}

// codeName returns a code as it appears in spans (rpc.response.status_code, error.type): a name, or
// the number of a service's code.
func codeName(code rpc.Code) string {
	if int(code) < len(codeNames) {
		return codeNames[code]
	}
	return strconv.Itoa(int(code))
}

// textOf returns an error's text, even if its Error method panics.
func textOf(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "an error that does not say what it is"
		}
	}()
	return err.Error()
}

// clipText cuts a text to maxText bytes of valid UTF-8: exporters refuse others.
func clipText(s string) string { return clipTo(s, maxText) }
