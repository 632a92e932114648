package traces

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/asynkron/protoactor-go/actor"
	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/states"
)

// call makes one call over a new connection, and closes it.
func call(t *testing.T, here, there *machine) {
	t.Helper()
	server := rpc.NewServer(there.rt)
	rpc.HandleRaw(server, greet, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil })
	c, err := rpc.Dial(t.Context(), here.rt, there.listen(server))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rpc.CallRaw(t.Context(), c, greet, []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	c.Close()
	server.Close()
}

// find waits for a span of a kind.
func (m *machine) find(name string, kind trace.SpanKind) tracetest.SpanStub {
	m.t.Helper()
	m.await(name)
	for _, s := range m.spans.GetSpans() {
		if s.Name == name && s.SpanKind == kind {
			return s
		}
	}
	m.t.Fatalf("no %v span %q", kind, name)
	panic("unreachable")
}

func events(s tracetest.SpanStub) (list []string) {
	for _, e := range s.Events {
		list = append(list, e.Name)
	}
	return list
}

// A connection has a span on both sides, with its commands below it and its states as events.
func TestConnection(t *testing.T) {
	here, there := boot(t), boot(t)
	call(t, here, there)
	dialled := here.find("rdma connection", trace.SpanKindClient)
	for _, state := range []states.State{states.AddrQuery, states.RouteQuery, states.Connecting, states.Connected} {
		if !slices.Contains(events(dialled), state.String()) {
			t.Errorf("no event %q in %q", state, events(dialled))
		}
	}
	for _, op := range []states.Op{states.OpResolveAddr, states.OpResolveRoute, states.OpConnect} {
		s := here.await(op.String())
		below(t, dialled, s)
		if s.StartTime.Before(dialled.StartTime) || s.EndTime.After(dialled.EndTime) || s.EndTime.Before(s.StartTime) {
			t.Errorf("%s is not within its connection: %v to %v", op, s.StartTime, s.EndTime)
		}
	}
	accepted := there.find("rdma connection", trace.SpanKindServer)
	below(t, accepted, there.await(states.OpAccept.String()))
	listener := there.await("rdma listener")
	below(t, listener, there.await(states.OpListen.String()))
	if attr(dialled, "network.peer.port") != attr(listener, "network.local.port") || attr(dialled, "network.peer.port") == "" {
		t.Errorf("the listener's port is %q, and its peer's %q", attr(listener, "network.local.port"), attr(dialled, "network.peer.port"))
	}
	if attr(accepted, "rdmactor.sends.delivered") == "" || attr(dialled, "rdmactor.id") == "" {
		t.Errorf("attributes: %v, %v", accepted.Attributes, dialled.Attributes)
	}
}

// A failed dial reports the cause in its command's span, and in its own.
func TestRefusedConnection(t *testing.T) {
	m := boot(t)
	if _, err := rpc.Dial(t.Context(), m.rt, "127.0.0.1:1"); err == nil {
		t.Fatal("somebody listens there")
	}
	connect := m.await(states.OpConnect.String())
	if connect.Status.Code != codes.Error || connect.Status.Description == "" {
		t.Errorf("the command's status is %+v", connect.Status)
	}
	m.await("rdma connection")
	// of any connection: the client may dial again
	rejected := slices.ContainsFunc(m.spans.GetSpans(), func(s tracetest.SpanStub) bool {
		return s.Name == "rdma connection" && slices.Contains(events(s), states.KindRejected.String())
	})
	if !rejected {
		t.Errorf("no span with the event: %v", names(m.ended()))
	}
}

// A connection that a sampler leaves out has no spans, and neither have its commands.
func TestUnsampledConnection(t *testing.T) {
	here, there := boot(t, sdktrace.WithSampler(sdktrace.NeverSample())), boot(t)
	call(t, here, there)
	there.find("rdma connection", trace.SpanKindServer)
	if all := here.ended(); len(all) != 0 {
		t.Errorf("spans %v", names(all))
	}
}

// commandsOnly samples everything except connections, whatever their parents.
type commandsOnly struct{}

func (commandsOnly) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.Name == "rdma connection" {
		return sdktrace.SamplingResult{Decision: sdktrace.Drop}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}
func (commandsOnly) Description() string { return "commands only" }

// Commands are not sampled without their connection.
func TestUnsampledCommands(t *testing.T) {
	here, there := boot(t, sdktrace.WithSampler(commandsOnly{})), boot(t)
	call(t, here, there)
	there.find("rdma connection", trace.SpanKindServer)
	if all := here.ended(); len(all) != 0 {
		t.Errorf("spans %v", names(all))
	}
}

// plain is an Observer that observes no commands, and counts.
type plain struct{ transitions, events, credits atomic.Int64 }

func (p *plain) Transition(*actor.PID, rdma.Handle, states.State, states.State) { p.transitions.Add(1) }
func (p *plain) Event(*actor.PID, cmid.Event)                                   { p.events.Add(1) }
func (p *plain) Credit(*actor.PID, rdma.Handle, rdma.Credits)                   { p.credits.Add(1) }
func (p *plain) Moved(*actor.PID, rdma.Handle, string, string)                  {}

// Another observer is notified, too.
func TestNextObserver(t *testing.T) {
	p := &plain{}
	here := &machine{t: t, spans: tracetest.NewInMemoryExporter()}
	here.tr = New(Config{Provider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(here.spans))})
	here.open(here.tr.Observer(p))
	call(t, here, boot(t))
	here.find("rdma connection", trace.SpanKindClient)
	if p.transitions.Load() == 0 || p.events.Load() == 0 || p.credits.Load() == 0 {
		t.Errorf("%d transitions, %d events, %d credits", p.transitions.Load(), p.events.Load(), p.credits.Load())
	}
}

// An identifier with an endless series of errors has a bounded span, and leaves nothing behind.
func TestManyEvents(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tr := New(Config{Provider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	o, _ := tr.Observer(nil).(*observer)
	id := actor.NewPID("here", "1")
	for range 1000 {
		o.Begun(id, 1, &cmid.ResolveAddr{})
		o.Transition(id, 1, states.Bound, states.AddrQuery)
		ev := &cmid.AddrError{}
		ev.ID, ev.Err = 1, errors.New(string(make([]byte, 1<<20)))
		o.Event(id, ev)
	}
	o.Event(id, &cmid.Closed{EventBase: cmid.EventBase{ID: 1}, Err: errors.New("over")})
	if err := tr.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := spans.GetSpans()
	last := all[len(all)-1]
	if len(all) != maxCommands+1 || last.Name != "rdma connection" || len(last.Events) != maxStates || last.Status.Description != "over" {
		t.Errorf("%d spans, the last %q with %d events, %v", len(all), last.Name, len(last.Events), last.Status)
	}
	for _, e := range last.Events {
		for _, a := range e.Attributes {
			if n := len(a.Value.AsString()); n > maxText {
				t.Fatalf("a text of %d bytes", n)
			}
		}
	}
	if len(o.all) != 0 {
		t.Errorf("%d identifiers are left", len(o.all))
	}
}
