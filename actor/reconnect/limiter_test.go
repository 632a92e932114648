package reconnect_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// Unanswered dials keep their places until they fail. The others wait, and get places in the order
// in which they came. An actor that ends leaves the line.
func TestLine(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		w.Silence("10.0.0.2")
		l := reconnect.NewLimiter(3, 1000)
		var links []*actor.PID
		var order []string
		owner := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if d, ok := ctx.Message().(*reconnect.Down); ok && d.Generation == 1 {
				order = append(order, ctx.Sender().Id)
			}
		}, w.Runtime().OnLoop()))
		w.T().Cleanup(func() { _ = w.System().Root.StopFuture(owner).Wait() })
		for i := range 12 {
			links = append(links, reconnect.Spawn(w.Runtime(), owner, reconnect.Config{
				Dial: rdma.Dial{Addr: there}, Limiter: l, Rand: rand.New(rand.NewPCG(uint64(i), 0)),
			}))
			w.Wait()
		}
		busy := func() {
			t.Helper()
			w.Advance(10 * time.Millisecond) // the rate's
			if dialling, _ := l.Inspect(); dialling != 3 || len(w.Runtime().Inspect()) != 3 {
				t.Errorf("%d dials, %d identifiers", dialling, len(w.Runtime().Inspect()))
			}
		}
		busy()
		w.System().Root.Stop(links[5])
		w.System().Root.Stop(links[3]) // the first in the line
		busy()
		want := slices.Delete(slices.Clone(links[3:]), 0, 1)
		want = slices.Delete(want, 1, 2)
		_, waiting := l.Inspect()
		if !slices.EqualFunc(waiting, want, func(a reconnect.Waiting, b *actor.PID) bool { return a.Who.Equal(b) }) {
			t.Errorf("the line is %v, want %v", waiting, want)
		}
		w.System().Root.Stop(links[0]) // in mid-dial
		busy()
		for range 4 {
			w.Advance(2500 * time.Millisecond)
		}
		var names []string
		for _, p := range slices.Concat(links[:3], want) {
			names = append(names, p.Id)
		}
		if !slices.Equal(order, names) {
			t.Errorf("dialled in the order %v, want %v", order, names)
		}
	})
}

// Without a separate Limiter an actor waits in its runtime's line.
func TestRuntimesLine(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		w.Silence("10.0.0.2")
		owner := w.Probe()
		for range 100 {
			reconnect.Spawn(w.Runtime(), owner.PID(), reconnect.Config{Dial: rdma.Dial{Addr: there}})
		}
		w.Wait()
		if n := len(w.Runtime().Inspect()); n != 64 {
			t.Errorf("%d dials at once", n)
		}
	})
}

// Dials to peers that do not answer have places for as long as they last. A dial to another
// address does not wait for them.
func TestSilentPeersHoldUpNobodyElse(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		a, b := pair(w, true)
		w.Host("mem2", "10.0.0.3")
		w.Silence("10.0.0.3")
		owner := w.Probe()
		for range 200 {
			reconnect.Spawn(w.Runtime(), owner.PID(), reconnect.Config{Dial: rdma.Dial{Addr: "10.0.0.3:7471"}})
		}
		w.Advance(time.Second)
		a.listen()
		b.listen()
		b.dial()
		a.dial()
		w.Advance(2 * time.Second)
		a.diary.read(w, func() {
			if a.diary.up == nil {
				t.Error("it waits for those that dial somebody else")
			}
		})
		if dialling, waiting := reconnect.LimiterOf(w.Runtime()).Inspect(); dialling != 64 || len(waiting) != 200-64 {
			t.Errorf("%d dial and %d wait", dialling, len(waiting))
		}
	})
}

// If the first in the line does not use its turn, for example because its loop is blocked, it
// delays the others for no longer than a second.
func TestFirstInTheLineDoesNotCome(t *testing.T) {
	l := reconnect.NewLimiter(1, 1000)
	now := time.Now()
	woken := make(map[string]int)
	ticket := func(addr string) *reconnect.Ticket { return l.Ticket(nil, addr, func() { woken[addr]++ }) }
	dialling, blocked, second, third := ticket("1"), ticket("1"), ticket("1"), ticket("1")
	enter := func(what string, k *reconnect.Ticket, want bool) (after time.Duration) {
		t.Helper()
		ok, after := k.Enter(now)
		if ok != want {
			t.Fatalf("%s: its turn %t, want %t", what, ok, want)
		}
		return after
	}
	enter("the only one", dialling, true)
	for _, k := range []*reconnect.Ticket{blocked, second, third} {
		if after := enter("no place", k, false); after != 0 {
			t.Errorf("without a place it is to ask again after %v", after)
		}
	}
	dialling.Done()
	after := enter("behind one who was just woken", second, false)
	if after <= 0 {
		t.Fatal("the second does not learn when to ask again")
	}
	if again := enter("the third", third, false); again != 0 {
		t.Errorf("the third is to ask again after %v: only one of those behind is", again)
	}
	now = now.Add(after)
	enter("the second, when the first has not come", second, true)
	second.Done()
	now = now.Add(10 * time.Millisecond) // the rate's
	enter("the third, while the first does not come", third, true)
	third.Done()
	now = now.Add(10 * time.Millisecond)
	enter("the first, at last", blocked, true)
	blocked.Done()
	if woken["1"] == 0 {
		t.Error("nobody was woken")
	}
}
