package actor

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// A Manual owner does the work that the man pages demand, and nothing is done for it.
func TestManual(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		c := w.rt.CreateID(client.pid, IDConfig{Manual: true})
		client.send(c, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
		next[*cmid.AddrResolved](client)
		client.send(c, &cmid.ResolveRoute{})
		next[*cmid.RouteResolved](client)
		client.send(c, &Connect{})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		if w.flavor&states.IWARP == 0 {
			next[*cmid.ConnectResponse](client)
			settle()
			if got, _ := w.state(c); got != states.Responded {
				w.Errorf("before Establish it is %v", got)
			}
			client.send(c, &cmid.Establish{})
		}
		next[*Established](client)
		next[*Established](server)
		server.send(s, &Disconnect{})
		next[*Disconnected](client)
		time.Sleep(time.Second)
		settle()
		if _, ok := w.state(c); !ok {
			w.Fatal("destroyed, although the owner is Manual")
		}
		if w.flavor&states.IWARP == 0 {
			client.send(c, &Disconnect{})
			next[*Done](client)
		}
		client.send(c, &DestroyID{})
		for {
			if _, ok := client.any().msg.(*Closed); ok {
				break
			}
		}
	})
}

// A Close ends a Manual identifier also if its connection ends first, in whatever way.
func TestManualCloseAtTheEnd(t *testing.T) {
	ends := map[string]struct {
		also func(w *world, p pair) // in addition to the Close
		want error
	}{
		"alone":           {also: func(*world, pair) {}},
		"its disconnect":  {also: func(_ *world, p pair) { p.server.send(p.s, &Disconnect{}) }},
		"peer disconnect": {also: func(_ *world, p pair) { p.client.send(p.c, &Disconnect{}) }},
		"peer destroy":    {also: func(_ *world, p pair) { p.client.send(p.c, &DestroyID{}) }},
		"removal":         {also: func(w *world, _ pair) { w.f.RemoveDevice("mem1") }, want: unix.ENODEV},
		"broken": {also: func(w *world, p pair) {
			w.onLoop(w.far, func(l *loop) {
				for it := range l.ids {
					if it.pid.Equal(p.s) {
						it.BreakOff(&ProtocolError{What: "made up"})
					}
				}
			})
		}, want: &ProtocolError{What: "made up"}},
	}
	for name, end := range ends {
		for _, disconnecting := range []bool{false, true} {
			for _, sends := range []int{0, 300} { // more than the peer accepts immediately
				t.Run(fmt.Sprintf("%s/%t/%d", name, disconnecting, sends), func(t *testing.T) {
					onAllKinds(t, func(w *world) {
						w.f.Delay(10 * time.Millisecond)
						p := pair{client: w.probe(), server: w.farProbe()}
						w.listen(p.server, IDConfig{Manual: true})
						p.c = w.rt.CreateID(p.client.pid, IDConfig{})
						p.client.send(p.c, &Dial{Addr: there + ":7471"})
						_, p.s = next[*ConnectRequest](p.server)
						p.server.send(p.s, &Accept{})
						next[*Established](p.server)
						next[*Established](p.client)
						for range sends {
							p.server.send(p.s, NewSend([]byte("x")))
						}
						if disconnecting {
							p.server.send(p.s, &Disconnect{})
						}
						begun := time.Now()
						p.server.send(p.s, &Close{})
						if end.want != nil { // what would overtake the Close
							settle()
						}
						end.also(w, p)
						all := until[*Closed](p.server)
						if took := time.Since(begun); took > time.Second {
							w.Errorf("it took %v", took)
						}
						err := all[len(all)-1].msg.(*Closed).Err
						// its queue pair is the owner's, so Close destroys it immediately
						if w.flavor&states.IWARP == 0 {
							return
						}
						if errors.Is(err, unix.ETIMEDOUT) || sends > 0 && !disconnecting && (err == nil) != (end.want == nil) {
							w.Errorf("closed: %v, want %v", err, end.want)
						}
						if k := kinds(all); !contains(k, "Disconnected") && !contains(k, "DeviceRemoval") {
							w.Errorf("the end was not reported: %s", k)
						}
					})
				})
			}
		}
	}
}

func TestManualReject(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		w.listen(server, IDConfig{Manual: true})
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		reject := &Reject{PrivateData: []byte("no")}
		server.send(s, reject)
		if d, _ := next[*Done](server); d.Command != reject {
			w.Errorf("done is %+v, want what was sent", d.Command)
		}
		server.send(s, &DestroyID{})
		next[*Closed](server)
	})
}

func TestPendingRequestsAreBounded(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		for range 3 {
			client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		}
		_, first := next[*ConnectRequest](server)
		next[*ConnectRequest](server)
		f, _ := next[*Rejected](client)
		if !contains(f.Error(), "too many requests or connections") || contains(f.Error(), "does not speak") || f.PrivateData != nil {
			w.Errorf("the client got %v, with the private data %q", f, f.PrivateData)
		}
		next[*Closed](client)
		settle()
		server.quiet()
		server.send(first, &Accept{})
		next[*Established](server)
		next[*Established](client)
		client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: there + ":7471"})
		next[*ConnectRequest](server)
	}, Config{Limits: Limits{PendingRequests: 2}})
}

// Owners on another loop, and off all loops: one FIFO each, and retained messages come back from
// anywhere.
func TestOwnersElsewhere(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys, Config{Loops: make([]eventloop.Config, 3)})
	for _, where := range []actor.PropsOption{onLoop(rt.loops[0]), onLoop(rt.loops[1]), rt.OffLoop()} {
		var releases sync.WaitGroup
		server, client := newProbe(t, sys, where, nil), newProbe(t, sys, onLoop(rt.loops[2]), nil)
		server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				m.Retain()
				releases.Go(m.Release)
			}
		})
		p := connect(t, rt, server, client)
		heir := newProbe(t, sys, onLoop(rt.loops[1]), nil)
		client.send(p.c, &Handover{To: heir.pid})
		next[*Done](client)
		const n = 500
		for i := range n {
			s := NewSend(fmt.Append(nil, i))
			s.Notify = true
			heir.send(p.c, s)
			if i%100 == 99 { // the queue holds 256
				for range 100 {
					next[*Sent](heir)
				}
			}
		}
		for i := range n {
			if g := server.any(); g.data != fmt.Sprint(i) {
				t.Fatalf("message %d is %v", i, g)
			}
		}
		heir.send(p.c, &Close{})
		end := until[*Closed](heir)
		if c := end[len(end)-1].msg.(*Closed); c.Delivered != n {
			t.Errorf("the end: %v", end)
		}
		releases.Wait()
		stop(t, sys, server.pid, client.pid, heir.pid)
	}
}
