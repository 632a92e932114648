package workload

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

var (
	from  = flag.Uint64("from", 0, "the first seed")
	seeds = flag.Uint64("seeds", 20, "how many seeds")
	print = flag.Bool("print", false, "print the trace of a seed that fails")
)

// play runs a kind of workload alone, without faults.
func play(t *testing.T, k *Kind, seed uint64, kind world.Kind, print func(string)) world.Result {
	return world.Run(t, world.Config{Seed: seed, Kind: kind, Print: print}, func(w *world.World) {
		r := w.Rand("plan")
		d := Draw{Rand: r, Has: make(map[string]bool), Machines: 2 + r.IntN(3), Time: 2 * time.Second}
		for _, v := range k.Verbs {
			d.Has[v] = r.IntN(2) == 0
		}
		ops := k.Draw(d, 1+r.IntN(30))
		e := &Env{World: w, Name: k.Name, Port: 7000, Rand: rand.New(rand.NewPCG(seed, 1)), Patience: time.Minute}
		e.Config.Loops = make([]eventloop.Config, 1+r.IntN(2))
		for m := range d.Machines {
			e.Machines = append(e.Machines, w.Machine(fmt.Sprintf("m%d", m), fmt.Sprintf("10.0.0.%d/24", m+1)))
		}
		for _, o := range ops {
			w.Trace("%v", o)
		}
		x := k.New(e, ops)
		x.Start()
		e.Rest()
		if !w.RunUntil(d.Time+e.Patience, x.Done) {
			w.Fail("%s is not done", k.Name)
			return
		}
		x.Check()
	})
}

// playAll runs a kind of workload with many seeds, each twice, and checks that there is no verdict,
// and that the traces are equal.
func playAll(t *testing.T, k *Kind) {
	for seed := *from; seed < *from+*seeds; seed++ {
		kind := []world.Kind{world.Embedded, world.Twin, world.TwinSoftRoCE, world.TwinSIW}[seed%4]
		var hash [2]uint64
		var lines [2][]string
		for i := range 2 {
			r := play(t, k, seed, kind, func(s string) {
				if !strings.HasPrefix(s, world.Aside) || *print {
					lines[i] = append(lines[i], s)
				}
			})
			if r.Failure != "" {
				t.Errorf("seed %d, %v: %s", seed, kind, r.Failure)
				if *print {
					t.Log(strings.Join(lines[i], "\n"))
				}
				break
			}
			hash[i] = r.Hash
		}
		if hash[0] != hash[1] && hash[1] != 0 {
			differ(t, seed, lines)
		}
	}
}

func TestCalls(t *testing.T) { playAll(t, Calls) }

func TestStreams(t *testing.T) { playAll(t, Streams) }
