// Package traces makes OpenTelemetry spans of calls and streams of package rpc, of messages between
// actors, including those on other nodes, and of the life of each connection. It propagates the
// context as W3C's traceparent, tracestate and baggage, so one trace leads from a client through
// all nodes. It is a separate module: nothing in the core imports OpenTelemetry.
//
//	t := traces.New(traces.Config{Provider: provider})
//	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New(), Observer: t.Observer(nil)})
//	server := rpc.NewServer(rt, rpc.ServerConfig{Interceptors: []rpc.Interceptor{t.Server()}})
//	client, err := rpc.Dial(ctx, rt, addr, rpc.ClientConfig{Interceptors: []rpc.Interceptor{t.Client()}})
//	props := actor.PropsFromFunc(receive, t.Props()...)
//	t.Root(ctx, system.Root).Send(pid, message) // from outside of actors, as from an rpc handler
//
// # Spans
//
// A call has a client span, and at the server a server span with two parts: "queue", from the
// request's arrival to its turn, and "handler". A stream's client span lasts as long as the stream.
// Calls that a server refuses before its interceptors (too many calls, draining) have the client's
// span only.
//
// A message that is sent within a trace has a producer span, and a consumer span at its receiver,
// on whichever node. Messages outside of a trace have no spans, and begin no trace.
//
// A connection has a span from its first command or event to Closed, with a span for each command
// that reached the device, and its states as events. It has a separate trace, because it serves
// many others.
//
// # Ownership
//
// A Tracing may be used by any goroutine, and by several runtimes. It ends with its last span and
// needs no closing. The program owns the TracerProvider: Flush, then shut it down.
//
// # Ordering
//
// Spans end in the order in which their subjects ended, on a goroutine of the Tracing's.
//
// # Errors
//
// Tracing never makes a call, a message or a connection fail. A context that is malformed or too
// large is left out. If a sampler, a processor or an exporter panics, or blocks, spans are lost:
// Stats counts them. Spans end on a separate goroutine, so no loop and no caller ever waits for an
// exporter, whatever the SDK's processor is. A span begins where its work is, because its context
// is needed there: so a Sampler, and a SpanProcessor's OnStart, must not block. The SDK's own do
// not. Use its batch processor (sdktrace.WithBatcher), without WithBlocking. It calls the exporter
// on a separate goroutine, and a panic there ends the process: Guard prevents that.
//
// # Limitations
//
// The context is part of a call or a message, up to 6 KiB of it. A message that is already as large
// as its receiver takes (MaxMessage) becomes too large. An actor's ReceiveTimeout belongs to no
// trace. The attempts of a repeated call (rpc.Retry) share one span. Reads, Writes and atomics have
// no spans. A future's answer has its producer span, but no consumer span. Messages that an actor
// sends in ReenterAfter belong to the message that it had then. A connection's span does not name
// the call that caused the dial.
package traces
