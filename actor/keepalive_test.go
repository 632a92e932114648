package actor

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/verbs"
)

// gone fails unless the next event that p gets is the loss of a silent peer, after d at the
// earliest and a third of idle later at the latest.
func gone(w *world, p *probe, since time.Time, d, idle time.Duration) {
	w.Helper()
	e, _ := next[*Disconnected](p)
	is(w, e.Err, ErrPeerLost)
	is(w, e.Err, unix.ETIMEDOUT)
	c, _ := next[*Closed](p)
	is(w, c.Err, ErrPeerLost)
	if took := time.Since(since); took < d || took > d+idle/3+goodbyeTime {
		w.Errorf("it was given up after %v of silence, want %v", took, d)
	}
}

// A peer that was stopped, and one that is no longer reachable, are given up 45 s after their last
// sign of life, or as the configuration of the identifier or the listener specifies. No transport
// notices.
func TestSilentPeers(t *testing.T) {
	stop := map[string]func(w *world) (undo func()){
		"frozen": func(w *world) func() { w.f.Host("far").Freeze(); return w.f.Host("far").Thaw },
		"cut off": func(w *world) func() {
			w.f.Cut(w.f.Host(""), w.f.Host("far"))
			return func() { w.f.Heal(w.f.Host(""), w.f.Host("far")) }
		},
	}
	for name, how := range stop {
		for _, say := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, say), func(t *testing.T) {
				onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
					idle, d, cfg := 15*time.Second, 45*time.Second, IDConfig{}
					if say {
						idle, d, cfg = 6*time.Second, 20*time.Second, IDConfig{Keepalive: Keepalive{Idle: 6 * time.Second, Gone: 20 * time.Second}}
					}
					p := w.connect(cfg)
					time.Sleep(10 * time.Minute) // no side sends anything, and nothing happens
					p.client.quiet()
					p.server.send(p.s, NewSend([]byte("here")))
					next[*Received](p.client)
					settle()
					undo := how(w)
					defer undo()
					// its queue pair notices that a probe does not get through
					if w.flavor == 0 && name == "cut off" {
						e, _ := next[*Disconnected](p.client)
						is(w, e.Err, ErrPeerLost)
						until[*Closed](p.client)
						return
					}
					// the last sign of life is up to a third of idle ago
					gone(w, p.client, time.Now(), d-idle/3, 2*idle)
				})
			})
		}
	}
}

// A peer whose loop is blocked by its own actor for ten seconds, again and again, is not given up.
// Nor does a side give up its peer whose own loop was blocked for a minute, or whose machine was
// suspended for an hour.
func TestBlockedLoopIsNoSilence(t *testing.T) {
	hold := func(ctx actor.Context) {
		if d, ok := ctx.Message().(time.Duration); ok {
			time.Sleep(d)
		}
	}
	onAllKinds(t, func(w *world) {
		p := w.connect()
		p.server.reactWith(hold)
		for range 30 {
			w.sys.Root.Send(p.server.pid, 10*time.Second)
			next[time.Duration](p.server)
			time.Sleep(11 * time.Second)
		}
		p.client.quiet()
		p.server.quiet()
	})
	onAllKinds(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		server.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				ctx.Respond(&Accept{})
			}
		})
		// else it would give up this side, and rightly
		w.listen(server, IDConfig{Keepalive: Keepalive{Idle: -1}})
		id := w.rt.CreateID(client.pid, IDConfig{})
		client.send(id, &Dial{Addr: there + ":7471"})
		next[*Established](client)
		client.reactWith(hold)
		for range 10 {
			w.sys.Root.Send(client.pid, time.Minute)
			next[time.Duration](client)
			time.Sleep(61 * time.Second)
		}
		w.f.Host("").Freeze()
		time.Sleep(time.Hour)
		w.f.Host("").Thaw()
		time.Sleep(time.Minute)
		client.quiet()
		client.send(id, NewSend([]byte("still there")))
		for {
			if g := server.any(); g.data == "still there" {
				break
			}
		}
	})
}

// While messages flow no probe is sent; an idle connection has one for each idle, of one side or
// the other.
func TestProbesCostNothingWhileMessagesFlow(t *testing.T) {
	onAllKinds(t, func(w *world) {
		p := w.connect()
		beats := func() (n uint32) {
			w.onLoop(w.rt, func(l *loop) { n += w.conn(l, p.c).Session.Beats() })
			w.onLoop(w.far, func(l *loop) { n += w.conn(l, p.s).Session.Beats() })
			return n
		}
		for range 600 {
			p.client.send(p.c, NewSend([]byte("x")))
			next[*Received](p.server)
			p.server.send(p.s, NewSend([]byte("x")))
			next[*Received](p.client)
			time.Sleep(time.Second)
		}
		if n := beats(); n != 0 {
			w.Errorf("%d probes and answers while messages flowed", n)
		}
		time.Sleep(time.Hour)
		if n := beats(); n < 2*3600/20 || n > 2*2*3600/15 {
			w.Errorf("%d probes and answers in an idle hour", n)
		}
	})
}

// A foreign peer is sent no probe, and is not given up.
func TestForeignPeerIsNotProbed(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, old := w.farProbe(), w.probe()
		w.listen(server)
		id := w.rt.CreateID(old.pid, IDConfig{Raw: true})
		old.send(id, &Dial{Addr: there + ":7471", PrivateData: []byte("let me in")})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](old)
		time.Sleep(time.Hour)
		old.quiet()
		server.quiet()
	})
}

// moving is a queue pair whose transport is busy with something large.
type moving struct {
	verbs.QP
	came, went atomic.Uint64
}

func (m *moving) Came() uint64 { return m.came.Load() }
func (m *moving) Went() uint64 { return m.went.Load() }
func (m *moving) Watched()     {}

// A large transfer over a slow link is no silence: arriving bytes are signs of life, and while
// bytes before a probe go out, no peer is given up. The time begins when nothing moves.
func TestLargeTransfersAreNoSilence(t *testing.T) {
	for _, out := range []bool{false, true} {
		onKernelLike(t, kernelLike{}, func(w *world, _, _ *kernelLike) {
			p := w.connect()
			m := &moving{}
			w.onLoop(w.rt, func(l *loop) {
				c := w.conn(l, p.c)
				m.QP = c.QP
				c.QP = m
			})
			// during the transfer nothing else is received from it
			w.f.Host("far").Freeze()
			defer w.f.Host("far").Thaw()
			for range 600 {
				time.Sleep(time.Second)
				if out {
					m.went.Add(10_000)
				} else {
					m.came.Add(10_000)
				}
			}
			p.client.quiet()
			since := time.Now()
			e, _ := next[*Disconnected](p.client)
			is(w, e.Err, unix.ETIMEDOUT)
			if took := time.Since(since); took < 25*time.Second || took > 55*time.Second {
				w.Errorf("after the transfer it was given up in %v", took)
			}
			until[*Closed](p.client)
		})
	}
}

// Connections come and go while others are looked at, and all of them are looked at. A loop
// without connections has no timer.
func TestLookouts(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		server.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				ctx.Respond(&Accept{})
			}
		})
		w.listen(server)
		var ids []*actor.PID
		for i := range 300 {
			id := w.rt.CreateID(client.pid, IDConfig{})
			client.send(id, &Dial{Addr: there + ":7471"})
			next[*Established](client)
			ids = append(ids, id)
			if i%3 == 0 {
				time.Sleep(time.Second)
			}
			if i%5 == 4 {
				client.send(ids[i/5*2], &DestroyID{})
				until[*Closed](client)
			}
		}
		time.Sleep(time.Minute)
		settle() // a look is not half done
		lookout := func() (o *datapath.Lookout) {
			w.onLoop(w.rt, func(l *loop) {
				for _, o = range l.Lookouts {
				}
				for i, c := range o.Conns {
					if c.Beat.At != i || c.Beat.Look != o.Look {
						w.Errorf("connection %d of %d: at %d, seen by look %d of %d", i, len(o.Conns), c.Beat.At, c.Beat.Look, o.Look)
					}
				}
			})
			return o
		}
		if n := len(lookout().Conns); n != 240 {
			w.Errorf("%d connections are looked after, want 240", n)
		}
		if err := w.rt.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
	})
}
