package mailbox

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// testSystem returns a silent ActorSystem that leaves no goroutine.
func testSystem(tb testing.TB) *actor.ActorSystem {
	tb.Helper()
	sys := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	tb.Cleanup(sys.Shutdown)
	return sys
}

// rig is an ActorSystem with loops that run, and goroutines.
type rig struct {
	sys      *actor.ActorSystem
	registry *Registry
	loops    []*Loop
	off      *Goroutines
	spread   int
}

func newRig(tb testing.TB, n int) *rig {
	tb.Helper()
	sys := testSystem(tb)
	r := &rig{sys: sys, registry: RegistryOf(sys), off: &Goroutines{}}
	for range n {
		l := r.addLoop(tb, eventloop.Config{Logger: sys.Logger()})
		tb.Cleanup(func() { shut(tb, l) })
	}
	return r
}

// addLoop starts one more.
func (r *rig) addLoop(tb testing.TB, cfg eventloop.Config) *Loop {
	tb.Helper()
	el, err := eventloop.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	l := NewLoop(el, false)
	r.loops = append(r.loops, l)
	r.off.Loops = r.loops
	el.Start()
	return l
}

// config identifies the test's retained messages.
var config = &Config{Retained: func(msg any) Retained {
	r, _ := msg.(Retained)
	return r
}}

// in makes actors run in one place.
func in(x Executor) actor.PropsOption { return Option(func() Executor { return x }, config) }

// OnLoop has actors run on the loops in turn.
func (r *rig) OnLoop() actor.PropsOption {
	return Option(func() Executor { r.spread++; return r.loops[r.spread%len(r.loops)] }, config)
}

// OffLoop runs actors on goroutines.
func (r *rig) OffLoop() actor.PropsOption { return in(r.off) }

// boxOf returns the mailbox of an actor that one of the loops runs; nil for every other PID.
func (r *rig) boxOf(pid *actor.PID) *Mailbox {
	if m := r.registry.Find(pid); m != nil && m.Loop() != nil {
		return m
	}
	return nil
}

// shut ends a loop in order.
func shut(tb testing.TB, l *Loop) {
	tb.Helper()
	if err := l.el.Shutdown(context.Background()); err != nil {
		tb.Error(err)
	}
}

// on runs fn on the loop, after everything that was scheduled before, and waits for it.
func on(tb testing.TB, l *Loop, fn func()) {
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

// unboxed waits until a stopped actor has lost its box, which comes right after its watchers were
// notified. It would hang if it had not.
func unboxed(r *rig, pid *actor.PID) {
	for r.registry.Find(pid) != nil {
		runtime.Gosched()
	}
}

// Messages of every lane.
type (
	event   struct{ n int }
	control struct{ n int }
	data    struct{ n int }
)

func (*event) Lane() Lane   { return Event }
func (*control) Lane() Lane { return Control }

// byHand is an executor whose turns the test gives.
type byHand struct {
	mu    sync.Mutex
	queue []*eventloop.Runnable
	ended bool
	left  []any // reports of escaped code
}

func (h *byHand) scheduleMailbox(r *eventloop.Runnable) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, r)
}
func (h *byHand) turnEnded() {}
func (h *byHand) Over() bool { return h.ended }

func (h *byHand) reportEscaped(_, _ string, value any) { h.left = append(h.left, value) }
func (h *byHand) now() time.Time                       { return time.Time{} }

// turn runs each scheduled mailbox once, and returns their number.
func (h *byHand) turn(budget int) (ran int) {
	h.mu.Lock()
	batch := h.queue
	h.queue = nil
	h.mu.Unlock()
	for _, m := range batch {
		if (*m).Run(budget) {
			h.scheduleMailbox(m)
		}
	}
	return len(batch)
}

// run runs turns until nothing is scheduled.
func (h *byHand) run() {
	for h.turn(eventloop.RunBudget) > 0 {
	}
}

// script is an invoker that records its messages, and acts as the test requires.
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

// started returns a mailbox whose scripted actor has received Started.
func started(x Executor, cfg *Config) (*Mailbox, *script) { return startedWith(x, cfg, nil) }

// startedWith is started with a Policy.
func startedWith(x Executor, cfg *Config, p Policy) (*Mailbox, *script) {
	s := &script{}
	m := New(x, cfg, p)
	m.RegisterHandlers(s, nil)
	m.PostSystemMessage(&actor.Started{})
	if hand, ok := x.(*byHand); ok {
		hand.run()
	}
	s.got = nil
	return m, s
}
