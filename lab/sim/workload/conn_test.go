package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// playConnections plays one world of small limits, without faults.
func playConnections(t *testing.T, seed uint64, kind world.Kind, print func(string)) world.Result {
	return world.Run(t, world.Config{Seed: seed, Kind: kind, Print: print}, func(w *world.World) {
		r := w.Rand("plan")
		d := Draw{Rand: r, Has: make(map[string]bool), Machines: 2 + r.IntN(2), Time: 20 * time.Second}
		for _, v := range connVerbs {
			d.Has[v] = r.IntN(3) > 0
		}
		ops := drawConnections(d, 10+r.IntN(60))
		e := &Env{World: w, Name: "connections", Port: 7000, Rand: rand.New(rand.NewPCG(seed, 1)), Patience: 3 * time.Minute}
		e.Config = scarce(r)
		for m := range d.Machines {
			e.Machines = append(e.Machines, w.Machine(fmt.Sprintf("m%d", m), fmt.Sprintf("10.0.0.%d/24", m+1)))
		}
		w.Trace("limits: %+v, keepalive %v, %d loops", e.Config.Limits, e.Config.Keepalive, len(e.Config.Loops))
		for _, o := range ops {
			w.Trace("plan: %v", o)
		}
		c := newConnections(e, ops).(*connections)
		c.Start()
		e.Rest()
		if !w.RunUntil(d.Time+e.Patience, c.Done) && !w.Failed() {
			w.Fail("not done: %q", c.listOutstanding())
			return
		}
		c.Check()
	})
}

// scarce draws small limits.
func scarce(r *rand.Rand) rdma.Config {
	c := rdma.Config{Loops: make([]eventloop.Config, 1+r.IntN(3))}
	l := &c.Limits
	for _, x := range []struct {
		to        *int
		low, high int
	}{{&l.Mailbox, 1, 20}, {&l.SendQueue, 1, 8}, {&l.ReceiveMemory, 1 << 20, 8 << 20}, {&l.SendMemory, 512 << 10, 4 << 20}, {&l.PendingRequests, 1, 4}, {&l.Connections, 4, 16}} {
		if n := x.low + r.IntN(x.high-x.low+1); r.IntN(2) == 0 {
			*x.to = n
		}
	}
	if r.IntN(2) == 0 {
		c.Keepalive = rdma.Keepalive{Idle: time.Duration(1+r.IntN(10)) * time.Second}
	}
	return c
}

// TestConnections plays worlds twice each, and checks that there is no verdict, and that the traces
// are equal.
func TestConnections(t *testing.T) {
	for _, kind := range []world.Kind{world.Embedded, world.Twin, world.TwinSoftRoCE, world.TwinSIW} {
		t.Run(kind.String(), func(t *testing.T) {
			for seed := *from; seed < *from+*seeds; seed++ {
				var lines [2][]string
				var hash [2]uint64
				for n := range 2 {
					r := playConnections(t, seed, kind, func(s string) {
						if n == 0 && *print {
							t.Log(s)
						}
						if !strings.HasPrefix(s, world.Aside) {
							lines[n] = append(lines[n], s)
						}
					})
					if r.Failure != "" {
						t.Fatalf("seed %d: %s", seed, r.Failure)
					}
					hash[n] = r.Hash
				}
				if hash[0] != hash[1] {
					differ(t, seed, lines)
				}
			}
		})
	}
}

// differ reports where two runs differ.
func differ(t *testing.T, seed uint64, lines [2][]string) {
	for i, l := range lines[0] {
		if i >= len(lines[1]) || l != lines[1][i] {
			from := max(0, i-5)
			t.Fatalf("seed %d: two runs differ at line %d:\n%s\n\n%s", seed, i,
				strings.Join(lines[0][from:min(i+5, len(lines[0]))], "\n"), strings.Join(lines[1][from:min(i+5, len(lines[1]))], "\n"))
		}
	}
	t.Fatalf("seed %d: the second run goes on after line %d:\n%s", seed, len(lines[0]), lines[1][len(lines[0])])
}
