package actor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/states"
)

// endingLoops is a runtime of two loops, whose callbacks end them.
type endingLoops struct {
	t     *testing.T
	rt    *Runtime
	left  chan eventloop.Panic
	pairs []pair
}

// newEndingLoops connects servers, of which half run on each loop. exits is called with each of
// their messages; if it returns true they end their loop.
func newEndingLoops(t *testing.T, pairs int, exits func(msg any) bool) *endingLoops {
	leak.Files(t)
	sys := testSystem(t)
	e := &endingLoops{t: t, left: make(chan eventloop.Panic, 10000)}
	loop := eventloop.Config{OnPanic: func(p eventloop.Panic) { e.left <- p }}
	e.rt = openIWARP(t, sys, Config{Loops: []eventloop.Config{loop, loop}})
	for range pairs {
		p := connect(t, e.rt, newProbe(t, sys, e.rt.OnLoop(), nil), newProbe(t, sys, e.rt.OffLoop(), nil))
		p.server.reactWith(func(ctx actor.Context) {
			if exits(ctx.Message()) {
				runtime.Goexit()
			}
		})
		e.pairs = append(e.pairs, p)
	}
	return e
}

// on lists the pairs whose servers run on the first server's loop.
func (e *endingLoops) on() (pairs []pair) {
	at := func(p pair) *loop { return e.rt.loopOf(e.rt.registry.Find(p.server.pid)) }
	for _, p := range e.pairs {
		if at(p) == at(e.pairs[0]) {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// shutdown checks that Shutdown ends by itself, with the loops' error.
func (e *endingLoops) shutdown() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var gone *eventloop.GoexitError
	if err := e.rt.Shutdown(ctx); !errors.As(err, &gone) || errors.Is(err, context.DeadlineExceeded) {
		e.t.Errorf("Shutdown: %v", err)
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
func TestLoopEndedAtEachEnd(t *testing.T) {
	e := newEndingLoops(t, 8, func(msg any) bool { return msg == "exit" || isEnd(msg) })
	on := e.on()
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
	e.rt.sys.Root.Send(on[0].server.pid, "exit")
	<-e.left
	close(hold)
	for _, p := range on {
		closedOf(p.client, p.c)
		closedOf(p.server, p.s)
		if err := e.rt.sys.Root.StopFuture(p.server.pid).Wait(); err != nil {
			t.Errorf("stop of an owner: %v", err)
		}
	}
	e.shutdown()
}

// A Goexit at the answer of a DestroyID from another actor of the loop does not keep the owner from
// its Closed.
func TestLoopEndedAtTheAnswerOfDestroyID(t *testing.T) {
	e := newEndingLoops(t, 1, func(any) bool { return false })
	p := e.pairs[0]
	third := newProbe(t, e.rt.sys, e.rt.OnLoopOf(p.server.pid), func(ctx actor.Context) {
		if _, ok := ctx.Message().(*Closed); ok {
			runtime.Goexit()
		}
	})
	third.send(p.s, &DestroyID{})
	closedOf(third, p.s)
	closedOf(p.server, p.s)
	closedOf(p.client, p.c)
	e.shutdown()
}

// observedBy is a runtime of one loop with an Observer that ends it.
func observedBy(t *testing.T, o Observer) *endingLoops {
	leak.Files(t)
	sys := testSystem(t)
	e := &endingLoops{t: t, left: make(chan eventloop.Panic, 100)}
	loops := []eventloop.Config{{OnPanic: func(p eventloop.Panic) { e.left <- p }}}
	e.rt = openIWARP(t, sys, Config{Loops: loops, Observer: o})
	return e
}

// An Observer that ends its loop at an event keeps the owner neither from that event nor from the
// end.
func TestLoopEndedByAnObserver(t *testing.T) {
	for _, kind := range []string{"*cmid.Disconnected", "*cmid.Closed"} {
		t.Run(kind, func(t *testing.T) {
			e := observedBy(t, exitsAt(kind))
			p := connect(t, e.rt, newProbe(t, e.rt.sys, e.rt.OnLoop(), nil), newProbe(t, e.rt.sys, e.rt.OffLoop(), nil))
			p.client.send(p.c, &DestroyID{})
			closedOf(p.client, p.c)
			closedOf(p.server, p.s)
			e.shutdown()
		})
	}
}

// An Observer that ends its loop at the answer of a command does not keep the answer from the
// command's sender, who is not the owner.
func TestLoopEndedAtAnAnswer(t *testing.T) {
	e := observedBy(t, exitsAt("*cmid.Bound"))
	owner, sender := newProbe(t, e.rt.sys, e.rt.OffLoop(), nil), newProbe(t, e.rt.sys, e.rt.OffLoop(), nil)
	id := e.rt.CreateID(owner.pid)
	sender.send(id, &cmid.BindAddr{Addr: MustAddr("127.0.0.1:0")})
	until[*cmid.Bound](sender)
	closedOf(owner, id)
	e.shutdown()
}

// An Observer that ends its loop at the first of many SendFailed keeps no sender from the others.
func TestLoopEndedAtASendFailed(t *testing.T) {
	const all = 250
	e := observedBy(t, exitsAt("*actor.SendFailed"))
	p := connect(t, e.rt, newProbe(t, e.rt.sys, e.rt.OffLoop(), nil), newProbe(t, e.rt.sys, e.rt.OffLoop(), nil))
	hold := make(chan struct{})
	p.client.reactWith(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*Received); ok {
			<-hold
		}
	})
	sender := newProbe(t, e.rt.sys, e.rt.OffLoop(), nil)
	for range all {
		m := NewSend(make([]byte, 1000))
		m.Notify = true
		sender.send(p.s, m)
	}
	next[*Sent](sender)
	p.server.send(p.s, &DestroyID{})
	closedOf(p.server, p.s)
	close(hold)
	for range all - 1 {
		sender.any()
	}
	closedOf(p.client, p.c)
	e.shutdown()
}

// An Observer that ends its loop at a listener's Closed keeps neither its owner from that nor
// ListenAndServe from returning.
func TestLoopEndedAtAListenersClosed(t *testing.T) {
	o := listeningObserver{exitsAt("*cmid.Closed"), make(chan struct{})}
	e := observedBy(t, o)
	owner := newProbe(t, e.rt.sys, e.rt.OffLoop(), nil)
	ctx, end := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- e.rt.ListenAndServe(ctx, "127.0.0.1:0", owner.pid) }()
	<-o.listening
	end()
	until[*Closed](owner)
	select {
	case err := <-returned:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("ListenAndServe has not returned")
	}
	e.shutdown()
}

// listeningObserver closes listening when a listener listens.
type listeningObserver struct {
	exitsAt
	listening chan struct{}
}

func (o listeningObserver) Event(pid *actor.PID, ev cmid.Event) {
	if _, ok := ev.(*cmid.Listening); ok {
		close(o.listening)
	}
	o.exitsAt.Event(pid, ev)
}

// exitsAt is an Observer that ends its loop at each event of its type.
type exitsAt string

func (exitsAt) Transition(*actor.PID, cmid.Handle, states.State, states.State) {}
func (exitsAt) Credit(*actor.PID, cmid.Handle, Credits)                        {}
func (exitsAt) Moved(*actor.PID, cmid.Handle, string, string)                  {}

func (e exitsAt) Event(_ *actor.PID, ev cmid.Event) {
	if fmt.Sprintf("%T", ev) == string(e) {
		runtime.Goexit()
	}
}

// Owners that end their loop at events that Shutdown causes do not keep Shutdown from its end, nor
// the clients' owners from Closed.
func TestLoopEndedInShutdown(t *testing.T) {
	for name, exits := range map[string]func(msg any) bool{
		"Closed":       func(msg any) bool { _, ok := msg.(*Closed); return ok },
		"Disconnected": func(msg any) bool { _, ok := msg.(*Disconnected); return ok },
		"SendFailed":   func(msg any) bool { _, ok := msg.(*SendFailed); return ok },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndingLoops(t, 6, exits)
			for _, p := range e.pairs {
				for range 100 {
					p.server.send(p.s, NewSend(make([]byte, 1000)))
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var gone *eventloop.GoexitError
			if err := e.rt.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) || len(e.left) > 0 && !errors.As(err, &gone) {
				t.Errorf("Shutdown: %v", err)
			}
			for _, p := range e.pairs {
				closedOf(p.server, p.s)
				closedOf(p.client, p.c)
			}
		})
	}
}

// Actors that end their goroutine as they stop end their loops only.
func TestLoopEndedByStoppedActors(t *testing.T) {
	e := newEndingLoops(t, 4, func(msg any) bool { _, ok := msg.(*actor.Stopped); return ok })
	for _, p := range e.pairs[:2] {
		e.rt.sys.Root.Stop(p.server.pid)
	}
	for _, p := range e.pairs[:2] {
		closedOf(p.client, p.c)
	}
	<-e.left
	e.shutdown()
}
