package actortest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// A killed program sends nothing. Its kernel ends its connections, and another program may take
// its place.
func TestCrash(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		c := converse(w)
		begin := w.Elapsed()
		w.Crash("mem1")
		if e := actortest.Next[*rdma.Disconnected](c.server); !errors.Is(e.Err, rdma.ErrPeerLost) {
			t.Errorf("disconnected because of %v", e.Err)
		}
		if e := actortest.Next[*rdma.Closed](c.server); !errors.Is(e.Err, rdma.ErrPeerLost) {
			t.Errorf("closed because of %v", e.Err)
		}
		if d := w.Elapsed() - begin; d != 0 {
			t.Errorf("its peer was notified after %v", d)
		}
		if s := w.State(c.active); s != states.Destroying {
			t.Errorf("the identifier of the dead is %v", s)
		}
		c.client.Request(c.active, rdma.NewSend([]byte("to the dead")))
		c.client.Silent(time.Minute)

		p := w.Probe()
		p.Request(w.Host("mem1", "10.0.0.2").CreateID(p.PID()), &rdma.Dial{Addr: server})
		actortest.Next[*rdma.ConnectRequest](c.server)
		c.server.Request(c.server.Sender(), &rdma.Accept{})
		actortest.Next[*rdma.Established](c.server)
		actortest.Next[*rdma.Established](p)
		w.Crash("mem1") // and again
		actortest.Next[*rdma.Disconnected](c.server)
		actortest.Next[*rdma.Closed](c.server)
	})
}

// A listener goes with its program, and so do requests that it has not answered.
func TestCrashOfAListener(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		s, c := w.Probe(), w.Probe()
		s.Request(w.Host("mem1", "10.0.0.2").CreateID(s.PID()), &rdma.Serve{Addr: ":7471"})
		actortest.Next[*rdma.Listening](s)
		c.Request(w.CreateID(c.PID()), &rdma.Dial{Addr: "10.0.0.2:7471"})
		actortest.Next[*rdma.ConnectRequest](s)
		w.Crash("mem1")
		actortest.Next[*rdma.Rejected](c)
		actortest.Next[*rdma.Closed](c)
		w.Host("mem1", "10.0.0.2")
		c.Request(w.CreateID(c.PID()), &rdma.Dial{Addr: "10.0.0.2:7471"})
		if e := actortest.Next[*rdma.Rejected](c); !errors.Is(e, unix.ECONNREFUSED) {
			t.Error(e)
		}
		actortest.Next[*rdma.Closed](c)
	})
}

// On iWARP, if a frozen program is killed, messages that it has not read make its end a reset.
func TestCrashWithUnread(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		c := converse(w)
		w.Freeze("mem1")
		c.server.Send(c.passive, rdma.NewSend([]byte("unread")))
		w.Wait()
		w.Crash("mem1")
		if e := actortest.Next[*rdma.Disconnected](c.server); !errors.Is(e.Err, unix.ECONNRESET) {
			t.Errorf("disconnected because of %v", e.Err)
		}
		actortest.Next[*rdma.Closed](c.server)
	})
}

// An actor of a killed program does not run, neither for its timers nor for messages from others,
// until the test is over.
func TestCrashStopsActors(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		ticks := 0
		far := w.Host("mem1", "10.0.0.2")
		pid := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started, string:
				ticks++
				rdma.After(ctx, time.Second, "tick")
			}
		}, far.OnLoop()))
		w.Advance(10 * time.Second)
		if ticks != 11 {
			t.Fatalf("%d ticks in 10 s", ticks)
		}
		w.Freeze("mem1")
		w.Advance(10 * time.Second)
		if ticks != 11 {
			t.Errorf("%d ticks of the frozen", ticks-11)
		}
		w.Thaw("mem1")
		w.Advance(1500 * time.Millisecond)
		if ticks != 13 {
			t.Errorf("%d ticks after the thaw, want the one that was due and another", ticks-11)
		}
		w.Crash("mem1")
		w.System().Root.Send(pid, "you there?")
		w.Advance(10 * time.Second)
		if ticks != 13 {
			t.Errorf("%d ticks of the dead", ticks-13)
		}
	})
}

// The transport does not notice that a program is frozen. When the program goes on it gets
// everything.
func TestFreeze(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		const messages = 10
		w.Delay(time.Millisecond)
		c := converse(w)
		w.Freeze("mem1")
		for i := range messages {
			c.server.Request(c.passive, rdma.NewSend([]byte{byte(i)}))
		}
		c.client.Silent(30 * time.Second)
		c.server.Silent(0)
		w.Thaw("mem1")
		for i := range messages {
			if m := actortest.Next[*rdma.Received](c.client); m.Data[0] != byte(i) {
				t.Errorf("message %d came as number %d", m.Data[0], i)
			}
		}
		c.client.Request(c.active, rdma.NewSend([]byte("back")))
		actortest.Next[*rdma.Received](c.server)
	})
}

// A program is frozen with all its loops, and dials that come are answered when it goes on.
func TestFreezeSeveralLoops(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		far := w.Host("mem1", "10.0.0.2")
		accept := actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *rdma.ConnectRequest:
				ctx.Respond(&rdma.Accept{})
			case *rdma.Received:
				ctx.Respond(rdma.NewSend([]byte("echo")))
			}
		})
		s, c := w.Probe(), w.Probe()
		s.Request(far.CreateID(s.PID(), rdma.IDConfig{Handler: accept}), &rdma.Serve{Addr: ":7471"})
		actortest.Next[*rdma.Listening](s)
		w.Freeze("mem1")
		var ids []*actor.PID
		for range 4 {
			ids = append(ids, w.CreateID(c.PID()))
			c.Request(ids[len(ids)-1], &rdma.Dial{Addr: "10.0.0.2:7471"})
		}
		c.Silent(3 * time.Second)
		w.Thaw("mem1")
		for range ids {
			actortest.Next[*rdma.Established](c)
		}
		for _, id := range ids {
			c.Request(id, rdma.NewSend(nil))
			actortest.Next[*rdma.Received](c)
		}
		w.Crash("mem1")
		ends := make(map[string]int)
		for range 2 * len(ids) {
			ends[fmt.Sprintf("%T", actortest.Next[rdma.Event](c))]++
		}
		if ends["*cmid.Disconnected"] != len(ids) || ends["*cmid.Closed"] != len(ids) {
			t.Errorf("%d connections have ended with %v", len(ids), ends)
		}
	}, actortest.Config{Runtime: rdma.Config{Loops: make([]eventloop.Config, 2)}})
}

// If a link that was cut is healed in time, messages sent until then arrive in order.
func TestCutAndHeal(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		c := converse(w)
		for round := range 3 {
			w.Cut("mem0", "mem1")
			for i := range 5 {
				c.client.Send(c.active, rdma.NewSend(fmt.Appendf(nil, "%d %d", round, i)))
				c.server.Send(c.passive, rdma.NewSend(fmt.Appendf(nil, "%d %d", round, i)))
			}
			c.client.Silent(12 * time.Second)
			c.server.Silent(0)
			w.Heal("mem1", "mem0")
			for i := range 5 {
				for _, p := range []*actortest.Probe{c.client, c.server} {
					if m := actortest.Next[*rdma.Received](p); string(m.Data) != fmt.Sprint(round, i) {
						t.Errorf("got %q, want %d %d", m.Data, round, i)
					}
				}
			}
		}
	})
}

// A dial over a link that is cut fails as a dial to an unused address does.
func TestCutDial(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		w.Host("mem1", "10.0.0.2")
		w.Host("mem2", "10.0.0.3")
		w.Cut("mem0", "mem1")
		p := w.Probe()
		id := w.CreateID(p.PID())
		p.Request(id, &cmid.ResolveAddr{Dst: rdma.MustAddr("10.0.0.2:7471"), Timeout: 3 * time.Second})
		actortest.Next[*rdma.AddrError](p)
		p.Request(id, &cmid.ResolveAddr{Dst: rdma.MustAddr("10.0.0.3:7471"), Timeout: 3 * time.Second})
		actortest.Next[*cmid.AddrResolved](p)
	})
}

// A stream whose bytes do not get through ends after 30 s. Its other end notices that when it
// sends.
func TestCutStream(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		// only this test sends messages
		c := converse(w, rdma.IDConfig{Keepalive: rdma.Keepalive{Idle: -1}})
		w.Cut("mem0", "mem1")
		begin := w.Elapsed()
		c.server.Send(c.passive, rdma.NewSend([]byte("lost")))
		if e := actortest.Next[*rdma.Disconnected](c.server); !errors.Is(e.Err, unix.ETIMEDOUT) {
			t.Errorf("disconnected because of %v", e.Err)
		}
		actortest.Next[*rdma.Closed](c.server)
		if d := w.Elapsed() - begin; d != 30*time.Second {
			t.Errorf("TCP has given up after %v", d)
		}
		w.Heal("mem0", "mem1")
		c.client.Silent(time.Second)
		c.client.Send(c.active, rdma.NewSend([]byte("you there?")))
		if e := actortest.Next[*rdma.Disconnected](c.client); !errors.Is(e.Err, unix.ECONNRESET) {
			t.Errorf("disconnected because of %v", e.Err)
		}
		actortest.Next[*rdma.Closed](c.client)
	})
}

// A program that was stopped answers no probe, and is given up by its peers; the transport has
// noticed nothing.
func TestFreezeIsNoticed(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		c := converse(w)
		c.server.Silent(time.Hour)
		w.Freeze("mem1")
		begin := w.Elapsed()
		e := actortest.Next[*rdma.Disconnected](c.server)
		if !errors.Is(e.Err, rdma.ErrPeerLost) || !errors.Is(e.Err, unix.ETIMEDOUT) {
			t.Errorf("disconnected because of %v", e.Err)
		}
		if d := w.Elapsed() - begin; d > 51*time.Second {
			t.Errorf("it was noticed after %v", d)
		}
		actortest.Next[*rdma.Closed](c.server)
		w.Thaw("mem1")
		actortest.Next[*rdma.Disconnected](c.client)
		actortest.Next[*rdma.Closed](c.client)
	})
}

// A machine that loses its power sends nothing.
func TestPowerLoss(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		c := converse(w)
		w.Cut("mem0", "mem1")
		w.Crash("mem1")
		c.server.Silent(10 * time.Second)
	})
}
