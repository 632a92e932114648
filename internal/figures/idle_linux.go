package main

import (
	"fmt"
	"runtime"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

const (
	idleConnections = 15000
	dialsAtOnce     = 64
)

// idleResult is what one side reports once all connections stand.
type idleResult struct {
	Connections int
	Bytes       uint64 // of Go memory per connection: everything the runtime holds, less what it held before the first
	Before      int    // goroutines before the first connection
	After       int    // and with all of them
}

// idle fills a process pair with connections that say nothing.
func idle() ([]row, error) {
	n := strconv.Itoa(idleConnections)
	server, client, err := runPair[idleResult](cpus{-1, -1}, "idle", n)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, side := range []struct {
		name string
		idleResult
	}{{"accepted", server}, {"dialled", client}} {
		fmt.Printf("%s: %d connections, %d bytes of Go memory each, goroutines %d before and %d with them\n",
			side.name, side.Connections, side.Bytes, side.Before, side.After)
		rows = append(rows, row{
			n + " idle connections, " + side.name + ": Go memory each", "<= 8 KiB",
			fmt.Sprintf("%.1f KiB", float64(side.Bytes)/1024), side.Bytes > 8<<10,
		})
	}
	return rows, nil
}

// goMemory is what the Go runtime holds after a collection: heap in use with its fragments, stacks and its own structures.
func goMemory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse + m.MSpanInuse + m.MCacheInuse + m.OtherSys + m.GCSys + m.BuckHashSys
}

// census counts connections and reports when all are there.
type census struct {
	want, n    int
	memory     uint64
	goroutines int
}

func newCensus(want int) *census {
	return &census{want: want, memory: goMemory(), goroutines: runtime.NumGoroutine()}
}

func (c *census) established() {
	if c.n++; c.n == c.want {
		_ = report(idleResult{
			Connections: c.n, Bytes: (goMemory() - c.memory) / uint64(c.n), Before: c.goroutines, After: runtime.NumGoroutine(),
		})
	}
}

func idleServer(args []string) error {
	var count *census
	return serve(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			count = newCensus(atoi(args[0]))
		case *rdma.Established:
			count.established()
		}
	}, nil)
}

func idleClient(args []string) error {
	rt, system, err := openRuntime()
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	count := newCensus(atoi(args[1]))
	dialed := 0
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		dial := func() {
			if dialed < count.want {
				dialed++
				ctx.Request(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: args[0]})
			}
		}
		switch m := ctx.Message().(type) {
		case *actor.Started:
			for range dialsAtOnce {
				dial()
			}
		case *rdma.Established:
			count.established()
			dial()
		case rdma.Failure:
			failed <- m
		}
	}, rt.OnLoop()))
	return waitFor(failed)
}
