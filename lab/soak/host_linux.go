package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	cmap "github.com/orcaman/concurrent-map"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// host is the common part of server and client.
type host struct {
	*tally
	system *actor.ActorSystem
	rt     *rdma.Runtime
	number uint64
	server addresses
	scale  scale
}

// Proto.Actor's registry is 1,024 maps of this many shards, by default 32, each of which takes 288
// bytes when it is first used. That would take hours of connections, and look like a leak of 9 MiB.
// The number is process-wide, and must not change once there is an ActorSystem.
func init() { cmap.SHARD_COUNT = 1 }

func openHost(r role) (*host, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	h := &host{tally: newTally(), system: system, number: r.Number, server: r.Server, scale: r.Scale}
	system.EventStream.Subscribe(func(event any) {
		switch event.(type) {
		case *rdma.Panicked, *actor.SupervisorEvent:
			h.recordFault("a panic: %+v", event)
		}
	})
	rt, err := rdma.Open(system, rdma.Config{
		Device: iwarp.New(), Logger: log, Security: &rdma.Security{Mode: rdma.Insecure}, Keepalive: rdma.Keepalive{Idle: r.Scale.Idle, Gone: r.Scale.Gone},
		Timeouts: rdma.Timeouts{Connect: r.Scale.Connect},
		// a process that is stopped stalls
		Loops: []eventloop.Config{{OnStall: func(eventloop.Stall) {}}, {OnStall: func(eventloop.Stall) {}}},
	})
	h.rt = rt
	return h, err
}

// close shuts everything down.
func (h *host) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if err := h.rt.Shutdown(ctx); err != nil {
		h.recordFault("shutdown: %v", err)
	}
	h.system.Shutdown()
}

// eventually calls f until it succeeds. The server may not listen yet.
func eventually(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func currentFootprint(rt *rdma.Runtime) *footprint {
	runtime.GC()         // the first collection leaves the contents of pools
	debug.FreeOSMemory() // collects garbage, and returns memory that Go would retain
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &footprint{
		RSS: stats.ProcessMemory("VmRSS"), Heap: m.HeapAlloc, Goroutines: runtime.NumGoroutine(), FDs: stats.OpenFiles(""),
		IDs: len(rt.Inspect()), Held: rt.Held(),
	}
}

// sendReports reports until ctx ends: the completed work at each beat, and the footprint at longer
// intervals.
func (t *tally) sendReports(ctx context.Context, rt *rdma.Runtime, every time.Duration) error {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		s := t.takeSample()
		if !s.At.Before(next) {
			s.Has, next = currentFootprint(rt), s.At.Add(every)
		}
		if err := measure.Report(s); err != nil {
			return err
		}
	}
}
