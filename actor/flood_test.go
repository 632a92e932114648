package actor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// flood makes goroutines call post without a pause until the test, or stop, ends it.
func flood(tb testing.TB, goroutines int, post func()) (stop func()) {
	var (
		over atomic.Bool
		done sync.WaitGroup
	)
	for range goroutines {
		done.Go(func() {
			for !over.Load() {
				post()
			}
		})
	}
	stop = func() {
		over.Store(true)
		done.Wait()
	}
	tb.Cleanup(stop)
	return stop
}

// most returns the mailbox's bound: Sends, commands, and what ends it.
func most(rt *Runtime) int { return rt.cfg.Limits.Mailbox + 2*commandRoom + 100 }

// Two goroutines send without a pause: admitted messages flow, memory is bounded, and the
// identifier ends when it is asked to.
func TestFloodOfSends(t *testing.T) {
	for name, end := range map[string]func(sys *actor.ActorSystem, id *actor.PID, cancel func()){
		"DestroyID": func(sys *actor.ActorSystem, id *actor.PID, _ func()) { sys.Root.Send(id, &DestroyID{}) },
		"Close":     func(sys *actor.ActorSystem, id *actor.PID, _ func()) { sys.Root.Send(id, &Close{}) },
		"context":   func(_ *actor.ActorSystem, _ *actor.PID, cancel func()) { cancel() },
		"Stop":      func(sys *actor.ActorSystem, id *actor.PID, _ func()) { sys.Root.Stop(id) },
		"Poison":    func(sys *actor.ActorSystem, id *actor.PID, _ func()) { sys.Root.Poison(id) },
	} {
		t.Run(name, func(t *testing.T) {
			sys := testSystem(t)
			rt := openIWARP(t, sys, Config{Limits: Limits{Mailbox: 4096}})
			var received, failed atomic.Int64
			closed := make(chan *Closed, 1)
			server := newProbe(t, sys, rt.OnLoop(), nil)
			client := newProbe(t, sys, rt.OffLoop(), nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, at := listen(server, rt, "127.0.0.1:0")
			c := rt.CreateID(client.pid, IDConfig{Context: ctx})
			client.send(c, &Dial{Addr: at})
			_, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](server)
			next[*Established](client)
			counting := func(n *atomic.Int64, where actor.PropsOption) *actor.PID {
				return sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch m := ctx.Message().(type) {
					case *Received:
						n.Add(1)
					case *SendFailed:
						failed.Add(int64(m.Sends))
					case *Closed:
						if ctx.Sender().Equal(c) {
							closed <- m
						}
					}
				}, where))
			}
			server.send(s, &Handover{To: counting(&received, rt.OnLoop())})
			next[*Done](server)
			var none atomic.Int64
			owner := counting(&none, rt.OffLoop())
			client.send(c, &Handover{To: owner})
			next[*Done](client)
			box, own := rt.registry.Find(c), rt.registry.Find(owner)
			var posted atomic.Int64
			stop := flood(t, 2, func() {
				sys.Root.Send(c, NewSend([]byte("x")))
				posted.Add(1)
			})
			enough := int64(3_000)
			if testing.Short() {
				enough /= 3
			}
			wait := time.NewTimer(patience)
			defer wait.Stop()
			look := time.NewTicker(10 * time.Millisecond)
			defer look.Stop()
			for received.Load() < enough {
				if n, m := box.UserMessageCount(), own.UserMessageCount(); n > most(rt) || m > most(rt) {
					t.Fatalf("%d messages wait in the identifier's mailbox and %d in its owner's: no bound holds", n, m)
				}
				select {
				case <-look.C:
				case <-wait.C:
					t.Fatalf("%d messages were received of %d sent", received.Load(), posted.Load())
				}
			}
			end(sys, c, cancel)
			select {
			case m := <-closed:
				stop()
				if n := int64(m.Delivered + m.Unsent + m.Unknown); n > posted.Load() {
					t.Errorf("Closed counts %d messages of %d", n, posted.Load())
				}
				// What fails after it was posted is Unknown, and answered as well.
				if n := failed.Load(); n < int64(m.Unsent) || n > int64(m.Unsent+m.Unknown) {
					t.Errorf("%d Sends were answered as failed before Closed, which counts %d unsent and %d unknown", n, m.Unsent, m.Unknown)
				}
			case <-wait.C:
				t.Fatalf("not closed: %d messages wait", box.UserMessageCount())
			}
		})
	}
}

// inTurn runs fn on an OnLoop actor in one turn: no other code runs in between.
func (w *world) inTurn(fn func(ctx actor.Context)) {
	done := make(chan struct{})
	pid := w.sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(string); ok {
			fn(ctx)
			close(done)
		}
	}, w.rt.OnLoop()))
	w.sys.Root.Send(pid, "go")
	<-done
	settle()
	stop(w, w.sys, pid)
}

// Messages left in a stopped identifier's mailbox are answered before Closed, to owner and senders
// alike, and Closed counts them.
func TestStopAnswersAFullMailbox(t *testing.T) {
	onFlavors(t, func(w *world) {
		for name, withSender := range map[string]bool{"owner": false, "sender": true} {
			p := w.connect()
			other := w.probe()
			w.inTurn(func(ctx actor.Context) {
				for range 8 {
					if withSender {
						ctx.RequestWithCustomSender(p.c, NewSend([]byte("x")), other.pid)
					} else {
						ctx.Send(p.c, NewSend([]byte("x")))
					}
				}
				ctx.Stop(p.c)
			})
			failed, last := 0, p.client
			if withSender {
				last = other
			}
			for len(last.got) > 0 {
				switch m := (<-last.got).msg.(type) {
				case *SendFailed:
					is(w, m, ErrFlushed)
					failed += m.Sends
				case *Closed:
					if failed != 8 || m.Unsent != 8 || m.Delivered+m.Unknown != 0 {
						w.Errorf("%s: Closed says %d/%d/%d after %d SendFailed, want 0/8/0 after 8", name, m.Delivered, m.Unsent, m.Unknown, failed)
					}
				case *actor.DeadLetterResponse:
					w.Errorf("%s: a Send that was made before the end became a dead letter", name)
				}
			}
			if failed != 8 {
				w.Errorf("%s: %d Sends were answered, want 8", name, failed)
			}
			until[*Closed](p.server)
			w.sys.Root.Stop(p.listener)
			until[*Closed](p.server)
		}
	}, Config{Limits: Limits{Mailbox: 8}})
}

// One sender's order holds in a full mailbox, too: messages admitted before a Close are delivered.
func TestCloseInAFullMailbox(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		w.inTurn(func(ctx actor.Context) {
			for range 13 {
				ctx.RequestWithCustomSender(p.c, NewSend([]byte("x")), p.client.pid)
			}
			ctx.RequestWithCustomSender(p.c, &Close{}, p.client.pid)
		})
		refused := 0
		for _, g := range until[*Closed](p.client) {
			switch m := g.msg.(type) {
			case *SendFailed:
				is(w, m, ErrQueueFull)
				refused += m.Sends
			case *Closed:
				if m.Delivered != 10 || m.Unsent != 3 || m.Unknown != 0 {
					w.Errorf("Closed says %d/%d/%d, want 10/3/0", m.Delivered, m.Unsent, m.Unknown)
				}
			}
		}
		if refused != 3 {
			w.Errorf("%d Sends were refused, want 3", refused)
		}
		if k := kinds(until[*Closed](p.server)); k != "Received Received Received Received Received Received Received Received Received Received Disconnected Closed" {
			w.Errorf("the peer got %s", k)
		}
	}, Config{Limits: Limits{Mailbox: 10}})
}

// The cancel of an Ask stays behind its command, also when the mailbox is full: it ends the
// identifier, but not before the command's turn.
func TestCancelStaysBehindItsCommand(t *testing.T) {
	inWorldOver(t, states.IWARP, stuckAt(states.OpResolveAddr), func(w *world) {
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		settle()
		gone := errors.New("nobody waits any more")
		w.inTurn(func(ctx actor.Context) {
			for range 3 {
				ctx.Send(id, NewSend([]byte("x")))
			}
			c := &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")}
			ctx.Send(id, c)
			ctx.Send(id, &cancelled{gone})
		})
		end := until[*Closed](p)
		is(w, end[len(end)-1].msg.(*Closed).Err, gone)
	}, Config{Limits: Limits{Mailbox: 4}})
}

// Whatever is posted in large numbers, the mailbox stays within its bound. Everything is answered
// once, to the right actor, and nothing follows Closed.
func TestFloodOfAnything(t *testing.T) {
	for name, tt := range map[string]struct {
		make     func() any
		answered bool
	}{
		"Sends":       {func() any { return NewSend([]byte("x")) }, true},
		"not Sends":   {func() any { return &Send{} }, true},
		"nil Sends":   {func() any { return (*Send)(nil) }, true},
		"commands":    {func() any { return &cmid.Notify{} }, true},
		"Reads":       {func() any { return &Read{} }, true},
		"DestroyIDs":  {func() any { return &DestroyID{} }, true},
		"Closes":      {func() any { return &Close{} }, true},
		"nonsense":    {func() any { return "nonsense" }, true},
		"nil":         {func() any { return (*Listen)(nil) }, true},
		"PoisonPills": {func() any { return &actor.PoisonPill{} }, false},
		"events":      {func() any { return &Established{} }, false},
	} {
		for _, asked := range []string{"owner", "sender"} {
			t.Run(name+"/"+asked, func(t *testing.T) {
				inWorld(t, states.IWARP, func(w *world) {
					const posts = 4000
					p := w.connect()
					asker := p.client
					if asked == "sender" {
						asker = w.probe()
					}
					hold := make(chan struct{})
					_ = w.rt.loops[0].el.Post(func() { <-hold })
					box := w.rt.registry.Find(p.c)
					for range posts {
						if asked == "sender" {
							asker.send(p.c, tt.make())
						} else {
							w.sys.Root.Send(p.c, tt.make())
						}
					}
					if n := box.UserMessageCount(); n > 8+2*commandRoom {
						w.Errorf("%d messages wait", n)
					}
					close(hold)
					settle()
					w.sys.Root.Send(p.c, &DestroyID{})
					settle()
					answers := 0
					for len(asker.got) > 0 {
						switch m := (<-asker.got).msg.(type) {
						case *SendFailed:
							answers += m.Sends
						case *Closed:
							answers++
							if asker == p.client && len(asker.got) > 0 {
								w.Errorf("got something after Closed")
							}
						case Failure, *Done, *ReadDone:
							answers++
						case *Received, *Writable, *Disconnected:
						default:
							w.Errorf("got %T", m)
						}
					}
					if asked == "owner" {
						answers -= 1 // Closed itself
						if name == "DestroyIDs" || name == "Closes" {
							// the answer to all admitted messages
							answers += 8 + 2*commandRoom
						}
					}
					if delivered := 8; name == "Sends" {
						answers += delivered
					}
					want := 0
					if tt.answered {
						want = posts
					}
					if answers != want {
						w.Errorf("%d of %d were answered", answers, want)
					}
				}, Config{Limits: Limits{Mailbox: 8}})
			})
		}
	}
}

// An identifier has at most commandRoom commands in progress, and as many more that end it.
func TestCommandsInProgressAreBounded(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		hold := make(chan struct{})
		_ = w.far.loops[0].el.Post(func() { <-hold }) // no Close comes to its end
		p.client.send(p.c, NewSend([]byte("x")))
		refused := func(n int, command func() Command) (refused int) {
			asker := w.probe()
			for i := range n {
				if asker.send(p.c, command()); i%100 == 0 {
					settle() // the mailbox has no part in it
				}
			}
			settle()
			for len(asker.got) > 0 {
				if f, ok := (<-asker.got).msg.(*CommandFailed); ok && errors.Is(f, ErrQueueFull) {
					refused++
				}
			}
			return refused
		}
		closes := func() Command { return &Close{} }
		others := func() Command { return &cmid.Notify{} }
		for _, step := range []struct {
			n       int
			command func() Command
			want    int
		}{{commandRoom - 1, closes, 0}, {1, others, 0}, {1, closes, 0}, {1, others, 1}, {commandRoom + 3, closes, 3}} {
			if got := refused(step.n, step.command); got != step.want {
				w.Errorf("%d of %d %T were refused, want %d", got, step.n, step.command(), step.want)
			}
		}
		close(hold)
	})
}

// A PoisonPill ends an identifier as Close does, from any sender.
func TestPoisonPillIsClose(t *testing.T) {
	onFlavors(t, func(w *world) {
		for name, give := range map[string]func(p pair){
			"Root.Poison":       func(p pair) { w.sys.Root.Poison(p.c) },
			"Root.PoisonFuture": func(p pair) { w.sys.Root.PoisonFuture(p.c) },
			"an actor's context": func(p pair) {
				w.inTurn(func(ctx actor.Context) { ctx.Poison(p.c) })
			},
		} {
			p := w.connect(IDConfig{MaxMessage: kib, Credits: 4})
			for range 200 {
				p.client.send(p.c, NewSend([]byte("x")))
			}
			give(p)
			end := until[*Closed](p.client)
			if c := end[len(end)-1].msg.(*Closed); c.Delivered != 200 || c.Unsent+c.Unknown != 0 || c.Err != nil {
				w.Errorf("%s: the end: %v", name, end)
			}
			if n := len(until[*Closed](p.server)); n != 202 {
				w.Errorf("%s: the peer got %d things, want 200 messages, Disconnected and Closed", name, n)
			}
			w.sys.Root.Poison(p.listener)
			next[*Closed](p.server)
		}
	})
}

// Refused Sends do not fill the mailbox of an owner that is slow: their answers wait as one.
func TestRefusalsWaitAsOne(t *testing.T) {
	for name, connected := range map[string]bool{"no connection": false, "a full queue": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, states.IWARP, func(w *world) {
				const sends = 5000
				hold := make(chan struct{})
				owner := newProbe(w, w.sys, w.rt.OffLoop(), func(ctx actor.Context) {
					if _, ok := ctx.Message().(string); ok {
						<-hold
					}
				})
				id := w.rt.CreateID(owner.pid, IDConfig{})
				if connected {
					p := w.connect(IDConfig{MaxMessage: kib, Credits: 1})
					p.server.reactWith(func(ctx actor.Context) {
						if m, ok := ctx.Message().(*Received); ok {
							keep(w, m)
						}
					})
					id = p.c
					p.client.send(id, &Handover{To: owner.pid})
					next[*Done](p.client)
				}
				owner.send(owner.pid, "hold")
				next[string](owner)
				for range sends {
					w.sys.Root.Send(id, NewSend([]byte("x")))
				}
				settle()
				if n := w.rt.registry.Find(owner.pid).UserMessageCount(); n > 4 {
					w.Errorf("%d answers wait", n)
				}
				close(hold)
				w.sys.Root.Send(id, &DestroyID{})
				failed, bytes := 0, 0
				for _, g := range until[*Closed](owner) {
					switch m := g.msg.(type) {
					case *SendFailed:
						failed += m.Sends
						bytes += m.Bytes
					case *Closed:
						if got := int(m.Unsent); failed != got || bytes != got || got < sends-1 {
							w.Errorf("%d Sends and %d bytes were answered, Closed says %d of %d", failed, bytes, got, sends)
						}
					}
				}
			}, Config{Limits: Limits{SendQueue: 1}})
		})
	}
}
