package actor

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// slowly runs test with a device here on which commands wait before they are begun, as the
// kernel's rdma_cm has it.
func slowly(t *testing.T, takes map[states.Op]time.Duration, test func(w *world)) {
	t.Helper()
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) {
			near := kernelLike{takes: takes}
			inWorldOfTwo(t, f, near.over, untouched, test)
		})
	}
}

// A connect to a silent peer is given up on time, although the device takes its time to return the
// identifier: that one is shown as being destroyed during this time, others go on, and Closed
// follows when it is gone.
func TestDestroyThatTakesItsTime(t *testing.T) {
	const long = 50 * time.Second
	slowly(t, map[states.Op]time.Duration{states.OpDestroyID: long}, func(w *world) {
		other := w.connect()
		p := w.probe()
		id := resolved(w, p)
		w.f.Silence(there)
		took := elapsed(func() {
			p.send(id, &Connect{})
			f, _ := next[*Unreachable](p)
			is(w, f, unix.ETIMEDOUT)
		})
		if took != 10*time.Second {
			w.Errorf("notified after %v", took)
		}
		w.f.Unsilence(there)
		if s, ok := w.state(id); !ok || s != states.Destroying {
			w.Errorf("it is seen as %v, %v", s, ok)
		}
		p.send(id, &Listen{})
		f, _ := next[*CommandFailed](p)
		is(w, f, unix.ENOENT)
		took = elapsed(func() {
			other.client.send(other.c, NewSend([]byte("hello")))
			if g := other.server.any(); g.data != "hello" {
				w.Errorf("got %v", g)
			}
		})
		if took > time.Second {
			w.Errorf("another connection was delayed by %v", took)
		}
		took = elapsed(func() {
			c, _ := next[*Closed](p)
			is(w, c.Err, unix.ETIMEDOUT)
		})
		if took < long-time.Second || took > long+time.Second {
			w.Errorf("Closed came %v later, want %v", took, long)
		}
	})
}

// Other waiting commands are answered when the identifier is given up, not when the device has
// returned it.
func TestNobodyWaitsForASlowDestroy(t *testing.T) {
	slowly(t, map[states.Op]time.Duration{states.OpDestroyID: 50 * time.Second}, func(w *world) {
		p, asker := w.probe(), w.probe()
		id := resolved(w, p)
		w.f.Silence(there)
		asker.send(id, &Connect{})
		settle()
		took := elapsed(func() {
			p.send(id, &DestroyID{})
			f, _ := next[*CommandFailed](asker)
			is(w, f, unix.ENOENT)
		})
		if took > 0 {
			w.Errorf("the Connect was answered after %v", took)
		}
		took = elapsed(func() { next[*Closed](p) })
		if took != 50*time.Second {
			w.Errorf("Closed came after %v", took)
		}
	})
}

// A connect that blocks in the kernel for TCP's handshake is under way: a Disconnect is refused, a
// DestroyID is not, and the deadline is kept.
func TestConnectThatTakesItsTime(t *testing.T) {
	slowly(t, map[states.Op]time.Duration{states.OpConnect: 127 * time.Second}, func(w *world) {
		p := w.probe()
		w.listen(w.farProbe())
		id := resolved(w, p)
		p.send(id, &Connect{})
		p.send(id, &Disconnect{})
		f, _ := next[*CommandFailed](p)
		is(w, f, unix.EINVAL) // not connected yet
		took := elapsed(func() {
			u, _ := next[*Unreachable](p)
			is(w, u, unix.ETIMEDOUT)
			next[*Closed](p)
		})
		if took != 10*time.Second {
			w.Errorf("given up after %v", took)
		}
		id = resolved(w, p)
		p.send(id, &Connect{})
		p.send(id, &DestroyID{})
		if took = elapsed(func() { until[*Closed](p) }); took != 0 {
			w.Errorf("destroyed after %v", took)
		}
	})
	slowly(t, map[states.Op]time.Duration{states.OpConnect: 3 * time.Second, states.OpDisconnect: time.Second}, func(w *world) {
		server := w.farProbe()
		server.reactWith(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*ConnectRequest); ok {
				ctx.Respond(&Accept{})
			}
		})
		w.listen(server)
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		took := elapsed(func() {
			p.send(id, &Dial{Addr: there + ":7471"})
			next[*Established](p)
		})
		if took != 3*time.Second {
			w.Errorf("established after %v", took)
		}
		p.send(id, NewSend([]byte("x")))
		p.send(id, &Close{})
		end := until[*Closed](p)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != 1 {
			w.Errorf("the end: %v", end)
		}
	})
}

// A Dial goes on to the next address while the identifier of the first is still on its way out,
// and that one's share of the device is free when it is gone.
func TestDialLeavesASlowIdentifierBehind(t *testing.T) {
	slowly(t, map[states.Op]time.Duration{states.OpDestroyID: 50 * time.Second}, func(w *world) {
		w.f.Host("far").AddDevice("mem2", "10.0.0.8")
		server, p := w.farProbe(), w.probe()
		w.listen(server) // 10.0.0.8 has no listener
		w.rt.resolve = func(context.Context, string, string, *cmid.AddrInfo) ([]cmid.AddrInfo, error) {
			return []cmid.AddrInfo{{Dst: MustAddr("10.0.0.8:7999")}, {Dst: MustAddr(there + ":7471")}}, nil
		}
		id := w.rt.CreateID(p.pid, IDConfig{})
		p.send(id, &Dial{Addr: "somewhere:7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](p)
		w.onLoop(w.rt, func(l *loop) {
			if len(l.orphans) != 1 || l.Devices[0].Conns != 2 {
				w.Errorf("%d identifiers are left to the device, %d connections have a share of it", len(l.orphans), l.Devices[0].Conns)
			}
		})
		time.Sleep(51 * time.Second)
		w.onLoop(w.rt, func(l *loop) {
			if len(l.orphans) != 0 || l.Devices[0].Conns != 1 {
				w.Errorf("afterwards %d and %d", len(l.orphans), l.Devices[0].Conns)
			}
		})
	})
}

// Shutdown returns when its context ends and names the identifiers that the device keeps, and the
// owners are notified.
func TestShutdownDoesNotWaitForTheKernel(t *testing.T) {
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) {
			inWorld(t, f, func(w *world) {
				w.f.Host("third").AddDevice("mem2", "10.0.0.9")
				slow := &kernelLike{takes: map[states.Op]time.Duration{states.OpDestroyID: 50 * time.Second}}
				rt := w.open2(slow.over(w.f.Host("third").Driver()))
				onLoop, off := newProbe(w, w.sys, rt.OnLoop(), nil), newProbe(w, w.sys, rt.OffLoop(), nil)
				_, at := listen(onLoop, rt, "10.0.0.9:7471")
				listen(off, rt, "10.0.0.9:7472")
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				took := elapsed(func() {
					err := rt.Shutdown(ctx)
					is(w, err, context.DeadlineExceeded)
					if err == nil || !contains(err.Error(), at) || !contains(err.Error(), "destroying") {
						w.Errorf("%v does not name the listener on %v", err, at)
					}
				})
				if took != 3*time.Second {
					w.Errorf("Shutdown returned after %v", took)
				}
				for _, p := range []*probe{onLoop, off} {
					c, _ := next[*Closed](p)
					is(w, c.Err, ErrHeld)
					is(w, c.Err, ErrShutdown)
				}
				if n := rt.count.Load(); n != 0 {
					w.Errorf("%d identifiers are still counted", n)
				}
			})
		})
	}
}

// An owner is notified that the device has refused to return its identifier, and why.
func TestDeviceHolds(t *testing.T) {
	for _, takes := range []time.Duration{0, time.Second} {
		inWorld(t, 0, func(w *world) {
			w.f.Host("third").AddDevice("mem2", "10.0.0.9")
			k := &kernelLike{holds: unix.EINVAL, takes: map[states.Op]time.Duration{states.OpDestroyID: takes}}
			rt := w.open2(k.over(w.f.Host("third").Driver()))
			owner := newProbe(w, w.sys, rt.OnLoop(), nil)
			id, _ := listen(owner, rt, "10.0.0.9:7471")
			owner.send(id, &DestroyID{})
			c, _ := next[*Closed](owner)
			is(w, c.Err, ErrHeld)
			is(w, c.Err, unix.EINVAL)
			if err := rt.Shutdown(context.Background()); err != nil {
				w.Error(err)
			}
		})
	}
}

// A device that is pulled out while it is used is dropped without an error. Each owner is notified
// once, and its retained messages stay readable. The device works when it is plugged in again.
func TestDeviceComesBack(t *testing.T) {
	for name, over := range map[string]func() kernelLike{
		"asks": nil, "does not ask": func() kernelLike { return kernelLike{} },
		"takes its time": func() kernelLike {
			return kernelLike{takes: map[states.Op]time.Duration{states.OpDestroyID: 50 * time.Second}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			test := func(w *world) { deviceComesBack(w) }
			for fname, f := range flavors {
				t.Run(fname, func(t *testing.T) {
					if over == nil {
						inWorld(t, f, test, Config{Logger: noErrors(t)})
						return
					}
					near := over()
					inWorldOfTwo(t, f, near.over, untouched, test, Config{Logger: noErrors(t)})
				})
			}
		})
	}
}

func deviceComesBack(w *world) {
	var held *Received
	server := w.farProbe()
	server.reactWith(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			ctx.Respond(&Accept{})
		}
	})
	w.listen(server)
	dial := func() (*probe, *actor.PID) {
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		p.send(id, &Dial{Addr: there + ":7471"})
		next[*Established](p)
		return p, id
	}
	var probes []*probe
	for range 5 {
		p, _ := dial()
		probes = append(probes, p)
	}
	listener := w.probe()
	listen(listener, w.rt, here+":7472")
	holder, id := dial()
	holder.reactWith(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*Received); ok {
			held = m.Retain()
		}
	})
	server.reactWith(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *ConnectRequest:
			ctx.Respond(&Accept{})
		case *Received:
			ctx.Respond(NewSend(m.Data))
		}
	})
	holder.send(id, NewSend([]byte("precious")))
	next[*Received](holder)
	settle()
	w.f.RemoveDevice("mem0")
	for _, p := range append(probes, holder, listener) {
		end := until[*Closed](p)
		if k := kinds(end); k != "DeviceRemoval Closed" {
			w.Errorf("got %s", k)
		}
		is(w, end[len(end)-1].msg.(*Closed).Err, unix.ENODEV)
	}
	settle()
	if string(held.Data) != "precious" {
		w.Errorf("what the owner holds is now %q", held.Data)
	}
	left := func() (n int) {
		w.onLoop(w.rt, func(l *loop) { n = len(l.Devices) })
		return n
	}
	if n := left(); n != 1 {
		w.Errorf("%d devices while a message is held", n)
	}
	w.f.AddDevice("mem0", here)
	again, id := dial()
	again.send(id, NewSend([]byte("again")))
	if g := again.any(); g.data != "again" {
		w.Errorf("got %v", g)
	}
	held.Release()
	settle()
	if n := left(); n != 1 {
		w.Errorf("%d devices afterwards, want the one that was added", n)
	}
	for _, p := range append(probes, holder, listener) {
		p.quiet()
	}
}

// noErrors fails the test when the runtime logs an error.
func noErrors(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(complaints{tb}, &slog.HandlerOptions{Level: slog.LevelError}))
}

type complaints struct{ tb testing.TB }

func (c complaints) Write(p []byte) (int, error) {
	c.tb.Errorf("the runtime complains: %s", p)
	return len(p), nil
}

// An identifier's actor is stopped when its device has just returned the identifier: nothing is
// left to the device.
func TestStoppedWhenItIsGivenBack(t *testing.T) {
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) {
			near := kernelLike{takes: map[states.Op]time.Duration{states.OpDestroyID: time.Minute}}
			inWorldOfTwo(t, f, near.over, untouched, func(w *world) {
				p := w.probe()
				id := resolved(w, p)
				p.send(id, &cmid.DestroyID{})
				time.Sleep(time.Second)
				w.onLoop(w.rt, func(l *loop) {
					it := w.ident(l, id)
					w.sys.Root.Stop(id) // in its mailbox, before the answer
					near.in.Done(it.id.Handle(), nil)
				})
				next[*Closed](p)
				time.Sleep(time.Minute) // the twin has returned it, too
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if err := w.rt.Shutdown(ctx); err != nil {
					w.Error(err)
				}
			})
		})
	}
}
