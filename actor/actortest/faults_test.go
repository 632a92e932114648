package actortest_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
)

func TestSilenceEnds(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		w.Host("mem1", "10.0.0.2")
		p := w.Probe()
		id := w.CreateID(p.PID())
		resolve := &cmid.ResolveAddr{Dst: rdma.MustAddr("10.0.0.2:7471"), Timeout: 3 * time.Second}
		w.Silence("10.0.0.2")
		p.Request(id, resolve)
		actortest.Next[*rdma.AddrError](p)
		if w.Elapsed() != 3*time.Second {
			t.Errorf("failed after %v", w.Elapsed())
		}
		w.Unsilence("10.0.0.2")
		p.Request(id, resolve)
		actortest.Next[*cmid.AddrResolved](p)
	})
}

func TestDrop(t *testing.T) {
	for kind, lost := range map[cmidtest.Message]int{cmidtest.MsgREQ: 1, cmidtest.MsgREP: 2} {
		actortest.Run(t, actortest.Config{InfiniBand: true, Runtime: rdma.Config{Timeouts: rdma.Timeouts{Connect: time.Minute}}}, func(w *actortest.World) {
			w.Drop(kind, lost)
			converse(w, rdma.IDConfig{AcceptTimeout: time.Minute})
			if w.Elapsed() == 0 {
				t.Error("a request that was lost was not sent again")
			}
		})
	}
}

func TestLatency(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		w.Latency("10.0.0.2", time.Second)
		c := converse(w)
		connected := w.Elapsed()
		if connected < 2*time.Second {
			t.Errorf("a request and a reply took %v, at a second each", connected)
		}
		c.client.Send(c.active, rdma.NewSend(nil))
		actortest.Next[*rdma.Received](c.server)
		if d := w.Elapsed() - connected; d != time.Second {
			t.Errorf("a message took %v", d)
		}
		p := w.Probe()
		// on one machine, whose latency has not changed
		p.Request(w.CreateID(p.PID()), &rdma.Dial{Addr: server})
		actortest.Next[*rdma.ConnectRequest](c.server)
		if d := w.Elapsed() - connected; d != time.Second {
			t.Errorf("another address took %v", d-time.Second)
		}
	})
}

func TestDisconnect(t *testing.T) {
	flavors(t, func(t *testing.T, w *actortest.World) {
		c := converse(w)
		w.Disconnect(c.active)
		for _, p := range []*actortest.Probe{c.client, c.server} {
			if e := actortest.Next[*rdma.Disconnected](p); !errors.Is(e.Err, rdma.ErrPeerLost) || !errors.Is(e.Err, unix.ECONNRESET) {
				t.Errorf("disconnected because of %v", e.Err)
			}
		}
		actortest.Next[*rdma.Closed](c.client)
		actortest.Next[*rdma.Closed](c.server)
	})
}

// trace notes everything that an Observer gets.
type trace struct {
	mu    sync.Mutex
	lines []string
}

func (tr *trace) add(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, fmt.Sprintf(format, args...))
}

func (tr *trace) Transition(id *actor.PID, _ rdma.Handle, from, to rdma.State) {
	tr.add("%s %v -> %v", id.Id, from, to)
}

func (tr *trace) Event(id *actor.PID, ev rdma.Event) {
	if e, ok := ev.(*rdma.Established); ok {
		tr.add("%s between %v and %v", id.Id, e.Local, e.Peer)
	}
	tr.add("%s %T", id.Id, ev)
}

func (tr *trace) Credit(id *actor.PID, _ rdma.Handle, c rdma.Credits) {
	tr.add("%s %+v", id.Id, c)
}

func (tr *trace) Moved(id *actor.PID, _ rdma.Handle, from, to string) {
	tr.add("%s %s %s", id.Id, from, to)
}

// traced returns what happens on one machine when its client is disconnected while messages are on
// their way.
func traced(t *testing.T, seed uint64, reorder bool) []string {
	t.Helper()
	const messages = 20 // fewer than there are credits
	var tr trace
	actortest.Run(t, actortest.Config{Seed: seed, InfiniBand: true, Runtime: rdma.Config{Observer: &tr}}, func(w *actortest.World) {
		w.Reorder(reorder)
		s, c := w.Probe(), w.Probe()
		s.Request(w.CreateID(s.PID()), &rdma.Serve{Addr: server})
		actortest.Next[*rdma.Listening](s)
		id := w.CreateID(c.PID())
		c.Request(id, &rdma.Dial{Addr: server})
		actortest.Next[*rdma.ConnectRequest](s)
		s.Request(s.Sender(), &rdma.Accept{})
		actortest.Next[*rdma.Established](s)
		actortest.Next[*rdma.Established](c)
		// All in one turn of the loop: otherwise it would be left to chance when the loop gets the
		// messages of this goroutine.
		w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); !ok {
				return
			}
			for i := range messages {
				ctx.Send(id, rdma.NewSend([]byte{byte(i)}))
			}
			ctx.Send(id, &rdma.Disconnect{})
		}, w.Runtime().OnLoop()))
		w.Wait()
		for i := range messages {
			if m := actortest.Next[*rdma.Received](s); m.Data[0] != byte(i) {
				t.Errorf("message %d came as number %d", m.Data[0], i)
			}
		}
		actortest.Next[*rdma.Disconnected](s)
		actortest.Next[*rdma.Closed](s)
	})
	return tr.lines
}

// Runs with one seed are the same. Owners get events in order, whatever the device reports first.
func TestSeedRepeatsARun(t *testing.T) {
	for _, reorder := range []bool{false, true} {
		a, b, other := traced(t, 1, reorder), traced(t, 1, reorder), traced(t, 2, reorder)
		if !slices.Equal(a, b) {
			t.Errorf("reorder %v: two runs with one seed differ:\n%q\n%q", reorder, a, b)
		}
		if slices.Equal(a, other) {
			t.Errorf("reorder %v: two seeds make one run", reorder)
		}
	}
	differ := 0
	for seed := range uint64(8) {
		if !slices.Equal(traced(t, seed, false), traced(t, seed, true)) {
			differ++
		}
	}
	if differ == 0 {
		t.Error("nothing was reordered")
	}
}
