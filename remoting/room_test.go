package remoting_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// A message that never finds room in the queue is refused, and blocks no sender.
func TestBlockLargerThanQueue(t *testing.T) {
	a := start(t, remoting.Config{Queue: 1 << 20, MaxMessage: 1 << 20, Overflow: remoting.Block})
	b := start(t, remoting.Config{MaxMessage: 16 << 20, Expose: everything})
	b.spawn("echo", echo)
	allowed(t, a, b.pid("echo"))
	sent := make(chan error, 1)
	go func() {
		_, err := a.ask(b.pid("echo"), wrapperspb.Bytes(make([]byte, 2<<20)))
		sent <- err
	}()
	select {
	case err := <-sent:
		if !errors.Is(err, actor.ErrDeadLetter) {
			t.Error(err)
		}
	case <-time.After(soon):
		t.Fatal("it waits")
	}
}

// Senders that wait for room continue when the waiting messages were dropped, because the peer does
// not take them.
func TestBlockedGoOnWhenTooLarge(t *testing.T) {
	a := start(t, remoting.Config{Queue: 1 << 20, MaxMessage: 1 << 20, Overflow: remoting.Block})
	hold := make(chan struct{})
	b := start(t, remoting.Config{MaxMessage: 64 << 10, Expose: everything, Admit: func(remoting.Peer) error { <-hold; return nil }})
	b.spawn("echo", echo)
	a.sys.Root.Send(b.pid("echo"), wrapperspb.Bytes(make([]byte, 1<<20-1000)))
	sent := make(chan bool)
	go func() {
		a.sys.Root.Send(b.pid("echo"), wrapperspb.Bytes(make([]byte, 1000)))
		close(sent)
	}()
	time.Sleep(100 * time.Millisecond)
	close(hold)
	select {
	case <-sent:
	case <-time.After(soon):
		t.Fatal("it waits")
	}
}

// Watches for which there is no room end, also while there is no connection.
func TestWatchesWithoutRoom(t *testing.T) {
	hold := make(chan struct{})
	a := start(t, remoting.Config{Queue: 64 << 10, MaxMessage: 64 << 10, Resolve: func(_ context.Context, name string) (string, error) {
		<-hold
		return name, nil
	}})
	b := start(t, remoting.Config{Expose: everything})
	pid := b.spawn("watched", echo)
	const n = 4000
	ended := make(chan int, 2*n)
	for i := range n {
		a.spawn(fmt.Sprint("watcher-with-a-name-", i), func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Watch(b.pid("watched"))
			case *actor.Terminated:
				ended <- i
			}
		})
	}
	eventually(t, "all watches found room", func() bool { return len(ended) > 0 })
	close(hold)
	eventually(t, "they are not connected", func() bool { return a.info(b).Connected })
	eventually(t, "not all came", func() bool { return len(ended)+a.info(b).Watching == n })
	eventually(t, "not all watches came", func() bool { return b.info(a).Watched == a.info(b).Watching })
	b.sys.Root.Stop(pid)
	eventually(t, "not all ended", func() bool { return len(ended) == n })
	seen := make(map[int]bool)
	for range n {
		i := <-ended
		if seen[i] {
			t.Errorf("%d was notified twice", i)
		}
		seen[i] = true
	}
}

// An actor that watches more than there is room for is notified immediately, and the connection
// stays.
func TestBurstOfWatches(t *testing.T) {
	const n = 5000
	a := start(t, remoting.Config{Queue: 64 << 10, MaxMessage: 64 << 10})
	b := start(t, remoting.Config{Expose: everything})
	b.spawn("echo", echo)
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Fatal(err)
	}
	var cut atomic.Bool
	a.sys.EventStream.Subscribe(func(ev any) {
		if _, ok := ev.(*remoting.Disconnected); ok {
			cut.Store(true)
		}
	})
	var there, noRoom atomic.Int32
	a.spawn("watcher", func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			for i := range n {
				ctx.Watch(b.pid(fmt.Sprint("nobody of that name, number ", i)))
			}
		case *actor.Terminated:
			if m.Why == actor.TerminatedReason_NotFound {
				there.Add(1)
			} else {
				noRoom.Add(1)
			}
		}
	}, a.rt.OnLoop())
	eventually(t, "not all were answered", func() bool { return there.Load()+noRoom.Load() == n })
	if there.Load() == 0 || noRoom.Load() == 0 {
		t.Errorf("%d came, %d found no room", there.Load(), noRoom.Load())
	}
	if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
		t.Error(err)
	}
	if cut.Load() {
		t.Error("the connection has ended")
	}
}

// The undelivered events of a blocked subscriber are bounded in bytes.
func TestRefusedBytesAreBounded(t *testing.T) {
	a := start(t, remoting.Config{Overflow: remoting.Block})
	b := start(t, remoting.Config{Queue: 1 << 20, MaxMessage: 1 << 20, Patience: 100 * time.Millisecond, Expose: everything})
	block := make(chan struct{})
	var blocked atomic.Bool
	b.sys.EventStream.Subscribe(func(ev any) {
		if e, ok := ev.(*actor.DeadLetterEvent); ok && e.PID.Id == "slow" {
			blocked.Store(true)
			<-block
		}
	})
	b.spawn("slow", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			<-block
		}
	}, b.rt.OffLoop())
	heap := func() int64 { // memory of earlier tests may be collected during this one
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	body := wrapperspb.Bytes(make([]byte, 1<<20-1000))
	const n = 120
	for range n {
		a.sys.Root.Send(b.pid("slow"), body)
	}
	eventually(t, "not all came", func() bool { return b.info(a).Counts.Received >= n })
	eventually(t, "the subscriber is not called", blocked.Load)
	if grown := heap() - before; grown > 60<<20 {
		t.Errorf("%d MiB are kept", grown>>20)
	}
	close(block)
}
