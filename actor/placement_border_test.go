package actor

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// border is a driver whose identifiers are looked at on their way from loop to loop.
type border struct {
	cmid.Driver
	cross func(to int) error // on the loop it goes to, before it arrives
	lost  func()             // called before an unplaceable request is destroyed; nil: none
	opens int
}

func (b *border) over(d cmid.Driver) cmid.Driver {
	b.Driver = d
	return b
}

func (b *border) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in, err := b.Driver.Open(l, newcomers{up, b})
	b.opens++
	return &inland{in, b.opens - 1}, err
}

// inland is one loop's side of a border.
type inland struct {
	cmid.Instance
	n int
}

func (in *inland) Enclosed() bool { return true }

// newcomers has requests bring residents.
type newcomers struct {
	cmid.Upcalls
	b *border
}

func (n newcomers) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	if ev.Child != nil {
		ev.Child = resident{ev.Child, n.b}
	}
	n.Upcalls.Event(h, ev)
}

type resident struct {
	cmid.DriverID
	b *border
}

func (r resident) Detach() (cmid.DetachedInstance, error) {
	d, err := r.DriverID.(cmid.Migrator).Detach()
	return &traveller{d, r.b}, err
}

type traveller struct {
	cmid.DetachedInstance
	b *border
}

func (t *traveller) Attach(to cmid.Instance) error {
	in := to.(*inland)
	if err := t.b.cross(in.n); err != nil {
		return err
	}
	return t.DetachedInstance.Attach(in.Instance)
}

func (t *traveller) Destroy() {
	if t.b.lost != nil {
		t.b.lost()
	}
	t.DetachedInstance.Destroy()
}

// gate blocks arrivals on loop 1 until it is opened, and that loop with them.
func gate() (b *border, open func()) {
	shut := make(chan struct{})
	return &border{cross: func(to int) error {
		if to == 1 {
			<-shut
		}
		return nil
	}}, func() { close(shut) }
}

// atBorder runs test with a border there, where two loops are.
func atBorder(t *testing.T, made func() (*border, func()), test func(w *world, open func()), cfg ...Config) {
	t.Helper()
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) {
			var open func()
			// Made inside the bubble, as its channel has to be.
			over := func(d cmid.Driver) cmid.Driver {
				var b *border
				b, open = made()
				return b.over(d)
			}
			c := one(cfg)
			c.Loops = make([]eventloop.Config, 2)
			inWorldOfTwo(t, f, untouched, over, func(w *world) { test(w, open) }, c)
		})
	}
}

// A loop that cannot take a request returns it: it stays on the loop where it arrived.
func TestRequestComesBack(t *testing.T) {
	full := func() (*border, func()) {
		return &border{cross: func(to int) error {
			if to == 1 {
				return unix.ENOMEM
			}
			return nil
		}}, nil
	}
	atBorder(t, full, func(w *world, _ func()) {
		came := make(chan arrival, 4)
		w.listen(w.farProbe(), IDConfig{Handler: handlers(came, echoing)})
		p := w.probe()
		for range 3 {
			id := w.dial(p, 1)[0]
			next[*Established](p)
			if a := <-came; w.runs(a.handler) != w.far.loops[0] {
				w.Error("a handler runs on the loop that could not take its connection")
			}
			p.send(id, NewSend([]byte("ping")))
			next[*Received](p)
		}
		wantCounts(w, "when the other loop takes none,", w.far, 4, 0)
	})
}

// A request that neither loop can take is given up. Nothing of it is left when its peer is
// notified, which may try again immediately.
func TestRequestThatNobodyCanTake(t *testing.T) {
	var look func()
	closed := func() (*border, func()) {
		return &border{cross: func(int) error { return unix.ENOMEM }, lost: func() { look() }}, nil
	}
	atBorder(t, closed, func(w *world, _ func()) {
		look = func() { wantCounts(w, "when the peer is notified", w.far, 1, 0) }
		w.listen(w.farProbe(), IDConfig{Handler: handlers(make(chan arrival, 1), echoing)})
		p := w.probe()
		w.dial(p, 1)
		r := until[*Closed](p)[0].msg.(*Rejected)
		is(w, r, unix.ECONNREFUSED)
		wantCounts(w, "without it", w.far, 1, 0)
		if n := w.far.count.Load(); n != 1 {
			w.Errorf("%d identifiers are counted, want the listener", n)
		}
	})
}

// A peer goes while its request is between two loops: the request is delivered, and to accept it
// fails.
func TestPeerGoesDuringTheMove(t *testing.T) {
	atBorder(t, gate, func(w *world, open func()) {
		owner := newProbe(w, w.sys, w.far.OffLoop(), nil)
		w.listen(owner)
		p := w.probe()
		id := w.dial(p, 1)[0]
		settle()
		p.send(id, &DestroyID{})
		until[*Closed](p)
		settle()
		owner.quiet()
		open()
		_, s := next[*ConnectRequest](owner)
		owner.send(s, &Accept{})
		if f, ok := until[*Closed](owner)[0].msg.(Failure); !ok {
			w.Errorf("the Accept has not failed: %v", f)
		}
		settle()
		wantCounts(w, "without it", w.far, 1, 0)
	})
}

// The listener goes while a request is between two loops: a request that came before is delivered.
func TestListenerGoesDuringTheMove(t *testing.T) {
	atBorder(t, gate, func(w *world, open func()) {
		owner := newProbe(w, w.sys, w.far.OffLoop(), nil)
		lis := w.listen(owner)
		p := w.probe()
		w.dial(p, 1)
		settle()
		owner.send(lis, &DestroyID{})
		next[*Closed](owner)
		open()
		_, s := next[*ConnectRequest](owner)
		owner.send(s, &Accept{})
		next[*Established](owner)
		next[*Established](p)
	})
}

// Shutdown waits for a request that is between two loops, and rejects it.
func TestShutdownDuringTheMove(t *testing.T) {
	atBorder(t, gate, func(w *world, open func()) {
		owner := newProbe(w, w.sys, w.far.OffLoop(), nil)
		w.listen(owner)
		p := w.probe()
		w.dial(p, 1)
		settle()
		ended := make(chan error, 1)
		go func() { ended <- w.far.Shutdown(context.Background()) }()
		settle()
		select {
		case err := <-ended:
			w.Errorf("Shutdown has not waited: %v", err)
		default:
		}
		w.onLoop(w.far, func(l *loop) {
			if len(l.ids) != 0 || l.isEmpty() {
				w.Errorf("the loop it came from has %d identifiers, and is taken for empty: %v; the request may come back", len(l.ids), l.isEmpty())
			}
		})
		open()
		if err := <-ended; err != nil {
			w.Errorf("Shutdown: %v", err)
		}
		if _, ok := until[*Closed](p)[0].msg.(*Rejected); !ok {
			w.Error("the peer was not rejected")
		}
		next[*Closed](owner) // the listener's
		owner.quiet()
	})
}

// A Shutdown with a short time-out gives up a loop that is blocked in the middle of a move; the
// moved request ends when the loop continues.
func TestImpatientShutdownDuringTheMove(t *testing.T) {
	atBorder(t, gate, func(w *world, open func()) {
		owner := newProbe(w, w.sys, w.far.OffLoop(), nil)
		w.listen(owner)
		p := w.probe()
		w.dial(p, 1)
		settle()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := w.far.Shutdown(ctx)
		is(w, err, context.DeadlineExceeded)
		if err == nil || !contains(err.Error(), "blocked") {
			w.Errorf("%v does not name the loop that is blocked", err)
		}
		open()
		until[*Closed](p)
		settle()
		if left := w.far.count.Load(); left != 0 {
			w.Errorf("%d identifiers are left", left)
		}
	})
}

// A flood: a loop that does not keep up is sent no more than it may have pending, the listener's
// own takes the share of one listener, and the rest is rejected. Every peer is answered.
func TestFloodOfMoves(t *testing.T) {
	atBorder(t, gate, func(w *world, open func()) {
		came := make(chan arrival, 64)
		// it never answers
		w.listen(w.farProbe(), IDConfig{Handler: handlers(came, func(actor.Context) {})})
		p := w.probe()
		w.dial(p, 20)
		settle()
		wantCounts(w, "in the middle of a flood", w.far, 1+3, 4)
		for range 13 {
			until[*Closed](p)
		}
		p.quiet()
		open()
		until[*Closed](p) // what waited for the loop is one more than it may have
		settle()
		if len(came) != 6 {
			w.Errorf("%d requests were delivered, want 6", len(came))
		}
		for range 6 { // when no owner has answered in time
			until[*Closed](p)
		}
		settle()
		wantCounts(w, "after the flood", w.far, 1, 0)
	}, Config{Limits: Limits{PendingRequests: 4}})
}
