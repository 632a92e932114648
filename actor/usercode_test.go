package actor

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// shutDown ends both runtimes within the test, whatever user code has done.
func (w *world) shutDown() {
	w.Helper()
	for _, rt := range []*Runtime{w.rt, w.far} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if err := rt.Shutdown(ctx); err != nil {
			w.Errorf("shutdown: %v", err)
		}
		cancel()
	}
}

// deadHandlers are the ways in which the spawn of a handler fails.
var deadHandlers = map[string]func(leave func()) *actor.Props{
	"producer": func(leave func()) *actor.Props {
		return actor.PropsFromProducer(func() actor.Actor {
			leave()
			return nil
		})
	},
	"OnInit": func(leave func()) *actor.Props {
		return actor.PropsFromFunc(func(actor.Context) {}, actor.WithOnInit(func(actor.Context) { leave() }))
	},
}

// A Handler that cannot be spawned costs its request, which is rejected and counted as with Route:
// its peer hears of it without delay, and the listener has room for the next one.
func TestHandlerThatDoesNotReturn(t *testing.T) {
	for sec, cfg := range map[string]func(w *world) IDConfig{
		"insecure": func(*world) IDConfig { return IDConfig{} },
		"secured":  func(w *world) IDConfig { return secured(w) },
	} {
		for how, dead := range deadHandlers {
			for name, leave := range leavings {
				t.Run(sec+"/"+how+"/"+name, func(t *testing.T) {
					onFlavors(t, func(w *world) {
						mine := cfg(w)
						var away atomic.Bool
						away.Store(true)
						came := make(chan arrival, 8)
						good := handlers(came, echoing)
						mine.Handler = dead(func() {
							if away.Load() {
								leave()
							}
						})
						lis := w.listen(w.farProbe(), mine)
						before := processes(w.sys)
						p := w.probe()
						for range 5 { // more than there is room for
							id := w.rt.CreateID(p.pid, cfg(w))
							if took := elapsed(func() {
								p.send(id, &Dial{Addr: there + ":7471"})
								until[*Closed](p)
							}); took > patience/100 {
								w.Errorf("its peer has waited for %v", took)
							}
						}
						settle()
						wantCounts(w, "afterwards", w.far, 1, 0)
						if n := processes(w.sys); n > before+1 { // the probe
							w.Errorf("%d processes, there were %d", n, before)
						}
						for _, i := range w.far.Inspect() {
							if i.Listener != nil && (i.Listener.Refused.Failed != 5 || i.Listener.Pending != 0) {
								w.Errorf("counted as %+v", *i.Listener)
							}
						}
						w.sys.Root.Stop(lis)
						settle()
						mine.Handler = good
						w.listen(w.farProbe(), mine)
						id := w.rt.CreateID(p.pid, cfg(w))
						p.send(id, &Dial{Addr: there + ":7471"})
						next[*Established](p)
						<-came
						w.shutDown()
					}, Config{Loops: make([]eventloop.Config, 2), Limits: Limits{PendingRequests: 4}})
				})
			}
		}
	}
}

// processes returns how many processes the system has.
func processes(sys *actor.ActorSystem) (n int) {
	for _, bucket := range sys.ProcessRegistry.LocalPIDs.LocalPIDs {
		n += bucket.Count()
	}
	return n
}

// subscribe calls f with the events of the system until the test ends.
func (w *world) subscribe(f func(ev any)) {
	sub := w.sys.EventStream.Subscribe(f)
	w.Cleanup(func() { w.sys.EventStream.Unsubscribe(sub) })
}

// A subscriber that fails when it is notified that a listener's code has failed costs no more than
// that code has: the request is rejected nevertheless.
func TestSubscriberThatDoesNotReturn(t *testing.T) {
	for name, leave := range leavings {
		for which, cfg := range map[string]func(w *world) IDConfig{
			"Route": func(*world) IDConfig {
				return IDConfig{Route: func(*ConnectRequest) (*actor.PID, *Reject) { panic("away") }}
			},
			"Place": func(w *world) IDConfig {
				c := secured(w)
				c.Place, c.Hint = func(uint32) *actor.PID { panic("away") }, someHint
				return c
			},
			"Authorize": func(w *world) IDConfig {
				c := secured(w)
				c.Security.Authorize = func(*ConnectRequest) (PeerLimits, *Reject) { panic("away") }
				return c
			},
			"Handler": func(*world) IDConfig {
				return IDConfig{Handler: actor.PropsFromProducer(func() actor.Actor { panic("away") })}
			},
		} {
			t.Run(which+"/"+name, func(t *testing.T) {
				onFlavors(t, func(w *world) {
					w.subscribe(func(ev any) {
						if _, ok := ev.(*Panicked); ok {
							leave()
						}
					})
					mine := cfg(w)
					w.listen(w.farProbe(), mine)
					p := w.probe()
					for range 3 {
						id := w.rt.CreateID(p.pid, IDConfig{Security: mine.Security, Hint: mine.Hint})
						if took := elapsed(func() {
							p.send(id, &Dial{Addr: there + ":7471"})
							until[*Closed](p)
						}); took > patience/100 {
							w.Errorf("its peer has waited for %v", took)
						}
					}
					settle()
					wantCounts(w, "afterwards", w.far, 1, 0)
					w.shutDown()
				}, Config{Loops: make([]eventloop.Config, 2)})
			})
		}
	}
}

// faulty is a CommandObserver that calls at for whatever it is notified of.
type faulty struct{ at func(what any) }

func (o *faulty) Transition(_ *actor.PID, _ Handle, _, to states.State) { o.at(to) }
func (o *faulty) Event(_ *actor.PID, ev cmid.Event)                     { o.at(ev) }
func (o *faulty) Credit(_ *actor.PID, _ Handle, c Credits)              { o.at(c) }
func (o *faulty) Moved(*actor.PID, Handle, string, string)              { o.at("moved") }
func (o *faulty) Begun(_ *actor.PID, _ Handle, cmd Command)             { o.at(cmd) }
func (o *faulty) Answered(_ *actor.PID, _ Handle, cmd Command, ev Event) {
	o.at([2]any{cmd, ev})
}

// An identifier that user code fails at while it ends has ended nevertheless, and its owner and
// Shutdown know of it.
func TestObserverThatFailsAtTheEnd(t *testing.T) {
	for name, leave := range leavings {
		for what, is := range map[string]func(what any) bool{
			"Closed":     func(what any) bool { _, ok := what.(*Closed); return ok },
			"destroying": func(what any) bool { return what == states.Destroying },
			"anything":   func(any) bool { return true },
		} {
			t.Run(what+"/"+name, func(t *testing.T) {
				var armed atomic.Bool
				o := &faulty{func(what any) {
					if armed.Load() && is(what) {
						leave()
					}
				}}
				onFlavors(t, func(w *world) {
					armed.Store(false)
					p := w.connect()
					asker := newProbe(w, w.sys, w.rt.OffLoop(), nil)
					armed.Store(true)
					asker.send(p.c, &DestroyID{})
					until[*Closed](asker)
					until[*Closed](p.client)
					until[*Closed](p.server)
					w.sys.Root.Stop(p.listener)
					until[*Closed](p.server)
					wantCounts(w, "afterwards", w.rt, 0)
					wantCounts(w, "afterwards", w.far, 0)
					w.shutDown()
				}, Config{Observer: o})
			})
		}
	}
}

// A subscriber of dead letters that fails at an answer to an actor that has gone does not keep the
// identifier from ending.
func TestDeadLettersThatFailAtTheEnd(t *testing.T) {
	for name, leave := range leavings {
		for kind, where := range wheresOf {
			t.Run(kind+"/"+name, func(t *testing.T) {
				onFlavors(t, func(w *world) {
					w.subscribe(func(ev any) {
						if _, ok := ev.(*actor.DeadLetterEvent); ok {
							leave()
						}
					})
					p := w.connect()
					gone := newProbe(w, w.sys, where(w.rt), nil)
					stop(w, w.sys, gone.pid)
					gone.send(p.c, &DestroyID{}) // its answer becomes a dead letter
					until[*Closed](p.client)
					until[*Closed](p.server)
					settle()
					wantCounts(w, "afterwards", w.rt, 0)
					wantCounts(w, "afterwards", w.far, 1)
					w.shutDown()
				})
			})
		}
	}
}

// wheresOf is the places an owner may run, of a runtime that is not open yet.
var wheresOf = map[string]func(*Runtime) actor.PropsOption{
	"on the loop": (*Runtime).OnLoop, "off the loop": (*Runtime).OffLoop, "plain": func(*Runtime) actor.PropsOption { return func(*actor.Props) {} },
}

// An Observer that fails costs no answer and no message: it is notified on the way, and the event
// that it is notified of arrives.
func TestObserverThatFails(t *testing.T) {
	var armed atomic.Bool
	o := &faulty{func(any) {
		if armed.Load() {
			panic("observed")
		}
	}}
	onFlavors(t, func(w *world) {
		armed.Store(true)
		defer armed.Store(false)
		var panicked atomic.Int64
		w.subscribe(func(ev any) {
			if p, ok := ev.(*Panicked); ok && p.Value == "observed" {
				panicked.Add(1)
			}
		})
		p := w.connect()
		const many = 3 * 32 // more than the credits of a connection
		for range many {
			p.client.send(p.c, NewSend([]byte("hello")))
			if g := p.server.any(); g.data != "hello" {
				w.Fatalf("got %v", g)
			}
		}
		if panicked.Load() < 2*many {
			w.Errorf("%d were published", panicked.Load())
		}
		p.client.send(p.c, &Close{})
		if c := until[*Closed](p.client); c[len(c)-1].msg.(*Closed).Err != nil {
			w.Errorf("the end: %v", c)
		}
		until[*Closed](p.server)
		w.shutDown()
	}, Config{Observer: o})
}

// A Route that rejects with more private data than fits has rejected: its peer hears of it without
// delay, and that it is a rejection.
func TestRouteRejectsWithTooMuch(t *testing.T) {
	for name, cfg := range map[string]func(w *world) IDConfig{
		"insecure": func(*world) IDConfig { return IDConfig{} },
		"raw":      func(*world) IDConfig { return IDConfig{Raw: true} },
		"secured":  func(w *world) IDConfig { return secured(w) },
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				mine := cfg(w)
				mine.Route = func(*ConnectRequest) (*actor.PID, *Reject) { return nil, &Reject{PrivateData: make([]byte, 1000)} }
				w.listen(w.farProbe(), mine)
				p := w.probe()
				id := w.rt.CreateID(p.pid, IDConfig{Security: mine.Security, Raw: mine.Raw})
				if took := elapsed(func() {
					p.send(id, &Dial{Addr: there + ":7471"})
					next[*Rejected](p)
				}); took > patience/100 {
					w.Errorf("its peer has waited for %v", took)
				}
				next[*Closed](p)
				settle()
				wantCounts(w, "afterwards", w.far, 1)
				for _, i := range w.far.Inspect() {
					if i.Listener != nil && (i.Listener.Rejected != 1 || i.Listener.Pending != 0) {
						w.Errorf("counted as %+v", *i.Listener)
					}
				}
			})
		})
	}
}
