package eventloop_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// mailbox is a Runnable as the actors' mailboxes are: a flag keeps it scheduled at most once.
type mailbox struct {
	l         *eventloop.Loop
	scheduled atomic.Bool
	sent      atomic.Int64
	received  int64 // the loop's
}

func (m *mailbox) send() error {
	m.sent.Add(1)
	if m.scheduled.CompareAndSwap(false, true) {
		return m.l.Schedule(m)
	}
	return nil
}

func (m *mailbox) Run(budget int) bool {
	m.scheduled.Store(false)
	for range budget {
		if m.received == m.sent.Load() {
			return false
		}
		m.received++
	}
	return m.received < m.sent.Load() && m.scheduled.CompareAndSwap(false, true)
}

// TestNoWakeUpIsLost has several goroutines send and wait for the loop to fall asleep again and
// again: a lost wake-up hangs.
func TestNoWakeUpIsLost(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	start(t, l)
	const senders, rounds, burst = 4, 2000, 5
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			m := &mailbox{l: l}
			for range rounds {
				for range burst {
					if err := m.send(); err != nil {
						t.Error(err)
					}
				}
				arrived := make(chan int64)
				if err := l.Post(func() { arrived <- m.received }); err != nil {
					t.Error(err)
				}
				if got, want := <-arrived, m.sent.Load(); got != want {
					t.Errorf("%d messages received before a Post that followed %d", got, want)
				}
			}
		})
	}
	wg.Wait()
	s := l.Stats()
	if s.Posts != senders*rounds {
		t.Errorf("%d posts counted, want %d", s.Posts, senders*rounds)
	}
	if s.Wakeups >= s.Runs {
		t.Errorf("%d wake-ups for %d pieces of work: not coalesced", s.Wakeups, s.Runs)
	}
}

func TestWakeUpsAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{Poller: p})
		l.Start()
		synctest.Wait() // asleep
		gate := make(chan struct{})
		post := func(fn func()) {
			if err := l.Post(fn); err != nil {
				t.Error(err)
			}
		}
		post(func() { <-gate })
		synctest.Wait()
		for range 1000 { // the loop is awake
			post(func() {})
		}
		if n := p.Wakes(); n != 1 {
			t.Errorf("%d wakes for one sleep, want 1", n)
		}
		close(gate)
		synctest.Wait()
		on(t, l, func() {
			for range 10 {
				post(func() {}) // called on the loop
			}
		})
		synctest.Wait()
		if s := l.Stats(); p.Wakes() != 2 || s.Wakeups != 2 || s.Posts != 1012 || s.Runs != 1012 {
			t.Errorf("%d wakes for two sleeps, %+v", p.Wakes(), s)
		}
		waits := p.Waits()
		time.Sleep(time.Hour)
		if n := p.Waits(); n != waits {
			t.Errorf("%d waits in an idle hour, want none", n-waits)
		}
		shutdown(t, l)
	})
}

// TestOneWaitPerTurn: an event, the Runnable that it schedules and the work that this defers are
// one turn with one wait.
func TestOneWaitPerTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{Poller: p})
		var order []string
		flush := &runFunc{func(int) bool { order = append(order, "flush"); return false }}
		box := &runFunc{func(int) bool { order = append(order, "mailbox"); l.Defer(flush); return false }}
		_, err := l.Add(1, eventloop.Readable, readyFunc(func(eventloop.Events) {
			order = append(order, "event")
			if err := l.Schedule(box); err != nil {
				t.Error(err)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		l.Start()
		synctest.Wait()
		waits, turns := p.Waits(), l.Stats().Turns
		p.Fire(1, eventloop.Readable)
		synctest.Wait()
		if want := []string{"event", "mailbox", "flush"}; !slices.Equal(order, want) {
			t.Errorf("ran %v, want %v", order, want)
		}
		if w, n := p.Waits()-waits, l.Stats().Turns-turns; w != 1 || n != 1 {
			t.Errorf("%d waits and %d turns for one event, want one each", w, n)
		}
		if p.Wakes() != 0 {
			t.Errorf("%d wakes for work that the loop queued itself, want none", p.Wakes())
		}
		shutdown(t, l)
	})
}

// TestFullRunnablesStarveNobody: with Runnables that always have more work, each turn still handles
// fds, timers and posts.
func TestFullRunnablesStarveNobody(t *testing.T) {
	const full = 8 // runs in a turn: each uses up its own budget
	p := eventlooptest.NewPoller()
	l := newLoop(t, eventloop.Config{Poller: p, TurnBudget: full * eventloop.RunBudget})
	turn(t, l)
	runs := make([]int, 2)
	stop := false
	for i := range runs {
		if err := l.Schedule(&runFunc{func(b int) bool {
			if b != eventloop.RunBudget {
				t.Errorf("budget %d, want %d", b, eventloop.RunBudget)
			}
			runs[i]++
			return !stop
		}}); err != nil {
			t.Fatal(err)
		}
	}
	events, fired, posted := 0, 0, 0
	if _, err := l.Add(1, eventloop.Readable, readyFunc(func(eventloop.Events) { events++ })); err != nil {
		t.Fatal(err)
	}
	const turns = 10
	for range turns {
		p.Fire(1, eventloop.Readable)
		l.AfterFunc(0, func() { fired++ })
		if err := l.Post(func() { posted++ }); err != nil {
			t.Fatal(err)
		}
		turn(t, l)
	}
	if events != turns || fired != turns || posted != turns {
		t.Errorf("%d events, %d timers, %d posts in %d turns, want one per turn", events, fired, posted, turns)
	}
	if total := runs[0] + runs[1]; total != turns*full {
		t.Errorf("%d runs in %d turns, want %d each", total, turns, full)
	}
	if d := runs[0] - runs[1]; d < -1 || d > 1 {
		t.Errorf("the two ran %d and %d times: not in turns", runs[0], runs[1])
	}
	stop = true
	shutdown(t, l)
}

func TestDeferRunsLastAndIsBounded(t *testing.T) {
	p := eventlooptest.NewPoller()
	l := newLoop(t, eventloop.Config{Poller: p})
	turn(t, l)
	var order []string
	say := func(s string) *runFunc { return &runFunc{func(int) bool { order = append(order, s); return false }} }
	again := &runFunc{}
	runs, stop := 0, false
	again.run = func(int) bool {
		runs++
		if runs%2 == 0 {
			return !stop
		}
		if !stop {
			l.Defer(again)
		}
		return false
	}
	l.Defer(&runFunc{func(int) bool { order = append(order, "first"); l.Defer(say("nested")); return false }})
	l.Defer(say("second"))
	l.Defer(again)
	if err := l.Post(func() {
		l.Defer(say("third"))
		order = append(order, "post")
		if err := l.Schedule(say("scheduled")); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	turn(t, l)
	if want := []string{"post", "scheduled", "first", "second", "third", "nested"}; !slices.Equal(order, want) {
		t.Errorf("ran %v, want %v", order, want)
	}
	if runs < 2 || runs > 100 {
		t.Errorf("a Runnable that defers itself ran %d times in a turn, want a few", runs)
	}
	n := runs
	turn(t, l)
	if runs == n {
		t.Error("what was deferred beyond the bound was lost")
	}
	stop = true
	shutdown(t, l)
}

func TestScheduleUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
		l.Start()
		gate := make(chan struct{})
		ran := false
		if err := l.Post(func() {
			<-gate
			if err := l.Post(func() { t.Error("a function posted during shutdown ran") }); !errors.Is(err, eventloop.ErrClosed) {
				t.Errorf("post during shutdown: %v, want ErrClosed", err)
			}
			if err := l.Schedule(&runFunc{func(int) bool { ran = true; return false }}); err != nil {
				t.Errorf("schedule during shutdown: %v", err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			close(gate)
		}()
		shutdown(t, l)
		if !ran {
			t.Error("what an accepted post scheduled was not run")
		}
		if err := l.Schedule(&runFunc{}); !errors.Is(err, eventloop.ErrClosed) {
			t.Errorf("schedule after the end: %v, want ErrClosed", err)
		}
	})
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	p := &spinPoller{}
	l, err := eventloop.New(eventloop.Config{Poller: p}) // without CheckGoroutine, which allocates
	if err != nil {
		t.Fatal(err)
	}
	turn(t, l)
	defer shutdown(t, l)
	flush := &runFunc{func(int) bool { return false }}
	box := &runFunc{func(int) bool { l.Defer(flush); return false }}
	timer := l.NewTimer(func() {})
	post := func() {}
	if _, err := l.Add(1, eventloop.Readable, readyFunc(func(eventloop.Events) {
		if err := errors.Join(l.Schedule(box), l.Post(post)); err != nil {
			t.Error(err)
		}
		timer.Reset(0)
	})); err != nil {
		t.Fatal(err)
	}
	p.ready = 1
	before := l.Stats()
	if n := testing.AllocsPerRun(1000, func() { turn(t, l) }); n != 0 {
		t.Errorf("%v allocations per turn, want none", n)
	}
	if s := l.Stats(); s.Runs-before.Runs < 2000 {
		t.Errorf("the measured turns ran %d pieces of work: they did nothing", s.Runs-before.Runs)
	}
}

// spinPoller reports tag 0 ready in every wait, without locks or memory.
type spinPoller struct {
	ready    int
	timeouts []time.Duration
	record   bool
	onWait   func()
}

func (p *spinPoller) Wait(dst []eventloop.Ready, timeout time.Duration) (int, error) {
	if p.record {
		p.timeouts = append(p.timeouts, timeout)
	}
	if p.onWait != nil {
		p.onWait()
	}
	for i := range p.ready {
		dst[i] = eventloop.Ready{Tag: 0, Events: eventloop.Readable}
	}
	return p.ready, nil
}
func (p *spinPoller) Add(int, eventloop.Events, uint64) error    { return nil }
func (p *spinPoller) Modify(int, eventloop.Events, uint64) error { return nil }
func (p *spinPoller) Remove(int) error                           { return nil }
func (p *spinPoller) Wake() error                                { return nil }
func (p *spinPoller) Close() error                               { return nil }
