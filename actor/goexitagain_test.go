package actor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/states"
)

// goexiting is a runtime of two loops, with the Goexits of their callbacks.
type goexiting struct {
	t     *testing.T
	rt    *Runtime
	left  chan eventloop.Panic
	pairs []pair
}

// newGoexiting connects servers, of which half run on each loop. exits is called with each of their
// messages; if it returns true they call Goexit.
func newGoexiting(t *testing.T, pairs int, exits func(msg any) bool) *goexiting {
	leak.Files(t)
	sys := testSystem(t)
	g := &goexiting{t: t, left: make(chan eventloop.Panic, 10000)}
	loop := eventloop.Config{OnPanic: func(p eventloop.Panic) { g.left <- p }}
	g.rt = openIWARP(t, sys, Config{Loops: []eventloop.Config{loop, loop}})
	for range pairs {
		p := connect(t, g.rt, newProbe(t, sys, g.rt.OnLoop(), nil), newProbe(t, sys, g.rt.OffLoop(), nil))
		p.server.reactWith(func(ctx actor.Context) {
			if exits(ctx.Message()) {
				runtime.Goexit()
			}
		})
		g.pairs = append(g.pairs, p)
	}
	return g
}

// on lists the pairs whose servers run on the first server's loop.
func (g *goexiting) on() (pairs []pair) {
	at := func(p pair) *loop { return g.rt.loopOf(g.rt.registry.Find(p.server.pid)) }
	for _, p := range g.pairs {
		if at(p) == at(g.pairs[0]) {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// shutdown checks that Shutdown ends by itself, with the loops' error.
func (g *goexiting) shutdown() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var gone *eventloop.GoexitError
	if err := g.rt.Shutdown(ctx); !errors.As(err, &gone) || errors.Is(err, context.DeadlineExceeded) {
		g.t.Errorf("Shutdown: %v", err)
	}
}

// closedOf waits for the Closed of the identifier id.
func closedOf(p *probe, id *actor.PID) {
	for got := until[*Closed](p); !got[len(got)-1].sender.Equal(id); {
		got = until[*Closed](p)
	}
}

// isEnd reports whether msg is one of the events that an ending identifier sends.
func isEnd(msg any) bool {
	switch msg.(type) {
	case *SendFailed, *Closed:
		return true
	}
	return false
}

// The owners of a loop that a callback has ended call Goexit again, at every event of their
// identifiers' end. Each identifier ends, and the owners can be stopped.
func TestGoexitAtEachEnd(t *testing.T) {
	g := newGoexiting(t, 8, func(msg any) bool { return msg == "exit" || isEnd(msg) })
	on := g.on()
	hold := make(chan struct{})
	for _, p := range on {
		p.client.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*Received); ok {
				<-hold
			}
		})
		for range 60 {
			p.server.send(p.s, NewSend(make([]byte, 1000)))
		}
	}
	g.rt.sys.Root.Send(on[0].server.pid, "exit")
	<-g.left
	close(hold)
	for _, p := range on {
		closedOf(p.client, p.c)
		closedOf(p.server, p.s)
		if err := g.rt.sys.Root.StopFuture(p.server.pid).Wait(); err != nil {
			t.Errorf("stop of an owner: %v", err)
		}
	}
	g.shutdown()
}

// A Goexit at the answer of a DestroyID from another actor of the loop does not keep the owner from
// its Closed.
func TestGoexitAtTheAnswerOfDestroyID(t *testing.T) {
	g := newGoexiting(t, 1, func(any) bool { return false })
	p := g.pairs[0]
	third := newProbe(t, g.rt.sys, g.rt.OnLoopOf(p.server.pid), func(ctx actor.Context) {
		if _, ok := ctx.Message().(*Closed); ok {
			runtime.Goexit()
		}
	})
	third.send(p.s, &DestroyID{})
	closedOf(third, p.s)
	closedOf(p.server, p.s)
	closedOf(p.client, p.c)
	g.shutdown()
}

// An Observer that calls Goexit at an event keeps the owner neither from that event nor from the
// end.
func TestGoexitOfAnObserver(t *testing.T) {
	for _, kind := range []string{"*cmid.Disconnected", "*cmid.Closed"} {
		t.Run(kind, func(t *testing.T) {
			leak.Files(t)
			sys := testSystem(t)
			g := &goexiting{t: t, left: make(chan eventloop.Panic, 100)}
			loops := []eventloop.Config{{OnPanic: func(p eventloop.Panic) { g.left <- p }}}
			g.rt = openIWARP(t, sys, Config{Loops: loops, Observer: exitsAt(kind)})
			p := connect(t, g.rt, newProbe(t, sys, g.rt.OnLoop(), nil), newProbe(t, sys, g.rt.OffLoop(), nil))
			p.client.send(p.c, &DestroyID{})
			closedOf(p.client, p.c)
			closedOf(p.server, p.s)
			g.shutdown()
		})
	}
}

// exitsAt is an Observer that calls Goexit at each event of its type.
type exitsAt string

func (exitsAt) Transition(*actor.PID, cmid.Handle, states.State, states.State) {}
func (exitsAt) Credit(*actor.PID, cmid.Handle, Credits)                        {}
func (exitsAt) Moved(*actor.PID, cmid.Handle, string, string)                  {}

func (e exitsAt) Event(_ *actor.PID, ev cmid.Event) {
	if fmt.Sprintf("%T", ev) == string(e) {
		runtime.Goexit()
	}
}

// A Goexit of owners at events that Shutdown causes does not keep Shutdown from its end, nor the
// clients' owners from Closed.
func TestGoexitInShutdown(t *testing.T) {
	for name, exits := range map[string]func(msg any) bool{
		"Closed":       func(msg any) bool { _, ok := msg.(*Closed); return ok },
		"Disconnected": func(msg any) bool { _, ok := msg.(*Disconnected); return ok },
		"SendFailed":   func(msg any) bool { _, ok := msg.(*SendFailed); return ok },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGoexiting(t, 6, exits)
			for _, p := range g.pairs {
				for range 100 {
					p.server.send(p.s, NewSend(make([]byte, 1000)))
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var gone *eventloop.GoexitError
			if err := g.rt.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) || len(g.left) > 0 && !errors.As(err, &gone) {
				t.Errorf("Shutdown: %v", err)
			}
			for _, p := range g.pairs {
				closedOf(p.server, p.s)
				closedOf(p.client, p.c)
			}
		})
	}
}

// Actors that call Goexit as they stop end their loops only.
func TestGoexitOfStoppedActorsInShutdown(t *testing.T) {
	g := newGoexiting(t, 4, func(msg any) bool { _, ok := msg.(*actor.Stopped); return ok })
	for _, p := range g.pairs[:2] {
		g.rt.sys.Root.Stop(p.server.pid)
	}
	for _, p := range g.pairs[:2] {
		closedOf(p.client, p.c)
	}
	<-g.left
	g.shutdown()
}
