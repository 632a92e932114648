package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/lab/chat/room"
)

// crowd is many members in one actor. It counts the lines that each receives.
type crowd struct {
	rt    *rdma.Runtime
	addr  string
	size  int
	want  int // lines for each member
	in    int
	heard map[string]int
	full  chan<- struct{} // closed when all have joined
	done  chan<- error    // receives nil when all members have received all lines
}

func (c *crowd) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.heard = make(map[string]int)
		c.enter(ctx)
	case *rdma.Established:
		h := hello{nick: fmt.Sprint("member", c.in), room: room.Lobby}
		ctx.Respond(rdma.NewSend(h.encode()))
	case *rdma.Received:
		l, err := room.Decode(m.Data)
		if err != nil {
			c.done <- err
			return
		}
		if l.Type == "you" {
			if c.in++; c.in == c.size {
				close(c.full)
				return
			}
			c.enter(ctx)
		}
		if l.Type != "say" {
			return
		}
		c.heard[ctx.Sender().Id]++
		if c.heard[ctx.Sender().Id] == c.want {
			if c.size--; c.size == 0 {
				c.done <- nil
			}
		}
	case rdma.Failure:
		c.done <- m
	}
}

func (c *crowd) enter(ctx actor.Context) {
	ctx.Request(c.rt.CreateID(ctx.Self()), &rdma.Dial{Addr: c.addr, PrivateData: []byte(version)})
}

func openTest(t *testing.T) (*rdma.Runtime, *actor.ActorSystem) {
	t.Helper()
	return openOn(t, iwarp.New())
}

func openOn(t *testing.T, device *iwarp.Driver) (*rdma.Runtime, *actor.ActorSystem) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond)) // a goroutine lives that long
	rt, err := rdma.Open(system, rdma.Config{Device: device, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer cancel()
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		system.Shutdown()
	})
	return rt, system
}

// TestOneToAThousand has one member write to a thousand, and measures the memory that the server
// uses.
func TestOneToAThousand(t *testing.T) {
	const members, lines = 1000, 100
	addr := freeAddr(t)
	rt, system := openTest(t)
	if _, err := host(t.Context(), rt, system, addr, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	rtCrowd, systemCrowd := openTest(t)
	full, done := make(chan struct{}), make(chan error, 1)
	c := &crowd{rt: rtCrowd, addr: addr, size: members, want: lines, full: full, done: done}
	systemCrowd.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }, rtCrowd.OnLoop()))
	timeout := time.After(3 * time.Minute)
	select {
	case <-full:
	case err := <-done:
		t.Fatal(err)
	case <-timeout:
		t.Fatal("the crowd does not get in")
	}

	before := heap()
	mouth := start(t, "mouth", "join", addr, "--nick", "mouth")
	mouth.Want("you are mouth in lobby with 1000 others", "everybody is in")
	for i := range lines {
		mouth.Say("line %d", i)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-timeout:
		t.Fatal("not everybody has heard everything")
	}
	// Both ends are in this process. The memory that lines cost per member is bounded by the window
	// and the credits, not by the number of lines.
	if grown := int(heap()) - int(before); grown > 64<<20 {
		t.Errorf("%d MiB more after %d lines to %d members", grown>>20, lines, members)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
