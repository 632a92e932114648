package eventloop_test

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// glancer is a Glancer that counts its calls.
type glancer struct {
	ready, glances int
	found          int // glances that will find something
	onGlance       func()
}

func (g *glancer) Ready(eventloop.Events) { g.ready++ }

func (g *glancer) Glance() bool {
	g.glances++
	if g.onGlance != nil {
		g.onGlance()
	}
	if g.found > 0 {
		g.found--
		return true
	}
	return false
}

// add registers h on the loop.
func addFD(t *testing.T, l *eventloop.Loop, fd int, h eventloop.Handler) (r *eventloop.Registration) {
	t.Helper()
	on(t, l, func() {
		var err error
		if r, err = l.Add(fd, eventloop.Readable, h); err != nil {
			t.Error(err)
		}
	})
	return r
}

// until runs turns of the loop until cond, which is evaluated on the loop.
func until(t *testing.T, l *eventloop.Loop, cond func() bool) {
	t.Helper()
	for met := false; !met; {
		on(t, l, func() { met = cond() })
	}
}

// TestGlance: a polling loop glances at the fd that was ready last and alone, at most eight times
// before it asks about all.
func TestGlance(t *testing.T) {
	p := eventlooptest.NewPoller()
	l := newLoop(t, eventloop.Config{Poller: p, Wait: eventloop.Busy})
	start(t, l)
	a, b := &glancer{}, &glancer{}
	plain := 0
	ra := addFD(t, l, 1, a)
	addFD(t, l, 2, b)
	addFD(t, l, 3, readyFunc(func(eventloop.Events) { plain++ }))
	on(t, l, func() {
		if a.glances+b.glances > 0 {
			t.Errorf("%d glances before anything was ready", a.glances+b.glances)
		}
	})

	p.Fire(1, eventloop.Readable)
	var glances, waits int
	until(t, l, func() bool { glances, waits = a.glances, p.Waits(); return glances > 100 })
	until(t, l, func() bool { return a.glances > glances+1000 })
	on(t, l, func() {
		asked, glanced := p.Waits()-waits, a.glances-glances
		if a.ready != 1 || glanced > 8*(asked+1) || glanced < 4*asked {
			t.Errorf("called %d times; %d glances while all were asked about %d times, want eight each", a.ready, glanced, asked)
		}
		if b.glances > 0 {
			t.Errorf("%d glances at an fd that was never ready", b.glances)
		}
	})

	p.Fire(3, eventloop.Readable)
	until(t, l, func() bool { return plain == 1 })
	on(t, l, func() { glances, waits = a.glances, p.Waits() })
	until(t, l, func() bool { return p.Waits() > waits+100 })
	on(t, l, func() {
		if a.glances != glances {
			t.Errorf("%d glances at an fd after another was ready", a.glances-glances)
		}
	})

	p.Fire(1, eventloop.Readable)
	until(t, l, func() bool { return a.glances > glances })
	on(t, l, func() {
		if err := ra.Remove(); err != nil {
			t.Error(err)
		}
		glances, waits = a.glances, p.Waits()
	})
	until(t, l, func() bool { return p.Waits() > waits+100 })
	on(t, l, func() {
		if a.glances != glances {
			t.Errorf("%d glances at an fd that was removed", a.glances-glances)
		}
	})
}

// TestGlanceIsWork: a loop that spins for a while after the last work goes on while glances find
// something.
func TestGlanceIsWork(t *testing.T) {
	for _, mode := range []eventloop.WaitMode{eventloop.Spin, eventloop.Block} {
		p := eventlooptest.NewPoller()
		l := newLoop(t, eventloop.Config{Poller: p, Wait: mode})
		start(t, l)
		g := &glancer{found: 50}
		addFD(t, l, 1, g)
		p.Fire(1, eventloop.Readable)
		if mode == eventloop.Block {
			until(t, l, func() bool { return g.ready == 1 })
			on(t, l, func() {
				if g.glances > 0 {
					t.Errorf("a blocking loop glanced %d times", g.glances)
				}
			})
			continue
		}
		until(t, l, func() bool { return g.found == 0 })
	}
}

// TestGlancePanics: a panic in a glance is reported as the handler's, so that OnPanic may remove
// it.
func TestGlancePanics(t *testing.T) {
	p := eventlooptest.NewPoller()
	got := make(chan eventloop.Panic, 1)
	l := newLoop(t, eventloop.Config{Poller: p, Wait: eventloop.Busy, OnPanic: func(pn eventloop.Panic) { got <- pn }})
	start(t, l)
	g := &glancer{}
	g.onGlance = func() { g.onGlance = nil; panic("in a glance") }
	addFD(t, l, 1, g)
	p.Fire(1, eventloop.Readable)
	if pn := <-got; pn.Who != any(g) || pn.Holder.Kind != "handler" {
		t.Errorf("%T panicked, as %v: want the handler, %T", pn.Who, pn.Holder, g)
	}
}

// TestGlanceStalls: the watchdog names the handler whose glance occupies the loop, while the loop
// goes from one to the other.
func TestGlanceStalls(t *testing.T) {
	p := eventlooptest.NewPoller()
	stalls := make(chan eventloop.Stall, 1000)
	cfg := eventloop.Config{
		Poller: p, Wait: eventloop.Busy, StallAfter: 4 * time.Millisecond, Logger: quiet, OnStall: func(s eventloop.Stall) { stalls <- s },
	}
	l := newLoop(t, cfg)
	start(t, l)
	for fd := 1; fd <= 2; fd++ {
		addFD(t, l, fd, &glancer{onGlance: func() { time.Sleep(12 * time.Millisecond) }})
	}
	for i := range 10 {
		p.Fire(1+i%2, eventloop.Readable)
		time.Sleep(15 * time.Millisecond)
	}
	s := <-stalls
	for s.Holder.Kind == "post" { // addFD's, on a machine that was busy then
		s = <-stalls
	}
	if s.Holder.Kind != "handler" {
		t.Errorf("the loop was occupied by %v, want a handler", s.Holder)
	}
}
