package actortest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

const server = "10.0.0.1:7471"

// flavors runs a test on both kinds of device.
func flavors(t *testing.T, test func(t *testing.T, w *actortest.World), cfg ...actortest.Config) {
	t.Helper()
	for name, infiniBand := range map[string]bool{"iWARP": false, "InfiniBand": true} {
		t.Run(name, func(t *testing.T) {
			c := one(cfg)
			c.InfiniBand = infiniBand
			actortest.Run(t, c, func(w *actortest.World) { test(t, w) })
		})
	}
}

// one returns the optional config, or the zero one.
func one[C any](given []C) (c C) {
	if len(given) > 0 {
		c = given[0]
	}
	return c
}

// conversation is a connection from another machine.
type conversation struct {
	client, server         *actortest.Probe
	active, passive, heard *actor.PID // identifiers; heard is the listener
}

// converse connects from 10.0.0.2, on device mem1, to 10.0.0.1.
func converse(w *actortest.World, cfg ...rdma.IDConfig) conversation {
	c := conversation{client: w.Probe(), server: w.Probe()}
	c.heard = w.CreateID(c.server.PID(), one(cfg))
	c.server.Request(c.heard, &rdma.Serve{Addr: server})
	actortest.Next[*rdma.Listening](c.server)
	c.active = w.Host("mem1", "10.0.0.2").CreateID(c.client.PID(), one(cfg))
	c.client.Request(c.active, &rdma.Dial{Addr: server, PrivateData: []byte("hi")})
	r := actortest.Next[*rdma.ConnectRequest](c.server)
	if string(r.PrivateData) != "hi" || r.Peer.Addr().String() != "10.0.0.2" {
		w.T().Errorf("the request is from %v and says %q", r.Peer, r.PrivateData)
	}
	c.passive = c.server.Sender()
	c.server.Request(c.passive, &rdma.Accept{PrivateData: []byte("ho")})
	actortest.Next[*rdma.Established](c.server)
	if e := actortest.Next[*rdma.Established](c.client); string(e.PrivateData) != "ho" {
		w.T().Errorf("the answer says %q", e.PrivateData)
	}
	return c
}

func TestConnectEchoDisconnect(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		w.Delay(time.Second)
		c := converse(w)
		connected := w.Elapsed()
		for i := range 3 {
			text := fmt.Sprint("message ", i)
			c.client.Send(c.active, rdma.NewSend([]byte(text)))
			c.server.Request(c.passive, rdma.NewSend(actortest.Next[*rdma.Received](c.server).Data))
			if m := actortest.Next[*rdma.Received](c.client); string(m.Data) != text || c.client.Sender() != c.active {
				t.Errorf("got %q from %v, want %q", m.Data, c.client.Sender(), text)
			}
		}
		if d := w.Elapsed() - connected; d != 6*time.Second {
			t.Errorf("three messages there and back took %v, at a second each way", d)
		}
		c.client.Request(c.active, &rdma.Disconnect{})
		actortest.Next[*rdma.Disconnected](c.client)
		actortest.Next[*rdma.Disconnected](c.server)
		if e := actortest.Next[*rdma.Closed](c.client); e.Err != nil || e.Delivered+e.Unknown != 3 || e.Unsent != 0 {
			t.Errorf("the client's end: %+v", e)
		}
		if e := actortest.Next[*rdma.Closed](c.server); e.Err != nil || e.Unsent != 0 {
			t.Errorf("the server's end: %+v", e)
		}
		if a, p, l := w.State(c.active), w.State(c.passive), w.State(c.heard); a != states.Destroying || p != states.Destroying || l != states.Listening {
			t.Errorf("states %v, %v, %v", a, p, l)
		}
		c.client.Silent(time.Hour)
		c.server.Silent(time.Hour)
	})
}

func TestDeviceRemoval(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		c := converse(w)
		w.RemoveDevice("mem1")
		if e := actortest.Next[*rdma.DeviceRemoval](c.client); e.Device != "mem1" {
			t.Errorf("removed: %q", e.Device)
		}
		if e := actortest.Next[*rdma.Closed](c.client); !errors.Is(e.Err, unix.ENODEV) {
			t.Errorf("closed because of %v", e.Err)
		}
		if s := w.State(c.active); s != states.Destroying {
			t.Errorf("the identifier is %v", s)
		}
		actortest.Next[*rdma.Disconnected](c.server) // the other machine's device is still there
		actortest.Next[*rdma.Closed](c.server)

		w.AddDevice("mem1")
		p := w.Probe()
		id := w.CreateID(p.PID())
		p.Request(id, &cmid.ResolveAddr{Dst: rdma.MustAddr("10.0.0.2:7471")})
		actortest.Next[*cmid.AddrResolved](p)
	})
}

func TestOwnersDeath(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		c := converse(w)
		w.System().Root.Stop(c.client.PID())
		actortest.Next[*rdma.Disconnected](c.server)
		if s := w.State(c.active); s != states.Destroying {
			t.Errorf("its owner is dead, and the identifier is %v", s)
		}
		c.client.Silent(time.Minute)
	})
}

// If a server reads nothing the client uses up its credits, then its queue, and then gets
// ErrQueueFull.
func TestSlowReader(t *testing.T) {
	const credits, queue, size = 4, 8, 1 << 10
	flavors(t, func(t *testing.T, w *actortest.World) {
		c := converse(w, rdma.IDConfig{MaxMessage: size, Credits: credits})
		sent := 0
		for range 10 * (credits + queue) {
			c.client.Request(c.active, rdma.NewSend(fmt.Appendf(make([]byte, 0, size), "%*d", size, sent)))
			w.Wait()
			sent++
		}
		if n := info(w, c.passive).Credits.Unfreed; n != credits {
			t.Errorf("the server keeps %d messages, it has allowed %d", n, credits)
		}
		full := sent - credits - queue
		for range full {
			if e := actortest.Next[*rdma.SendFailed](c.client); !errors.Is(e, rdma.ErrQueueFull) || e.Bytes != size {
				t.Fatal(e)
			}
		}
		c.client.Silent(time.Hour) // no Writable without a reader
		for i := range credits + queue {
			if m := actortest.Next[*rdma.Received](c.server); len(m.Data) != size || string(m.Data) != fmt.Sprintf("%*d", size, i) {
				t.Fatalf("message %d is %q", i, m.Data)
			}
		}
		actortest.Next[*rdma.Writable](c.client)
		c.server.Silent(time.Hour)
		c.client.Request(c.active, &rdma.Close{})
		e := actortest.Next[*rdma.Closed](c.client) // the server has kept one message until then
		if !errors.Is(e.Err, unix.ETIMEDOUT) || e.Unknown == 0 || e.Delivered+e.Unknown != credits+queue || e.Unsent != uint64(full) {
			t.Errorf("%+v", e)
		}
	}, actortest.Config{Runtime: rdma.Config{Limits: rdma.Limits{SendQueue: queue, ReceiveMemory: 256 << 10}}})
}

// info returns the report of the test's first machine about an identifier.
func info(w *actortest.World, id *actor.PID) rdma.IDInfo {
	for _, i := range w.Runtime().Inspect() {
		if i.PID.Equal(id) {
			return i
		}
	}
	return rdma.IDInfo{}
}

// If its context ends an identifier is destroyed with the context's cause, whatever its state is,
// and nothing is left.
func TestCancelAtEveryStep(t *testing.T) {
	cause := errors.New("enough")
	accept := actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
			ctx.Respond(&rdma.Accept{})
		}
	})
	met := make(map[states.State]bool)
	for step := range 12 {
		flavors(t, func(t *testing.T, w *actortest.World) {
			w.Delay(300 * time.Millisecond)
			p := w.Probe()
			p.Request(w.CreateID(p.PID(), rdma.IDConfig{Handler: accept}), &rdma.Serve{Addr: server})
			actortest.Next[*rdma.Listening](p)
			ctx, cancel := context.WithCancelCause(w.T().Context())
			defer cancel(nil)
			c := w.Probe()
			id := w.Host("mem1", "10.0.0.2").CreateID(c.PID(), rdma.IDConfig{Context: ctx})
			c.Request(id, &rdma.Dial{Addr: server})
			w.Advance(time.Duration(step) * 150 * time.Millisecond)
			at := w.State(id)
			met[at] = true
			cancel(cause)
			w.Wait() // context.AfterFunc reports it on a goroutine
			if s := w.State(id); s != states.Destroying {
				t.Errorf("cancelled while %v, it is %v", at, s)
			}
			ev := actortest.Next[rdma.Event](c)
			for ev.Kind() != states.KindClosed {
				ev = actortest.Next[rdma.Event](c)
			}
			if e := ev.(*rdma.Closed); !errors.Is(e.Err, cause) {
				t.Errorf("cancelled while %v, closed because of %v", at, e.Err)
			}
			c.Silent(time.Minute)
		})
	}
	for _, s := range []states.State{states.AddrQuery, states.RouteQuery, states.Connecting, states.Connected} {
		if !met[s] {
			t.Errorf("nothing was cancelled while %v: %v", s, met)
		}
	}
}

func TestRunOut(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		w.RunOut(unix.EMFILE)
		p := w.Probe()
		id := w.CreateID(p.PID())
		if e := actortest.Next[*rdma.Closed](p); !errors.Is(e.Err, unix.EMFILE) || p.Sender() != id {
			t.Errorf("%v closed because of %v", p.Sender(), e.Err)
		}
		p.Request(id, &cmid.BindAddr{Addr: rdma.MustAddr(server)})
		actortest.Next[*actor.DeadLetterResponse](p)
		w.RunOut(0)
		p.Request(w.CreateID(p.PID()), &cmid.BindAddr{Addr: rdma.MustAddr(server)})
		actortest.Next[*cmid.Bound](p)
	})
}

// An unanswered request is rejected after eight seconds, or after the listener's time.
func TestAcceptTimeout(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		peer := w.Host("mem1", "10.0.0.2")
		for port, after := range map[string]time.Duration{":7471": 8 * time.Second, ":7472": 4 * time.Second} {
			s, c := w.Probe(), w.Probe()
			var cfg rdma.IDConfig
			if after != 8*time.Second {
				cfg.AcceptTimeout = after
			}
			s.Request(w.CreateID(s.PID(), cfg), &rdma.Serve{Addr: port})
			actortest.Next[*rdma.Listening](s)
			c.Request(peer.CreateID(c.PID()), &rdma.Dial{Addr: "10.0.0.1" + port})
			actortest.Next[*rdma.ConnectRequest](s)
			id, asked := s.Sender(), w.Elapsed()
			if e := actortest.Next[*rdma.Closed](s); !errors.Is(e.Err, unix.ETIMEDOUT) || s.Sender() != id {
				t.Errorf("%v closed because of %v", s.Sender(), e.Err)
			}
			if d := w.Elapsed() - asked; d != after {
				t.Errorf("rejected after %v, want %v", d, after)
			}
			actortest.Next[*rdma.Rejected](c) // before its own ten seconds are over
			actortest.Next[*rdma.Closed](c)
		}
	})
}
