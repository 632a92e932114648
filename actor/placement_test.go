package actor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// arrival is a connection as its handler met it.
type arrival struct{ handler, id *actor.PID }

// handlers returns a listener's handlers, which answer a request with react and report it to came.
func handlers(came chan<- arrival, react func(ctx actor.Context)) *actor.Props {
	return actor.PropsFromFunc(func(ctx actor.Context) {
		react(ctx)
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			came <- arrival{ctx.Self(), ctx.Sender()}
		}
	})
}

// echoing accepts every peer and sends back its messages.
func echoing(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *ConnectRequest:
		ctx.Respond(&Accept{})
	case *Received:
		ctx.Respond(NewSend(m.Data))
	}
}

// counts returns how many identifiers each loop has.
func counts(rt *Runtime) (n []int) {
	for _, l := range rt.Loops() {
		n = append(n, l.Identifiers)
	}
	return n
}

func wantCounts(tb testing.TB, when string, rt *Runtime, want ...int) {
	tb.Helper()
	if got := counts(rt); !slices.Equal(got, want) {
		tb.Errorf("%s the loops have %v identifiers, want %v", when, got, want)
	}
}

// runs returns the loop there that runs an actor.
func (w *world) runs(pid *actor.PID) *loop { return w.far.loopOf(w.far.registry.Find(pid)) }

// dial connects here to there, without waiting.
func (w *world) dial(p *probe, n int) (ids []*actor.PID) {
	for range n {
		id := w.rt.CreateID(p.pid, IDConfig{})
		p.send(id, &Dial{Addr: there + ":7471"})
		ids = append(ids, id)
	}
	return ids
}

// A listener's connections are spread over the loops, each with its handler, and everything after
// the request works there.
func TestConnectionsSpread(t *testing.T) {
	onFlavors(t, func(w *world) {
		came := make(chan arrival, 16)
		w.listen(w.farProbe(), IDConfig{Handler: handlers(came, echoing)})
		wantCounts(w, "with a listener", w.far, 1, 0, 0)
		p := w.probe()
		ids := w.dial(p, 9)
		for range ids {
			next[*Established](p)
		}
		settle()
		wantCounts(w, "with 9 connections", w.far, 4, 3, 3)
		for range ids {
			a := <-came
			if h, id := w.runs(a.handler), w.runs(a.id); h != id {
				w.Errorf("a connection lives on %v, its handler on %v", id.el.Name(), h.el.Name())
			}
		}
		if infos := w.far.Loops(); infos[0].Arrived != 0 || infos[1].Arrived != 3 || infos[2].Arrived != 3 {
			w.Errorf("connections that came from another loop: %d, %d and %d, want 0, 3 and 3",
				infos[0].Arrived, infos[1].Arrived, infos[2].Arrived)
		}
		for i, id := range ids {
			p.send(id, NewSend(fmt.Append(nil, "ping ", i)))
		}
		for range ids {
			next[*Received](p)
		}
		for _, id := range ids {
			p.send(id, &Close{})
		}
		for range ids {
			until[*Closed](p)
		}
		settle()
		wantCounts(w, "without connections", w.far, 1, 0, 0)
	}, Config{Loops: make([]eventloop.Config, 3)})
}

// What happens to an identifier that was moved is reported in order, once.
func TestMovedInOrder(t *testing.T) {
	onFlavors(t, func(w *world) {
		owner := newProbe(w, w.sys, w.far.OffLoop(), nil)
		w.listen(owner) // on loop 0, as the connections would be without spreading
		p := w.probe()
		first := w.dial(p, 1)[0]
		_, s := next[*ConnectRequest](owner)
		if w.runs(s) != w.far.loops[1] {
			w.Fatal("this connection did not move")
		}
		owner.send(s, &Accept{})
		next[*Established](p)
		for i := range 3 {
			p.send(first, NewSend(fmt.Append(nil, i)))
		}
		p.send(first, &Close{})
		events := until[*Closed](owner)
		if k := kinds(events); k != "Established Received Received Received Disconnected Closed" {
			w.Errorf("its owner got %s", k)
		}
		until[*Closed](p)
	}, Config{Loops: make([]eventloop.Config, 2)})
}

// An owner that runs on a loop has its connections there: that is the purpose of OnLoop. Owners
// elsewhere have theirs spread.
func TestConnectionsOfAnOwnerOnALoop(t *testing.T) {
	for name, where := range map[string]struct {
		of   func(rt *Runtime) actor.PropsOption
		want []int
	}{
		"on the listener's loop": {func(rt *Runtime) actor.PropsOption { return onLoop(rt.loops[1]) }, []int{0, 5}},
		"off the loops":          {(*Runtime).OffLoop, []int{3, 2}},
		"plain":                  {func(*Runtime) actor.PropsOption { return func(*actor.Props) {} }, []int{3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				owner := newProbe(w, w.sys, where.of(w.far), nil)
				w.listen(owner)
				p := w.probe()
				for range 4 {
					w.dial(p, 1)
					_, s := next[*ConnectRequest](owner)
					owner.send(s, &Accept{})
					next[*Established](owner)
					next[*Established](p)
				}
				wantCounts(w, "with a listener and 4 connections", w.far, where.want...)
			}, Config{Loops: make([]eventloop.Config, 2)})
		})
	}
}

// A listener that was handed over has its connections where the new owner runs.
func TestConnectionsFollowTheOwner(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		first, heir := newProbe(w, w.sys, onLoop(w.far.loops[0]), nil), newProbe(w, w.sys, onLoop(w.far.loops[1]), nil)
		id := w.listen(first)
		first.send(id, &Handover{To: heir.pid})
		next[*Done](first)
		w.dial(w.probe(), 3)
		for range 3 {
			if _, s := next[*ConnectRequest](heir); w.runs(s) != w.far.loops[1] {
				w.Error("a connection is not on its owner's loop")
			}
		}
		wantCounts(w, "with a listener and 3 requests", w.far, 1, 3)
	}, Config{Loops: make([]eventloop.Config, 2)})
}

// Identifiers of owners off the loops are made where fewest are.
func TestDialledSpread(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		on, off := newProbe(w, w.sys, onLoop(w.rt.loops[0]), nil), newProbe(w, w.sys, w.rt.OffLoop(), nil)
		for range 4 {
			w.rt.CreateID(on.pid, IDConfig{})
		}
		wantCounts(w, "with an owner on a loop", w.rt, 4, 0, 0)
		for range 5 {
			w.rt.CreateID(off.pid, IDConfig{})
		}
		wantCounts(w, "with one off the loops", w.rt, 4, 3, 2)
	}, Config{Loops: make([]eventloop.Config, 3)})
}

// An Observer is notified of each request that moves, on the loop that it moves to.
func TestMovesAreObserved(t *testing.T) {
	o := &mover{observer: observer{seen: make(map[string]int)}}
	inWorld(t, 0, func(w *world) {
		came := make(chan arrival, 4)
		w.listen(w.farProbe(), IDConfig{Handler: handlers(came, echoing)})
		p := w.probe()
		for range w.dial(p, 3) {
			next[*Established](p)
		}
		settle()
	}, Config{Observer: o, Loops: make([]eventloop.Config, 2)})
	if o.seen["rdma-0 -> rdma-1"] != 2 || len(o.moved) != 2 {
		t.Errorf("of 3 connections and a listener on the first of two loops, 2 move to the other: seen %v, %v", o.seen, o.moved)
	}
}

type mover struct {
	observer
	moved []*actor.PID
}

func (o *mover) Moved(id *actor.PID, h Handle, from, to string) {
	if h != 0 {
		o.saw(from + " -> " + to)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moved = append(o.moved, id)
}

// A handler that rejects, and requests that come to nothing, leave no trace in what loops are
// chosen by.
func TestRejectedAfterTheMove(t *testing.T) {
	onFlavors(t, func(w *world) {
		came := make(chan arrival, 16)
		w.listen(w.farProbe(), IDConfig{Handler: handlers(came, func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				ctx.Respond(&Reject{PrivateData: []byte("no")})
			}
		})})
		p := w.probe()
		w.dial(p, 8)
		settle()
		for range 8 {
			for _, g := range until[*Closed](p) {
				if r, ok := g.msg.(*Rejected); ok && string(r.PrivateData) != "no" {
					w.Errorf("rejected with %q", r.PrivateData)
				}
			}
		}
		wantCounts(w, "after 8 rejections", w.far, 1, 0)
		if len(came) != 8 {
			w.Errorf("%d requests were delivered, want 8", len(came))
		}
	}, Config{Loops: make([]eventloop.Config, 2)})
}

// Loops cannot share a Poller.
func TestSeveralLoopsShareNoPoller(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		loops := slices.Repeat(virtual(nil), 2)
		_, err := Open(w.sys, Config{Device: w.f.Driver(), Loops: loops})
		is(w, err, unix.EINVAL)
		if n := len(w.rt.loops); n != 2 {
			w.Errorf("%d loops", n)
		}
	}, Config{Loops: make([]eventloop.Config, 2)})
}

// hooked is a Poller that cannot be compared with others.
type hooked struct {
	eventloop.Poller
	_ func()
}

func TestPollersThatCannotBeCompared(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		loops := virtual(make([]eventloop.Config, 2))
		for i := range loops {
			loops[i].Poller = hooked{Poller: loops[i].Poller}
		}
		rt := openRuntime(w, w.sys, Config{Device: w.f.Host("third").Driver(), Loops: loops})
		if n := len(rt.loops); n != 2 {
			w.Errorf("%d loops", n)
		}
	})
}

// The same over sockets: requests arrive in bursts while the loops work on earlier ones.
func TestConnectionsSpreadOverSockets(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys, Config{Loops: make([]eventloop.Config, 2)})
	const n = 200
	came := make(chan arrival, n)
	_, at := listen(newProbe(t, sys, rt.OnLoop(), nil), rt, "127.0.0.1:0", IDConfig{Handler: handlers(came, echoing)})
	p := newProbe(t, sys, rt.OffLoop(), nil)
	p.reactWith(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *Established:
			ctx.Respond(NewSend([]byte("ping")))
		case *Received:
			ctx.Respond(&Close{})
		}
	})
	for range n {
		p.send(rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: at})
	}
	answers := 0
	for closed := 0; closed < n; {
		switch g := p.any(); m := g.msg.(type) {
		case *Received:
			answers++
		case *Closed:
			closed++
		case Failure:
			t.Fatal(m)
		}
	}
	if answers != n {
		t.Errorf("%d of %d were answered", answers, n)
	}
	if moved := rt.Loops()[1].Arrived; moved == 0 {
		t.Error("none has moved")
	}
	stop(t, sys, p.pid)
}
