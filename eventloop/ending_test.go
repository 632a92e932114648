package eventloop_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// soon returns a context that bounds the waits of a test.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// inGoroutine runs fn on a goroutine that fn may end, and returns the value of its panic.
func inGoroutine(fn func()) any {
	out := make(chan any)
	go func() {
		defer func() { out <- recover() }()
		fn()
	}()
	return <-out
}

// Work that Schedule accepts runs, however close to the end; later work is refused.
func TestScheduledRunsOrIsRefused(t *testing.T) {
	const rounds, producers, most = 300, 4, 2000
	for range rounds {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller(), Logger: quiet, StallAfter: -1})
		l.Start()
		var taken, ran atomic.Int64
		work := &runFunc{func(int) bool { ran.Add(1); return false }}
		begun := make(chan struct{}, producers)
		var wg sync.WaitGroup
		for range producers {
			wg.Go(func() {
				begun <- struct{}{}
				for range most {
					if err := l.Schedule(work); err != nil {
						if !errors.Is(err, eventloop.ErrClosed) {
							t.Errorf("schedule: %v, want ErrClosed", err)
						}
						return
					}
					taken.Add(1)
				}
			})
		}
		<-begun
		if err := l.Shutdown(soon(t)); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if ran, taken := ran.Load(), taken.Load(); ran != taken {
			t.Fatalf("of %d pieces of work that were accepted %d ran", taken, ran)
		}
	}
}

// While Shutdown runs the queue of a loop that never ran, all other calls get ErrClosed.
func TestClaimsDuringShutdown(t *testing.T) {
	l := newLoop(t, eventloop.Config{})
	in, out := make(chan struct{}), make(chan struct{})
	if err := l.Post(func() { close(in); <-out }); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- l.Shutdown(soon(t)) }()
	<-in
	if v := inGoroutine(l.Start); v != nil {
		t.Errorf("Start panicked: %v", v)
	}
	_, fd := l.FD()
	for call, err := range map[string]error{"Run": l.Run(), "Turn": l.Turn(), "FD": fd} {
		if !errors.Is(err, eventloop.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", call, err)
		}
	}
	close(out)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// endings tests both kinds of Shutdown that run the remaining work themselves: that of a loop that
// never ran, and that of the host.
func endings(t *testing.T, cfg eventloop.Config, try func(t *testing.T, l *eventloop.Loop)) {
	for _, how := range []string{"never ran", "embedded"} {
		t.Run(how, func(t *testing.T) {
			cfg.Poller = eventlooptest.NewPoller()
			l := newLoop(t, cfg)
			inGoroutine(func() { // the host's
				if how == "embedded" {
					turn(t, l)
				}
				try(t, l)
			})
			err := l.Shutdown(soon(t))
			var late *eventloop.ShutdownError
			if errors.As(err, &late) {
				t.Errorf("the loop does not end: %v", err)
			}
			if !cfg.Poller.(*eventlooptest.Poller).Closed() {
				t.Error("the poller was not closed")
			}
		})
	}
}

// A panic in OnPanic in such a Shutdown is its caller's, and ends the loop.
func TestPanicInOnPanicInShutdown(t *testing.T) {
	endings(t, eventloop.Config{Logger: quiet, OnPanic: rethrow}, func(t *testing.T, l *eventloop.Loop) {
		if err := l.Post(func() { panic("enough") }); err != nil {
			t.Error(err)
		}
		defer func() {
			if v := recover(); v != "enough" {
				t.Errorf("recovered %v", v)
			}
		}()
		t.Errorf("Shutdown returned: %v", l.Shutdown(soon(t)))
	})
}

// A loop that never ran ends at the latest when the caller of Shutdown stops waiting, even when
// queued work blocks.
func TestShutdownOfALoopThatNeverRanIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{Poller: p, Logger: quiet})
		release := make(chan struct{})
		if err := l.Schedule(&namedRun{"conn-9", func() bool { <-release; return false }}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := l.Shutdown(ctx)
		var stuck *eventloop.ShutdownError
		if !errors.As(err, &stuck) || stuck.Holder.Name != "conn-9" {
			t.Errorf("%v, want the callback that occupies it", err)
		}
		close(release)
		shutdown(t, l)
		if !p.Closed() {
			t.Error("the poller was not closed")
		}
	})
}

// If there is nothing to wait for, an ended context is no error; queued work is not run.
func TestShutdownWithAContextThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, queued := range []int{0, 3} {
		p := eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{Poller: p, Logger: quiet})
		for range queued {
			if err := l.Post(func() { t.Error("ran") }); err != nil {
				t.Fatal(err)
			}
		}
		err := l.Shutdown(ctx)
		var late *eventloop.ShutdownError
		if queued == 0 && err != nil || queued > 0 && (!errors.As(err, &late) || late.Undone != queued) {
			t.Errorf("with %d pieces of work: %v", queued, err)
		}
		if !p.Closed() {
			t.Error("the poller was not closed")
		}
	}
}

// A Shutdown that waits longer than the one that ran out of time reports the work that that one
// left undone.
func TestPatientShutdownIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller(), Logger: quiet, TurnBudget: 1})
		l.Start()
		release := make(chan struct{})
		for _, fn := range []func(){func() { <-release }, func() { t.Error("ran") }} {
			if err := l.Post(fn); err != nil {
				t.Fatal(err)
			}
		}
		patient := make(chan error)
		go func() { patient <- l.Shutdown(context.Background()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Shutdown(ctx); err == nil {
			t.Error("the impatient one reports nothing")
		}
		close(release)
		var late *eventloop.ShutdownError
		if err := <-patient; !errors.As(err, &late) || late.Undone != 1 {
			t.Errorf("the patient one reports %v, want one piece of work undone", err)
		}
	})
}

// Accepted work runs once even when the loop ends because its wait failed, but not forever.
func TestAcceptedRunsWhenTheWaitFails(t *testing.T) {
	for _, how := range []string{"run", "embedded"} {
		p := eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{Poller: p, Logger: quiet})
		posted, endless := 0, 0
		if err := errors.Join(l.Post(func() { posted++ }), l.Schedule(&runFunc{func(int) bool { endless++; return true }})); err != nil {
			t.Fatal(err)
		}
		p.Fail(eventlooptest.OpWait, syscall.EBADF)
		err := l.Turn
		if how == "run" {
			err = l.Run
		}
		if err := err(); !errors.Is(err, syscall.EBADF) {
			t.Errorf("%s: %v, want EBADF", how, err)
		}
		if posted != 1 || endless != 1 {
			t.Errorf("%s: the function ran %d times, the Runnable without end %d times, want once each", how, posted, endless)
		}
		if err := l.Shutdown(soon(t)); !errors.Is(err, syscall.EBADF) {
			t.Errorf("%s: shutdown: %v, want EBADF", how, err)
		}
	}
}

// wildPoller is a Poller whose methods end the goroutine or panic.
type wildPoller struct {
	*eventlooptest.Poller
	wait, closing func()
}

func (p *wildPoller) Wait(dst []eventloop.Ready, d time.Duration) (int, error) {
	if p.wait != nil {
		p.wait()
	}
	return p.Poller.Wait(dst, d)
}

func (p *wildPoller) Close() error {
	if p.closing != nil {
		p.closing()
	}
	return p.Poller.Close()
}

// A Poller that panics or ends the goroutine ends the loop, and Shutdown does not wait in vain.
func TestWildPollers(t *testing.T) {
	boom := func() { panic("boom") }
	for name, p := range map[string]*wildPoller{
		"Wait panics": {wait: boom}, "Wait exits": {wait: runtime.Goexit},
		"Close panics": {closing: boom}, "Close exits": {closing: runtime.Goexit},
	} {
		p.Poller = eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{Poller: p, Logger: quiet})
		if p.wait == nil {
			inGoroutine(func() { l.Shutdown(soon(t)) })
		} else {
			inGoroutine(func() { l.Run() })
		}
		var late *eventloop.ShutdownError
		if err := l.Shutdown(soon(t)); errors.As(err, &late) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A callback of a loop may not wait for loops: neither the host in its Turn, nor a Shutdown that
// runs the remaining work. Between two Turns the host may wait for others.
func TestMayWaitOfAHost(t *testing.T) {
	a := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
	b := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
	refused := 0
	try := func() {
		if err := eventloop.MayWait(); errors.Is(err, eventloop.ErrOnLoop) {
			refused++
		}
	}
	for _, l := range []*eventloop.Loop{a, b, a, b} {
		if err := l.Post(try); err != nil {
			t.Fatal(err)
		}
		turn(t, l)
		if err := eventloop.MayWait(); err != nil {
			t.Errorf("between two Turns: %v", err)
		}
	}
	for _, l := range []*eventloop.Loop{a, b} {
		if err := l.Post(try); err != nil {
			t.Fatal(err)
		}
		shutdown(t, l)
	}
	if refused != 6 {
		t.Errorf("%d of 6 callbacks were refused a wait", refused)
	}
	if err := eventloop.MayWait(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
