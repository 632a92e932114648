package metrics

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc"
)

// A reading contains a listener, and works after the runtime's shutdown.
func TestReadsARuntime(t *testing.T) {
	sys, rt := open(t, "a", "a", "b\"\n")
	at := make(chan rdma.Addr, 1)
	owner := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*rdma.Listening); ok {
			at <- m.Local
		}
	}, rt.OnLoop()))
	l := rt.CreateID(owner)
	sys.Root.RequestWithCustomSender(l, &rdma.Serve{Addr: "127.0.0.1:0"}, owner)
	address := (<-at).String()
	s := New(Config{Runtime: rt})
	got := s.Read(context.Background())
	want(t, got, 1, "rdmactor_identifiers_state", "listening")
	want(t, got, 0, "rdmactor_identifiers_state", "connected")
	want(t, got, 0, "rdmactor_listener_requests_total", address)
	for _, loop := range []string{"a", "a#1", makeLabel("b\"\n")} {
		want(t, got, 0, "rdmactor_loop_blocked", loop)
		if turns, ok := value(got, "rdmactor_loop_turns_total", loop); !ok || turns == 0 {
			t.Errorf("loop %s: %v turns, %v", loop, turns, ok)
		}
	}
	if err := rt.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	got = s.Read(context.Background())
	want(t, got, 0, "rdmactor_identifiers_state", "listening")
	want(t, got, 0, "rdmactor_read_failures_total", "loops")
}

// A blocked loop takes at most its bound, and is reported as it was.
func TestABlockedLoop(t *testing.T) {
	sys, rt := open(t, "a", "b")
	free, blocked := make(chan struct{}), make(chan string, 1)
	sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			blocked <- "now"
			<-free
		}
	}, rt.OnLoop()))
	s := New(Config{Runtime: rt})
	s.Read(context.Background())
	<-blocked
	time.Sleep(150 * time.Millisecond)
	got := s.Read(context.Background()) // while the loop is blocked
	a, _ := value(got, "rdmactor_loop_blocked", "a")
	b, _ := value(got, "rdmactor_loop_blocked", "b")
	if a+b != 1 {
		t.Errorf("%v loops are blocked", a+b)
	}
	want(t, got, 0, "rdmactor_read_failures_total", "loops")
	close(free)
}

// The program's functions may panic, end their goroutine, or never return: the rest is read.
func TestHostileProviders(t *testing.T) {
	_, rt := open(t, "a")
	for name, provider := range map[string]func(){
		"panic": func() { panic("provider") }, "nil panic": func() { panic(nil) }, "Goexit": runtime.Goexit,
	} {
		s := New(Config{Runtime: rt, Clients: func() []*rpc.Client { provider(); return nil }})
		for n := range 3 {
			got := s.Read(context.Background())
			want(t, got, float64(n+1), "rdmactor_read_failures_total", "calls")
			want(t, got, 0, "rdmactor_loop_blocked", "a")
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
	free := make(chan struct{})
	var calls atomic.Int32
	s := New(Config{Runtime: rt, Within: 50 * time.Millisecond, Clients: func() []*rpc.Client {
		calls.Add(1)
		<-free
		return nil
	}})
	before := 0.0
	for n := range 5 {
		got := s.Read(context.Background())
		want(t, got, 1, "rdmactor_read_failures_total", "calls") // one call, which is late
		took, _ := value(got, "rdmactor_read_duration_seconds", "calls")
		if took <= before {
			t.Errorf("after %d readings the call took %v s, no more than the %v s before", n+1, took, before)
		}
		before = took
		want(t, got, 0, "rdmactor_loop_blocked", "a")
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("a provider that does not return was called %d times", n)
	}
	close(free)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, ok := value(s.Read(context.Background()), inFlight, "client"); ok {
			return
		}
	}
	t.Error("a provider that returns late is not heard of again")
}

// Concurrent readings share an answer.
func TestSharedReading(t *testing.T) { synctest.Test(t, testSharedReading) }

func testSharedReading(t *testing.T) {
	free, begun := make(chan struct{}), make(chan struct{}, 100)
	s := New(Config{Within: time.Minute, Servers: func() []*rpc.Server {
		begun <- struct{}{}
		<-free
		return nil
	}})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { want(t, s.Read(context.Background()), 0, inFlight, "server") })
	}
	<-begun
	synctest.Wait() // all have asked: a later one would read again
	close(free)
	all.Wait()
	if n := len(begun); n > 1 {
		t.Errorf("%d more readings for 20 at a time", n)
	}
}

// A runtime may be shut down in the middle of readings.
func TestShutdownWhileRead(t *testing.T) {
	for range 20 {
		_, rt := open(t, "a", "b")
		s := New(Config{Runtime: rt})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 20 {
					if len(s.Read(context.Background())) == 0 {
						t.Error("nothing was read")
					}
				}
			})
		}
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}
