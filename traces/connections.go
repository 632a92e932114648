package traces

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Limits for one connection at a time: a peer can cause any number of errors, and its owner can
// send any number of commands.
const (
	maxStates   = 64 // events of its span
	maxCommands = 32 // commands under way
)

// Observer returns an observer for rdma.Config, which makes the spans of connections and listeners.
// next is notified, too; it may be nil. On the loops it only records times and texts: the spans are
// made elsewhere, even those that a sampler leaves out.
func (t *Tracing) Observer(next rdma.Observer) rdma.Observer {
	o := &observer{t: t, next: next, all: make(map[*actor.PID]*connection)}
	o.commands, _ = next.(rdma.CommandObserver)
	return o
}

type observer struct {
	t        *Tracing
	next     rdma.Observer        // nil: none
	commands rdma.CommandObserver // next, if it is one

	mu  sync.Mutex
	all map[*actor.PID]*connection // nil value: there was no room for the span
}

// connection is the state kept of an identifier. Its loop uses the first part, the queue the
// second.
type connection struct {
	underWay []command
	noted    int // events of the span

	span trace.Span
	ctx  context.Context
}

// command is a command without an answer yet.
type command struct {
	cmd rdma.Command // only compared
	at  time.Time
}

// connectionOf returns the state kept of an identifier, and begins its span if it is new. nil:
// none.
func (o *observer) connectionOf(id *actor.PID, h rdma.Handle, kind trace.SpanKind) *connection {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, known := o.all[id]; known {
		return c
	}
	c, at := &connection{}, time.Now()
	if !o.t.ends.put(func() { c.beginSpan(o.t, h, kind, at) }) {
		c = nil
	}
	o.all[id] = c
	return c
}

// removeConnection removes the state kept of an identifier, and returns it.
func (o *observer) removeConnection(id *actor.PID) *connection {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.all[id]
	delete(o.all, id)
	return c
}

// Transition implements rdma.Observer.
func (o *observer) Transition(id *actor.PID, h rdma.Handle, from, to states.State) {
	if o.next != nil {
		o.next.Transition(id, h, from, to)
	}
	o.addEvent(o.connectionOf(id, h, trace.SpanKindInternal), to.String())
}

// Begun implements rdma.CommandObserver.
func (o *observer) Begun(id *actor.PID, h rdma.Handle, cmd rdma.Command) {
	if o.commands != nil {
		o.commands.Begun(id, h, cmd)
	}
	kind := trace.SpanKindInternal
	switch cmd.Op() {
	case states.OpResolveAddr, states.OpConnect:
		kind = trace.SpanKindClient
	}
	c := o.connectionOf(id, h, kind)
	if c == nil || len(c.underWay) >= maxCommands {
		return
	}
	c.underWay = append(c.underWay, command{cmd, time.Now()})
	if cmd.Op() == states.OpListen {
		o.t.ends.put(func() { c.span.SetName("rdma listener") })
	}
}

// Answered implements rdma.CommandObserver.
func (o *observer) Answered(id *actor.PID, h rdma.Handle, cmd rdma.Command, ev cmid.Event) {
	if o.commands != nil {
		o.commands.Answered(id, h, cmd, ev)
	}
	c := o.connectionOf(id, h, trace.SpanKindInternal)
	if c == nil {
		return
	}
	for i, u := range c.underWay {
		if u.cmd == cmd {
			c.underWay = append(c.underWay[:i], c.underWay[i+1:]...)
			text := ""
			if err, ok := ev.(rdma.Failure); ok {
				text = clipText(textOf(err))
			}
			o.recordCommand(c, u, text)
			return
		}
	}
}

// recordCommand makes the span of a command that is over. text: why it failed.
func (o *observer) recordCommand(c *connection, u command, text string) {
	name, now := u.cmd.Op().String(), time.Now()
	o.t.ends.put(func() {
		if !c.span.IsRecording() {
			return
		}
		_, span := o.t.startSpan(c.ctx, name, trace.WithTimestamp(u.at))
		if text != "" {
			span.SetStatus(codes.Error, text)
		}
		span.End(trace.WithTimestamp(now))
	})
}

// Event implements rdma.Observer.
func (o *observer) Event(id *actor.PID, ev cmid.Event) {
	if o.next != nil {
		o.next.Event(id, ev)
	}
	switch ev := ev.(type) {
	case *cmid.ConnectRequest:
		o.recordAddrs(o.connectionOf(id, ev.ID, trace.SpanKindServer), ev.Local, ev.Peer, "")
	case *cmid.AddrResolved:
		o.recordAddrs(o.connectionOf(id, ev.ID, trace.SpanKindClient), ev.Local, ev.Peer, ev.Device)
	case *cmid.Established:
		o.recordAddrs(o.connectionOf(id, ev.ID, trace.SpanKindInternal), ev.Local, ev.Peer, "")
	case *cmid.Listening:
		o.recordAddrs(o.connectionOf(id, ev.ID, trace.SpanKindInternal), ev.Local, cmid.Addr{}, "")
	case *cmid.Disconnected:
		o.recordFailure(id, ev, ev.Err)
	case *cmid.DeviceRemoval:
		o.recordFailure(id, ev, ev.Err)
	case *cmid.AddrError, *cmid.RouteError, *cmid.ConnectError, *cmid.Unreachable, *cmid.Rejected, *cmid.CommandFailed, *cmid.ListenFailed:
		o.recordFailure(id, ev, ev.(rdma.Failure))
	case *cmid.Closed:
		o.handleClosed(id, ev)
	}
}

// Credit implements rdma.Observer.
func (o *observer) Credit(id *actor.PID, h rdma.Handle, c rdma.Credits) {
	if o.next != nil {
		o.next.Credit(id, h, c)
	}
}

// Moved implements rdma.Observer.
func (o *observer) Moved(id *actor.PID, h rdma.Handle, from, to string) {
	if o.next != nil {
		o.next.Moved(id, h, from, to)
	}
	o.addEvent(o.connectionOf(id, h, trace.SpanKindServer), "moved", attribute.String("rdmactor.loop", clipText(to)))
}

// addEvent adds an event to a connection's span.
func (o *observer) addEvent(c *connection, what string, attrs ...attribute.KeyValue) {
	if c == nil || c.noted >= maxStates {
		return
	}
	c.noted++
	at := time.Now()
	o.t.ends.put(func() { c.span.AddEvent(what, trace.WithTimestamp(at), trace.WithAttributes(attrs...)) })
}

// recordFailure records an event that has an error. nil: none.
func (o *observer) recordFailure(id *actor.PID, ev cmid.Event, err error) {
	var attrs []attribute.KeyValue
	if err != nil {
		attrs = append(attrs, semconv.ExceptionMessage(clipText(textOf(err))))
	}
	o.addEvent(o.connectionOf(id, ev.Ident(), trace.SpanKindInternal), ev.Kind().String(), attrs...)
}

// recordAddrs records a connection's addresses.
func (o *observer) recordAddrs(c *connection, local, with cmid.Addr, device string) {
	if c == nil {
		return
	}
	attrs := append(addrAttributes(local, semconv.NetworkLocalAddressKey, semconv.NetworkLocalPortKey),
		addrAttributes(with, semconv.NetworkPeerAddressKey, semconv.NetworkPeerPortKey)...)
	if device != "" {
		attrs = append(attrs, attribute.String("rdmactor.device", clipText(device)))
	}
	o.t.ends.put(func() { c.span.SetAttributes(attrs...) })
}

// handleClosed ends an identifier's span, and those of its commands that were not answered.
func (o *observer) handleClosed(id *actor.PID, ev *cmid.Closed) {
	c := o.removeConnection(id)
	if c == nil {
		return
	}
	for _, u := range c.underWay {
		if u.cmd.Op() == states.OpDestroyID {
			o.recordCommand(c, u, "")
		} else {
			o.recordCommand(c, u, "the identifier was closed before it was answered")
		}
	}
	text, at := "", time.Now()
	if ev.Err != nil {
		text = clipText(textOf(ev.Err))
	}
	delivered, unsent, unknown := int64(ev.Delivered), int64(ev.Unsent), int64(ev.Unknown)
	o.t.ends.putAlways(func() {
		if text != "" {
			c.span.SetStatus(codes.Error, text)
		}
		c.span.SetAttributes(attribute.Int64("rdmactor.sends.delivered", delivered),
			attribute.Int64("rdmactor.sends.unsent", unsent), attribute.Int64("rdmactor.sends.unknown", unknown))
		c.span.End(trace.WithTimestamp(at))
	})
}

// beginSpan makes the span, in a new trace.
func (c *connection) beginSpan(t *Tracing, h rdma.Handle, kind trace.SpanKind, at time.Time) {
	c.ctx, c.span = t.startSpan(context.Background(), "rdma connection", trace.WithSpanKind(kind), trace.WithTimestamp(at),
		trace.WithAttributes(attribute.Int64("rdmactor.id", int64(h))))
}
