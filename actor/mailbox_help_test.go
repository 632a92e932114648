package actor

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// testSystem is an ActorSystem that says nothing and leaves no goroutine.
func testSystem(tb testing.TB) *actor.ActorSystem {
	tb.Helper()
	sys := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	tb.Cleanup(sys.Shutdown)
	return sys
}

// newTestRuntime is a runtime without a device: n loops that run.
func newTestRuntime(tb testing.TB, n int) *Runtime {
	tb.Helper()
	sys := testSystem(tb)
	rt := &Runtime{sys: sys, boxes: boxesOf(sys), off: &goroutines{}}
	for range n {
		el, err := eventloop.New(eventloop.Config{Logger: sys.Logger()})
		if err != nil {
			tb.Fatal(err)
		}
		l := &loop{el: el, boxes: rt.boxes}
		rt.loops = append(rt.loops, l)
		el.Start()
		tb.Cleanup(func() { shut(tb, l) })
	}
	rt.off.loops = rt.loops
	return rt
}

// shut ends a loop in order.
func shut(tb testing.TB, l *loop) {
	tb.Helper()
	if err := l.el.Shutdown(context.Background()); err != nil {
		tb.Error(err)
	}
}

// on runs fn on the loop, after everything that was scheduled before, and waits for it.
func on(tb testing.TB, l *loop, fn func()) {
	tb.Helper()
	done := make(chan struct{})
	if err := l.el.Post(func() { defer close(done); fn() }); err != nil {
		tb.Fatal(err)
	}
	<-done
}

// stop stops actors and waits until they have stopped.
func stop(tb testing.TB, sys *actor.ActorSystem, pids ...*actor.PID) {
	tb.Helper()
	for _, pid := range pids {
		if err := sys.Root.StopFuture(pid).Wait(); err != nil {
			tb.Fatalf("stop %v: %v", pid, err)
		}
	}
}

// unboxed waits until a stopped actor has lost its box, which comes right after its watchers were told. It would hang if it had not.
func unboxed(rt *Runtime, pid *actor.PID) {
	for rt.box(pid) != nil {
		runtime.Gosched()
	}
}

// Messages of every lane.
type (
	event   struct{ n int }
	control struct{ n int }
	data    struct{ n int }
)

func (*event) lane() lane   { return laneEvent }
func (*control) lane() lane { return laneControl }

// byHand is a home whose turns the test gives.
type byHand struct {
	mu    sync.Mutex
	queue []*mailbox
	ended bool
}

func (h *byHand) schedule(m *mailbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, m)
}
func (h *byHand) turned()    {}
func (h *byHand) over() bool { return h.ended }

// turn runs what is scheduled once, and says how many mailboxes that were.
func (h *byHand) turn(budget int) (ran int) {
	h.mu.Lock()
	batch := h.queue
	h.queue = nil
	h.mu.Unlock()
	for _, m := range batch {
		if m.Run(budget) {
			h.schedule(m)
		}
	}
	return len(batch)
}

// run gives turns until nothing is scheduled.
func (h *byHand) run() {
	for h.turn(eventloop.RunBudget) > 0 {
	}
}

// script is an invoker that writes down what it is given, and does what the test says.
type script struct {
	got       []any
	failures  []any
	onMessage func(msg any)
}

func (s *script) InvokeSystemMessage(msg any) { s.invoke(msg) }
func (s *script) InvokeUserMessage(msg any)   { s.invoke(msg) }

func (s *script) invoke(msg any) {
	s.got = append(s.got, msg)
	if s.onMessage != nil {
		s.onMessage(msg)
	}
}

func (s *script) EscalateFailure(reason, _ any) { s.failures = append(s.failures, reason) }

// started is a mailbox whose scripted actor has had its Started.
func started(h home) (*mailbox, *script) {
	s := &script{}
	m := newMailbox(h)
	m.RegisterHandlers(s, nil)
	m.PostSystemMessage(&actor.Started{})
	if hand, ok := h.(*byHand); ok {
		hand.run()
	}
	s.got = nil
	return m, s
}
