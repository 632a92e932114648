package actor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// stuck is a device that begins commands of some kinds and never ends them.
type stuck struct {
	cmid.Driver
	ops map[states.Op]bool
}

type stuckInstance struct {
	cmid.Instance
	ops map[states.Op]bool
}

func (d *stuck) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in, err := d.Driver.Open(l, up)
	return &stuckInstance{in, d.ops}, err
}

func (in *stuckInstance) Enclosed() bool { return true }

func (in *stuckInstance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	id, err := in.Instance.CreateID(h, ps, t)
	return stuckID{id, in.ops}, err
}

type stuckID struct {
	cmid.DriverID
	ops map[states.Op]bool
}

func (id stuckID) Do(cmd cmid.Command) error {
	if id.ops[cmd.Op()] {
		return cmid.ErrPending
	}
	return id.DriverID.Do(cmd)
}

func stuckAt(ops ...states.Op) func(cmid.Driver) cmid.Driver {
	return func(d cmid.Driver) cmid.Driver {
		s := &stuck{d, make(map[states.Op]bool)}
		for _, op := range ops {
			s.ops[op] = true
		}
		return s
	}
}

// Deadlines come on time while the device is stuck, and cost the identifier.
func TestDeadlinesOfAStuckDevice(t *testing.T) {
	for _, tt := range []struct {
		op   states.Op
		send func(w *world, p *probe, id *actor.PID)
		want time.Duration
	}{
		{states.OpBindAddr, func(_ *world, p *probe, id *actor.PID) { p.send(id, &cmid.BindAddr{Addr: MustAddr(here + ":0")}) }, 2*time.Second + slack},
		{states.OpResolveAddr, func(_ *world, p *probe, id *actor.PID) {
			p.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471"), Timeout: time.Second})
		}, time.Second + slack},
		{states.OpResolveRoute, func(_ *world, p *probe, id *actor.PID) {
			p.send(id, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
			next[*cmid.AddrResolved](p)
			p.send(id, &cmid.ResolveRoute{})
		}, 2*time.Second + slack},
		{states.OpConnect, func(_ *world, p *probe, id *actor.PID) { p.send(id, &Dial{Addr: there + ":7471"}) }, 10 * time.Second},
		{states.OpConnect, func(_ *world, p *probe, id *actor.PID) {
			p.send(id, &Dial{Addr: there + ":7471", Timeout: 3 * time.Second})
		}, 3 * time.Second},
		{states.OpListen, func(_ *world, p *probe, id *actor.PID) { p.send(id, &Serve{Addr: here + ":7471"}) }, 2*time.Second + slack},
	} {
		t.Run(tt.op.String(), func(t *testing.T) {
			inWorldOver(t, states.IWARP, stuckAt(tt.op), func(w *world) {
				p := w.probe()
				id := w.rt.CreateID(p.pid, IDConfig{})
				took := elapsed(func() {
					tt.send(w, p, id)
					f, _ := next[Failure](p)
					is(w, f, unix.ETIMEDOUT)
					c, _ := next[*Closed](p)
					is(w, c.Err, unix.ETIMEDOUT)
				})
				if took != tt.want {
					w.Errorf("after %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// Shutdown names the identifiers that the device does not return.
func TestShutdownNamesWhatTheDeviceHolds(t *testing.T) {
	neverDestroys := stuckAt(states.OpDestroyID)
	var d *stuck
	inWorld(t, states.IWARP, func(w *world) {
		d = neverDestroys(w.f.Host("third").Driver()).(*stuck)
		w.f.Host("third").AddDevice("mem2", "10.0.0.9")
		rt := w.open2(d)
		id := rt.CreateID(nil, IDConfig{})
		l, err := Ask[*Listening](context.Background(), rt, id, &Serve{Addr: "10.0.0.9:7471"})
		if err != nil {
			w.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err = rt.Shutdown(ctx)
		is(w, err, context.DeadlineExceeded)
		if err == nil || !contains(err.Error(), l.Local.String()) {
			w.Errorf("%v does not name the listener on %v", err, l.Local)
		}
	})
}

func (w *world) open2(d cmid.Driver) *Runtime {
	w.Helper()
	rt, err := Open(w.sys, Config{Device: d, Loops: virtual(nil)})
	if err != nil {
		w.Fatal(err)
	}
	return rt
}

func TestShutdownDrains(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		for range 10 {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		idle := w.rt.CreateID(p.client.pid, IDConfig{})
		settle()
		if err := w.rt.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
		closed := map[string]*Closed{}
		for len(p.client.got) > 0 {
			g := <-p.client.got
			if c, ok := g.msg.(*Closed); ok {
				closed[g.sender.Id] = c
			}
		}
		if c := closed[p.c.Id]; c == nil || c.Delivered != 10 || !errors.Is(c.Err, ErrShutdown) {
			w.Errorf("the connection: %+v", c)
		}
		if c := closed[idle.Id]; c == nil || !errors.Is(c.Err, ErrShutdown) {
			w.Errorf("the idle identifier: %+v", c)
		}
		if err := w.rt.Shutdown(context.Background()); err != nil {
			w.Errorf("the second time: %v", err)
		}
		if got := w.rt.Inspect(); len(got) != 0 {
			w.Errorf("Inspect afterwards: %v", got)
		}
	})
}

func TestShutdownAborts(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 1})
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				keep(w, m)
			}
		})
		p.client.send(p.c, NewSend([]byte("never consumed")))
		settle()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		took := elapsed(func() { is(w, w.rt.Shutdown(ctx), context.DeadlineExceeded) })
		if took != time.Second {
			w.Errorf("it took %v", took)
		}
	}, Config{Timeouts: Timeouts{Close: time.Minute}})
}

func TestShutdownOnALoop(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		errs := make(chan error, 2)
		p := newProbe(w, w.sys, w.rt.OnLoop(), func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				errs <- w.rt.Shutdown(context.Background())
				_, err := Ask[*Closed](context.Background(), w.rt, ctx.Self(), &DestroyID{})
				errs <- err
			}
		})
		w.sys.Root.Send(p.pid, "go")
		is(w, <-errs, eventloop.ErrOnLoop)
		is(w, <-errs, eventloop.ErrOnLoop)
	})
}

func TestCreateIDAfterShutdown(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := newProbe(w, w.sys, nil, nil)
		if err := w.rt.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
		id := w.rt.CreateID(p.pid, IDConfig{})
		c, _ := next[*Closed](p)
		is(w, c.Err, ErrShutdown)
		p.send(id, &Listen{})
		settle()
		if _, ok := p.any().msg.(*actor.DeadLetterResponse); !ok {
			w.Error("a dead identifier does not answer with DeadLetterResponse")
		}
	})
}

// A panic in an owner's Receive is its supervisor's business.
func TestPanics(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok && string(m.Data) == "boom" {
				panic("boom")
			}
		})
		p.client.send(p.c, NewSend([]byte("boom")))
		p.client.send(p.c, NewSend([]byte("still there")))
		next[*Received](p.server)
		if g := p.server.any(); g.data != "still there" { // Proto.Actor has restarted the owner
			w.Errorf("got %v", g)
		}
	})
}

func TestStoppedFromOutside(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		w.sys.Root.Stop(p.c)
		end := until[*Closed](p.client)
		is(w, end[len(end)-1].msg.(*Closed).Err, ErrStopped)
		w.sys.Root.Poison(p.s)
		until[*Closed](p.server)
	})
}

// Nothing of the process is left after Shutdown: neither file descriptors (goroutines are
// TestMain's) nor identifiers.
func TestShutdownLeavesNoDescriptor(t *testing.T) {
	sys := testSystem(t)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc: ", err)
		}
		return len(entries)
	}
	run := func() {
		rt := openIWARP(t, sys, Config{Loops: make([]eventloop.Config, 2)})
		server, client := newProbe(t, sys, rt.OnLoop(), nil), newProbe(t, sys, rt.OffLoop(), nil)
		for range 5 {
			p := connect(t, rt, server, client)
			client.send(p.c, NewSend([]byte("x")))
			next[*Received](server)
		}
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		stop(t, sys, server.pid, client.pid)
	}
	run() // what Go itself opens once
	before := count()
	run()
	if after := count(); after > before {
		t.Errorf("%d file descriptors before, %d after", before, after)
	}
}

func TestAskCancelled(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, err := Ask[*cmid.AddrResolved](ctx, w.rt, id, &cmid.ResolveAddr{Dst: MustAddr("10.0.0.77:7471")})
		is(w, err, context.DeadlineExceeded)
		c, _ := next[*Closed](p)
		is(w, c.Err, context.DeadlineExceeded)
	})
}

func TestOpenWithoutDevice(t *testing.T) {
	_, err := Open(testSystem(t), Config{})
	is(t, err, unix.ENODEV)
	if !contains(fmt.Sprint(err), "iwarp.New()") {
		t.Errorf("%v does not say what to do", err)
	}
}
