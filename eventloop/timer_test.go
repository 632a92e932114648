package eventloop_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestTimersInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
		var got []time.Duration
		begin := time.Now()
		for _, d := range []time.Duration{3 * time.Hour, time.Second, 0, -time.Second, time.Millisecond, time.Second, math.MaxInt64} {
			l.AfterFunc(d, func() {
				if at := time.Since(begin); at != max(d, 0) {
					t.Errorf("timer of %v fired after %v", d, at)
				}
				if !l.Now().Equal(time.Now()) {
					t.Errorf("Now is %v in a timer, the clock shows %v", l.Now(), time.Now())
				}
				got = append(got, d)
			})
		}
		l.Start()
		time.Sleep(4 * time.Hour)
		on(t, l, func() {})
		shutdown(t, l)
		want := []time.Duration{0, -time.Second, time.Millisecond, time.Second, time.Second, 3 * time.Hour}
		if !slices.Equal(got, want) {
			t.Errorf("timers fired in the order %v, want %v", got, want)
		}
	})
}

// TestTimerCountsFromTheCall: a callback that took long arms its timer from when it does so, not
// from the turn's start.
func TestTimerCountsFromTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPoller()})
		l.Start()
		var armed, fired time.Time
		on(t, l, func() {
			time.Sleep(10 * time.Second)
			armed = time.Now()
			l.AfterFunc(3*time.Second, func() { fired = time.Now() })
		})
		time.Sleep(time.Minute)
		on(t, l, func() {})
		if d := fired.Sub(armed); d != 3*time.Second {
			t.Errorf("fired %v after it was armed, want 3s", d)
		}
		shutdown(t, l)
	})
}

func TestTimerStopAndReset(t *testing.T) {
	clock := eventlooptest.NewClock(epoch)
	l := newLoop(t, eventloop.Config{Poller: eventlooptest.NewPollerOn(clock), Clock: clock})
	turn(t, l)
	defer shutdown(t, l)
	fired := map[string]int{}
	count := func(name string) func() { return func() { fired[name]++ } }

	idle := l.NewTimer(count("idle"))
	if idle.Stop() {
		t.Error("Stop of an unarmed timer says it was armed")
	}
	stopped := l.AfterFunc(time.Second, count("stopped"))
	if !stopped.Stop() || stopped.Stop() {
		t.Error("Stop says armed exactly once")
	}
	moved := l.AfterFunc(time.Second, count("moved"))
	moved.Reset(time.Minute)

	var self, victim *eventloop.Timer
	self = l.AfterFunc(time.Second, func() {
		fired["self"]++
		if self.Stop() {
			t.Error("a timer is armed while its function runs")
		}
		if !victim.Stop() {
			t.Error("a timer that is due in the same turn is not armed")
		}
		self.Reset(0) // the next turn, not this one
	})
	victim = l.AfterFunc(time.Second, count("victim"))

	turn(t, l)
	if len(fired) != 0 {
		t.Errorf("%v fired before their time", fired)
	}
	clock.Advance(time.Second)
	turn(t, l)
	if fired["self"] != 1 || fired["victim"] != 0 || fired["moved"] != 0 || fired["stopped"] != 0 {
		t.Errorf("fired %v at 1 s, want self once", fired)
	}
	victim.Stop()
	self.Stop()
	far := l.AfterFunc(math.MaxInt64, func() { t.Error("a timer 292 years ahead fired") })
	turn(t, l)
	far.Stop()
	clock.Advance(time.Hour)
	turn(t, l)
	if fired["self"] != 1 || fired["moved"] != 1 || fired["idle"] != 0 {
		t.Errorf("fired %v in the end, want self and moved once", fired)
	}
	if n := l.Stats().Timers; n != 0 {
		t.Errorf("%d timers armed, want none", n)
	}
}

// TestTimersAgainstModel arms, moves and stops timers at random and compares the fired ones with a
// sorted list.
func TestTimersAgainstModel(t *testing.T) {
	type armed struct {
		id, seq int
		at      time.Time
	}
	rapid.Check(t, func(rt *rapid.T) {
		clock := eventlooptest.NewClock(epoch)
		l, err := eventloop.New(eventloop.Config{Poller: eventlooptest.NewPollerOn(clock), Clock: clock})
		if err != nil {
			rt.Fatal(err)
		}
		const n = 20
		var fired []int
		var timers [n]*eventloop.Timer
		for i := range timers {
			timers[i] = l.NewTimer(func() { fired = append(fired, i) })
		}
		var model []armed
		without := func(id int) []armed {
			return slices.DeleteFunc(model, func(a armed) bool { return a.id == id })
		}
		for seq := range rapid.IntRange(1, 200).Draw(rt, "steps") {
			id := rapid.IntRange(0, n-1).Draw(rt, "timer")
			switch rapid.SampledFrom([]string{"reset", "reset", "stop", "advance"}).Draw(rt, "step") {
			case "reset":
				d := time.Duration(rapid.IntRange(-2, 20).Draw(rt, "after"))
				timers[id].Reset(d)
				model = append(without(id), armed{id, seq, clock.Now().Add(max(d, 0))})
			case "stop":
				left := without(id)
				if got, want := timers[id].Stop(), len(left) < len(model); got != want {
					rt.Fatalf("Stop of %d: %v, want %v", id, got, want)
				}
				model = left
			case "advance":
				clock.Advance(time.Duration(rapid.IntRange(0, 10).Draw(rt, "by")))
				slices.SortFunc(model, func(a, b armed) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.seq, b.seq)) })
				var want []int
				for len(model) > 0 && !model[0].at.After(clock.Now()) {
					want = append(want, model[0].id)
					model = model[1:]
				}
				fired = nil
				if err := l.Turn(); err != nil {
					rt.Fatal(err)
				}
				if !slices.Equal(fired, want) {
					rt.Fatalf("fired %v, want %v", fired, want)
				}
			}
			if got := l.Stats().Timers; got != len(model) {
				rt.Fatalf("%d timers armed, want %d", got, len(model))
			}
		}
		if err := l.Shutdown(t.Context()); err != nil {
			rt.Fatal(err)
		}
	})
}
