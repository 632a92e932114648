package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// While Unknown is asked, the node's actor may join and leave on another loop, or another one may
// take its place. What Unknown returns then must not stay in the table.
func TestUnknownReturnsTooLate(t *testing.T) {
	for name, spawn := range map[string]func(n *town, s reconnect.Stranger) *actor.PID{
		"the actor has ended": func(n *town, s reconnect.Stranger) *actor.PID {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			k := n.another(s, reconnect.Config{Context: ctx})
			<-k.end
			return k.link
		},
		"another actor has joined": func(n *town, s reconnect.Stranger) *actor.PID {
			n.links[s.Node] = n.another(s, reconnect.Config{})
			k := n.another(s, reconnect.Config{})
			<-k.end // because of the first one
			return k.link
		},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, onLoops(2), func(w *actortest.World) {
				var a *town
				asked := 0
				a = newTown(w, w.Runtime(), 1, reconnect.PeersConfig{Unknown: func(s reconnect.Stranger) *actor.PID {
					if asked++; asked > 1 {
						return a.tie(s.Node, "").link
					}
					return spawn(a, s)
				}})
				b := newTown(w, w.Host("mem1", "10.0.0.2"), 2)
				k := b.tie(1, at(1))
				w.Advance(20 * time.Second)
				works(t, w, a, b)
				k.read(w, func() {
					if want := map[string]int{"the actor has ended": 1}[name]; len(k.downs) != want {
						t.Errorf("%d attempts have failed, want %d: %+v", len(k.downs), want, k.downs)
					}
				})
			})
		})
	}
}

// another spawns one more actor for a node on the second loop.
func (n *town) another(s reconnect.Stranger, cfg reconnect.Config) *tie {
	for {
		k := &tie{diary: newDiary(n.w, n.rt)}
		if n.elsewhere(k.pid) {
			cfg.Peers, cfg.Peer = n.peers, s.Node
			k.end = make(chan struct{})
			k.link = reconnect.Spawn(n.rt, k.pid, cfg)
			return k
		}
	}
}

// elsewhere reports whether an actor runs on another loop than the caller, which is in the middle
// of something on its own.
func (n *town) elsewhere(pid *actor.PID) bool {
	answered := make(chan struct{})
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			close(answered)
		}
	}, n.rt.OnLoopOf(pid))
	probe := n.w.System().Root.Spawn(props)
	defer n.w.System().Root.Stop(probe)
	select {
	case <-answered:
		return true
	case <-time.After(time.Millisecond):
		return false
	}
}

// A node that this side could name itself needs no place among the strangers.
func TestKnownByName(t *testing.T) {
	actortest.Run(t, onLoops(2), func(w *actortest.World) {
		var a *town
		a = newTown(w, w.Runtime(), 1, reconnect.PeersConfig{Strangers: 1, Unknown: func(s reconnect.Stranger) *actor.PID {
			return a.tie(s.Node, at(s.Node)).link
		}})
		for id := uint64(2); id < 6; id++ {
			newTown(w, w.Host(fmt.Sprint("mem", id), fmt.Sprint("10.0.0.", id)), id).tie(1, at(1))
			w.Advance(time.Second)
		}
		if up := a.ups(); up != 4 {
			t.Errorf("%d of 4 are connected", up)
		}
	})
}

// A request that cannot be moved to the loop of its actor, because too many are on their way
// there, is rejected, and the node tries again.
func TestRequestStaysBehind(t *testing.T) {
	cfg := onLoops(2)
	cfg.Runtime.Limits.PendingRequests = 1
	actortest.Run(t, cfg, func(w *actortest.World) {
		a := newTown(w, w.Runtime(), 1)
		var others []*town
		var ties []*tie
		for id := uint64(2); id < 8; id++ {
			a.tie(id, "") // on both loops
			others = append(others, newTown(w, w.Host(fmt.Sprint("mem", id), fmt.Sprint("10.0.0.", id)), id))
		}
		w.Advance(time.Second)
		stop := make(chan struct{})
		block := actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				w.Runtime().CreateID(ctx.Self()) // shows its loop
			case string:
				<-stop
			}
		}, w.Runtime().OnLoop())
		listens := w.Runtime().Inspect()[0].Loop
		var elsewhere *actor.PID
		for range 2 {
			pid := w.System().Root.Spawn(block)
			defer w.System().Root.Stop(pid)
			w.Wait()
			for _, i := range w.Runtime().Inspect() {
				if i.Owner.Equal(pid) && i.Loop != listens {
					elsewhere = pid
				}
			}
		}
		w.System().Root.Send(elsewhere, "block")
		for _, b := range others {
			ties = append(ties, b.tie(1, at(1)))
		}
		time.Sleep(400 * time.Millisecond)
		close(stop)
		w.Advance(10 * time.Second)
		if up := a.ups(); up != len(ties) {
			t.Errorf("%d of %d are connected", up, len(ties))
		}
		rejected := 0
		for _, k := range ties {
			k.read(w, func() { rejected += len(k.downs) })
		}
		if rejected == 0 || a.asked > 0 {
			t.Errorf("%d requests were rejected, and %d actors have ended because of one", rejected, a.asked)
		}
	})
}

// While an actor is being drained it accepts no other connection, not even one that would replace
// the present one: its messages are going out there. The node then gets another actor.
func TestRequestWhileClosing(t *testing.T) {
	actortest.Run(t, onLoops(2), func(w *actortest.World) {
		a, b := newTown(w, w.Runtime(), 1), newTown(w, w.Host("mem1", "10.0.0.2"), 2)
		b.tie(1, at(1))
		w.Advance(time.Second)
		works(t, w, a, b)
		k := a.tie(2, "")
		w.Silence("10.0.0.2")
		w.System().Root.Send(k.link, reconnect.NewSend(9, []byte("last")))
		w.System().Root.Send(k.link, &reconnect.Drain{Timeout: 3 * time.Second})
		_ = w.System().Root.StopFuture(b.links[1].pid).Wait()
		w.Wait()
		b.links[1].closed = &reconnect.Closed{}
		w.Unsilence("10.0.0.2")
		again := b.tie(1, at(1))
		w.Advance(time.Second)
		again.read(w, func() {
			if again.up != nil {
				t.Error("an actor that is being drained has taken a connection")
			}
		})
		w.Advance(time.Minute)
		if !k.over() {
			t.Error("the drained one has not ended")
		}
		works(t, w, a, b)
	})
}

// An actor without an address is connected to an impostor, and its owner learns where the node
// really is. When the node comes from there, it replaces the impostor.
func TestImpostorOfAStranger(t *testing.T) {
	for _, resolve := range []bool{false, true} {
		t.Run(fmt.Sprintf("Resolve %v", resolve), func(t *testing.T) {
			actortest.Run(t, onLoops(2), func(w *actortest.World) {
				var a *town
				a = newTown(w, w.Runtime(), 1, reconnect.PeersConfig{Unknown: func(s reconnect.Stranger) *actor.PID {
					k := &tie{diary: newDiary(w, a.rt)}
					cfg := reconnect.Config{Peers: a.peers, Peer: s.Node}
					if resolve {
						cfg.Resolve = func(context.Context, string) (string, error) { return at(2), nil }
					}
					k.link = reconnect.Spawn(a.rt, k.pid, cfg)
					a.links[s.Node] = k
					return k.link
				}})
				x := newTown(w, w.Host("mem2", "10.0.0.3"), 2)
				x.tie(1, at(1))
				w.Advance(time.Second)
				works(t, w, a, x)
				name := at(2)
				if resolve {
					name = "b"
				}
				w.System().Root.Send(a.links[2].link, &reconnect.Address{Addr: name})
				w.Advance(time.Second)
				b := newTown(w, w.Host("mem1", "10.0.0.2"), 2)
				b.tie(1, at(1))
				w.Advance(time.Second)
				works(t, w, a, b)
				k := a.links[2]
				k.read(w, func() {
					if len(k.downs) != 1 || !errors.Is(k.downs[0].Err, reconnect.ErrReplaced) {
						t.Errorf("%+v", k.downs)
					}
				})
				// and not the other way round
				w.Advance(time.Minute)
				works(t, w, a, b)
				if n := len(k.downs); n != 1 {
					t.Errorf("the impostor has taken the connection %d times", n-1)
				}
				w.System().Root.Send(k.link, &reconnect.Address{Addr: "10.0.0.77:1"})
				if !resolve { // the node has moved: its old address proves nothing
					w.Advance(time.Minute)
					works(t, w, a, b)
				}
			})
		})
	}
}

// The lower node cannot reach the other one, and tries. Its dial keeps the other's out for a second
// only.
func TestOneCannotBeDialled(t *testing.T) {
	for _, after := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			actortest.Run(t, onLoops(2), func(w *actortest.World) {
				a, b := newTown(w, w.Runtime(), 1), newTown(w, w.Host("mem1", "10.0.0.2"), 2)
				a.tie(2, "10.0.0.99:1") // resolving it takes 2 s
				w.Advance(after)
				k := b.tie(1, at(1))
				w.Advance(time.Millisecond)
				k.read(w, func() {
					if up := k.up != nil; up != (after > time.Second) {
						t.Errorf("connected: %v", up)
					}
				})
				w.Advance(10 * time.Second)
				works(t, w, a, b)
			})
		})
	}
}
