package reconnect_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// When a device is removed and added again the connection is made again, be it the actor's device
// or its peer's.
func TestDeviceReturns(t *testing.T) {
	for _, device := range []string{"mem0", "mem1"} {
		t.Run(device, func(t *testing.T) {
			onFlavors(t, func(r *rig) {
				r.serve()
				r.spawn(reconnect.Config{Backoff: reconnect.Backoff{Most: time.Second}})
				r.accept()
				r.RemoveDevice(device)
				down := actortest.Next[*reconnect.Down](r.owner)
				if !down.WasUp {
					t.Errorf("%+v", down)
				}
				r.send(1, "are you there?")
				r.Advance(10 * time.Second)
				r.AddDevice(device)
				for {
					if _, ok := actortest.Next[any](r.server).(*rdma.Closed); ok {
						break
					}
				}
				r.accept()
				r.hears("are you there?")
			})
		})
	}
}

// A connection that does not stay up does not begin the backoff anew; one that was stable does.
func TestFlapping(t *testing.T) {
	inRig(t, func(r *rig) {
		r.serve()
		r.spawn(reconnect.Config{Backoff: reconnect.Backoff{First: time.Second, Most: time.Minute, Stable: 10 * time.Second}})
		longest := time.Duration(0)
		for i := range 12 {
			conn, _ := r.accept()
			r.Disconnect(conn)
			down := actortest.Next[*reconnect.Down](r.owner)
			wait := down.NextTry.Sub(r.Now())
			if most := time.Second << i; wait > min(most, time.Minute) {
				t.Errorf("after drop %d it waits %v", i, wait)
			}
			longest = max(longest, wait)
			r.ended()
		}
		if longest < 10*time.Second {
			t.Errorf("it waits %v at most", longest)
		}
		conn, _ := r.accept()
		r.Advance(10 * time.Second)
		r.Disconnect(conn)
		down := actortest.Next[*reconnect.Down](r.owner)
		if wait := down.NextTry.Sub(r.Now()); wait > time.Second {
			t.Errorf("after a stable connection it waits %v", wait)
		}
		r.ended()
	})
}

// A connection that has worked begins the backoff anew, however short it was: the peer has ended it
// in order, or has taken a message over it.
func TestPauseAfterAConnectionThatWorked(t *testing.T) {
	for name, end := range map[string]func(r *rig, conn *actor.PID){
		"closed in order": func(r *rig, conn *actor.PID) { r.server.Request(conn, &rdma.Close{}) },
		"lost after a message": func(r *rig, conn *actor.PID) {
			r.send(1, "x")
			r.hears("x")
			r.released()
			actortest.Next[*reconnect.Settled](r.owner)
			r.Disconnect(conn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.serve()
				r.spawn(reconnect.Config{Backoff: reconnect.Backoff{First: time.Second, Most: time.Minute, Stable: time.Hour}})
				for i := range 10 {
					conn, _ := r.accept()
					end(r, conn)
					down := actortest.Next[*reconnect.Down](r.owner)
					if wait := down.NextTry.Sub(r.Now()); wait > time.Second {
						t.Errorf("after connection %d it waits %v", i, wait)
					}
					r.ended()
				}
			})
		})
	}
}

// The owner may keep messages of an old connection for as long as it wants. They do no harm, and
// are never taken for messages of the new one.
func TestOldGenerationIsSilent(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.serve()
		r.spawn(reconnect.Config{})
		conn, _ := r.accept()
		for range 4 {
			r.server.Request(conn, rdma.NewSend([]byte("old")))
		}
		var kept []*rdma.Received
		for range 4 {
			kept = append(kept, actortest.Next[*rdma.Received](r.owner).Retain())
		}
		// messages take their time
		r.Delay(50 * time.Millisecond)
		// and arrive when no receiver waits for them
		r.server.Request(conn, rdma.NewSend([]byte("too late")))
		r.server.Request(conn, &rdma.DestroyID{})
		for _, i := range r.Runtime().Inspect() {
			r.Disconnect(i.PID)
		}
		actortest.Next[*reconnect.Down](r.owner)
		r.ended()
		second, up := r.accept()
		for _, m := range kept {
			if string(m.Data) != "old" || m.ID == up.Established.ID {
				t.Errorf("%v has become %q", m, m.Data)
			}
			m.Release()
		}
		r.server.Request(second, rdma.NewSend([]byte("new")))
		if m := actortest.Next[*rdma.Received](r.owner); string(m.Data) != "new" || m.ID != up.Established.ID {
			t.Errorf("got %q of identifier %d, want that of %d", m.Data, m.ID, up.Established.ID)
		}
		r.owner.Silent(10 * time.Second)
	})
}

// acceptor is a server that accepts everybody, and notes when they came.
type acceptor struct {
	mu   sync.Mutex
	came []time.Time
	now  func() time.Time
}

// all returns when they arrived.
func (a *acceptor) all() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.came)
}

func (a *acceptor) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
		a.mu.Lock()
		a.came = append(a.came, a.now())
		a.mu.Unlock()
		ctx.Respond(&rdma.Accept{})
	}
}

// A thousand clients and a server that comes back: no second sees more dials than the limiter
// allows, and all are connected in the end.
func TestStorm(t *testing.T) {
	const (
		clients   = 1000
		atOnce    = 20
		perSecond = 50
	)
	actortest.Run(t, actortest.Config{Runtime: rdma.Config{Logger: quiet}}, func(w *actortest.World) {
		far := w.Host("mem1", "10.0.0.2")
		a := &acceptor{now: w.Now}
		owner := w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }, far.OnLoop()))
		w.T().Cleanup(func() { _ = w.System().Root.StopFuture(owner).Wait() })
		l := reconnect.NewLimiter(atOnce, perSecond)
		var ups atomic.Int32
		crowd := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *reconnect.Up:
				ups.Add(1)
			case *reconnect.Down:
				if m.WasUp {
					ups.Add(-1)
				}
			}
		}, w.Runtime().OnLoop()))
		w.T().Cleanup(func() { _ = w.System().Root.StopFuture(crowd).Wait() })
		w.Delay(time.Millisecond)
		for i := range clients {
			reconnect.Spawn(w.Runtime(), crowd, reconnect.Config{
				Dial: rdma.Dial{Addr: there}, Limiter: l, Rand: rand.New(rand.NewPCG(uint64(i), 0)),
				Backoff: reconnect.Backoff{First: time.Second, Most: 5 * time.Second},
			})
		}
		w.Wait()
		if dialling, waiting := l.Inspect(); dialling != atOnce || len(waiting) != clients-atOnce || waiting[0].Addr != there {
			t.Errorf("%d dials, %d wait", dialling, len(waiting))
		}
		w.Advance(30 * time.Second)
		listener := far.CreateID(owner)
		w.System().Root.Send(listener, &rdma.Serve{Addr: ":7471"})
		w.Advance(time.Minute)
		if ups.Load() != clients {
			t.Errorf("%d of %d are connected", ups.Load(), clients)
		}
		came := a.all()
		for i, first := range came {
			n := 0
			for _, at := range came[i:] {
				if at.Sub(first) < time.Second {
					n++
				}
			}
			if n > perSecond+atOnce {
				t.Fatalf("%d dials within a second", n)
			}
		}
		if dialling, waiting := l.Inspect(); dialling > 0 || len(waiting) > 0 {
			t.Errorf("%d dials, %d wait", dialling, len(waiting))
		}
		// All lose their connections at the same time, and come back at that rate.
		w.RemoveDevice("mem1")
		w.Advance(time.Second)
		w.AddDevice("mem1")
		begin := w.Elapsed()
		for ups.Load() < clients && w.Elapsed()-begin < 5*time.Minute {
			w.Advance(time.Second)
		}
		if took := w.Elapsed() - begin; ups.Load() != clients || took < (clients-atOnce)/perSecond*time.Second-time.Second {
			t.Errorf("%d are back after %v", ups.Load(), took)
		}
	})
}
