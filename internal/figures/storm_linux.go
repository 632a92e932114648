package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/hostile"
)

const (
	stormGood     = 9900
	stormHostiles = 100
)

// stormResult is what a side reports; memory and fds are the server's.
type stormResult struct {
	Served, Ended       int
	P50, P99, All       time.Duration
	Before, Held, After uint64 // bytes of Go memory: before the storm, with all good peers connected, and when all have gone
	RSSPeak, RSSAfter   uint64 // bytes
	FDsBefore, FDsAfter int
	Slowest             time.Duration
}

// storm has 10,000 peers come at once, of which 1 % are hostile: a process for the good ones, one for the others, on one CPU, and the
// server on the other.
func storm() ([]row, error) {
	fmt.Printf("%d peers that dial at once, echo a message and stay, and %d hostile ones\n", stormGood, stormHostiles)
	server, err := startChild(0, "storm-server")
	if err != nil {
		return nil, err
	}
	defer server.stop()
	addr, err := server.line()
	if err != nil {
		return nil, err
	}
	var results [2]stormResult
	var peers [2]*child
	for i, role := range []string{"storm-client", "storm-hostile"} {
		if peers[i], err = startChild(1, role, addr); err != nil {
			return nil, err
		}
		defer peers[i].stop()
	}
	for i, p := range peers {
		if err := p.result(&results[i]); err != nil {
			return nil, err
		}
	}
	good, hostile := results[0], results[1]
	server.terminate()
	var s stormResult
	if err := server.result(&s); err != nil {
		return nil, err
	}
	fmt.Printf("served %d of %d good peers in %v, from dial to echo p50 %v, p99 %v\n", good.Served, stormGood, good.All, good.P50, good.P99)
	fmt.Printf("ended %d of %d hostile peers, the last after %v\n", hostile.Ended, stormHostiles, hostile.Slowest)
	fmt.Printf("server's Go memory: %s before, %s with all peers, %s after; RSS %s at the peak, %s after; fds %d before, %d after\n",
		mib(s.Before), mib(s.Held), mib(s.After), mib(s.RSSPeak), mib(s.RSSAfter), s.FDsBefore, s.FDsAfter)
	return []row{
		{"storm of 10,000, 1 % hostile: good peers served", strconv.Itoa(stormGood), strconv.Itoa(good.Served), good.Served != stormGood},
		{"the same: hostile peers ended", strconv.Itoa(stormHostiles), strconv.Itoa(hostile.Ended), hostile.Ended != stormHostiles},
		{
			"the same: server's memory", "bounded",
			fmt.Sprintf("RSS peak %s, after %s; fds %d, after %d", mib(s.RSSPeak), mib(s.RSSAfter), s.FDsBefore, s.FDsAfter),
			s.FDsAfter != s.FDsBefore,
		},
	}, nil
}

func mib(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// stormServer echoes, and measures itself when it is told to stop.
func stormServer([]string) error {
	var s stormResult
	up := 0
	err := serve(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.Listening:
			s.Before, s.FDsBefore = goMemory(), openFDs()
		case *rdma.Received:
			ctx.Respond(rdma.NewSend(m.Data))
			if up++; up == stormGood {
				s.Held = goMemory()
			}
		}
	}, nil)
	if err != nil {
		return err
	}
	for end := time.Now().Add(stormPatience); openFDs() > s.FDsBefore && time.Now().Before(end); { // sockets that saw their peer's FIN late
		time.Sleep(10 * time.Millisecond)
	}
	debug.FreeOSMemory()
	s.After, s.FDsAfter = goMemory(), openFDs()
	s.RSSPeak, s.RSSAfter = processMemory("VmHWM"), processMemory("VmRSS")
	return report(s)
}

func openFDs() int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic("BUG: /proc/self/fd: " + err.Error())
	}
	return len(d)
}

// processMemory reads a line of proc_pid_status(5), in bytes.
func processMemory(name string) uint64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic("BUG: /proc/self/status: " + err.Error())
	}
	_, rest, _ := strings.Cut(string(b), name+":")
	var kib uint64
	_, _ = fmt.Sscan(rest, &kib) // 0 says that it is not there
	return kib << 10
}

// stormClient dials everybody at once. Each connection stays until all have had their answer.
func stormClient(args []string) error {
	rt, system, err := openRuntime(rdma.WithTimeouts(rdma.Timeouts{Address: stormPatience, Route: stormPatience, Connect: stormPatience}))
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	payload := make([]byte, echoSize)
	began := make(map[string]time.Time, stormGood) // by PID
	var times []time.Duration
	var ids []*actor.PID
	over, closed, failed := 0, 0, 0
	var s stormResult
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		one := func() { // has its answer, or will never have it
			if over++; over < stormGood {
				return
			}
			slices.Sort(times)
			s.Served, s.All = len(times), time.Since(began[ids[0].Id])
			if len(times) > 0 {
				s.P50, s.P99 = times[len(times)/2], times[len(times)*99/100]
			}
			for _, id := range ids {
				ctx.Send(id, &rdma.DestroyID{})
			}
		}
		switch m := ctx.Message().(type) {
		case *actor.Started:
			for range stormGood {
				id := rt.CreateID(ctx.Self())
				ids, began[id.Id] = append(ids, id), time.Now()
				ctx.Request(id, &rdma.Dial{Addr: args[0]})
			}
		case *rdma.Established:
			ctx.Respond(rdma.NewSend(payload))
		case *rdma.Received:
			times = append(times, time.Since(began[ctx.Sender().Id]))
			one()
		case *rdma.Closed:
			if closed++; closed == stormGood {
				done <- report(s)
			}
		case rdma.Failure:
			if failed++; failed <= 3 { // they are alike
				fmt.Fprintln(os.Stderr, "storm: a good peer:", m)
			}
			one()
		}
	}, rt.OnLoop()))
	return <-done
}

// stormPatience is how long a peer waits for its turn, and how long a hostile one may live.
const stormPatience = 30 * time.Second

// stormHostile is every kind of hostile caller in turn, and counts those whom the server gets rid of.
func stormHostile(args []string) error {
	kinds := hostile.Callers()
	ended := make(chan time.Duration, stormHostiles)
	for i := range stormHostiles {
		go func() {
			kind := kinds[i%len(kinds)]
			ctx, cancel := context.WithTimeout(context.Background(), stormPatience)
			defer cancel()
			start := time.Now()
			if _, err := kind.Dial(ctx, args[0], hostile.Options{}); err != nil || ctx.Err() != nil {
				fmt.Fprintf(os.Stderr, "storm: hostile peer %d (%s): %v after %v\n", i, kind.Name, errors.Join(err, ctx.Err()), time.Since(start))
				ended <- 0
				return
			}
			ended <- time.Since(start)
		}()
	}
	var s stormResult
	for range stormHostiles {
		if d := <-ended; d > 0 {
			s.Ended++
			s.Slowest = max(s.Slowest, d)
		}
	}
	return report(s)
}
