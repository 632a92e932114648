package rpc

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/proctest"
	"github.com/rdmactor/rdmactor/iwarp"
)

// serveAt is the environment variable that makes this binary a server.
const serveAt = "RPC_SERVE_AT"

// serveUntilSIGTERM runs the server's process. It returns its exit code.
func serveUntilSIGTERM(addr string) int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	rt, err := rdma.Open(actor.NewActorSystem(), rdma.Config{Device: iwarp.New()})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	server := NewServer(rt)
	HandleRaw(server, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
		time.Sleep(time.Millisecond) // a call is in flight when the signal comes
		return append(reply, q...), nil
	})
	if _, err := server.Listen(ctx, addr); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("serving")
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(server.Shutdown(end), rt.Shutdown(end)); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// Two servers are replaced one after the other, by SIGTERM, while a pool calls them all the time:
// no call fails, without retries, although none is idempotent.
func TestSIGTERMUnderLoad(t *testing.T) {
	addrs := proctest.FreeAddrs(t, 2)
	start := func(i int) *proctest.Process {
		p := proctest.Start(t, addrs[i], proctest.Config{Env: []string{serveAt + "=" + addrs[i]}})
		p.Want("serving", "it was started")
		return p
	}
	servers := []*proctest.Process{start(0), start(1)}
	rt, err := rdma.Open(actor.NewActorSystem(), rdma.Config{Device: iwarp.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	pool := NewPool(rt, Static(addrs...))
	defer pool.Close()
	var answered atomic.Int64
	var callers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer func() {
		stop()
		callers.Wait()
		t.Logf("%d calls were answered", answered.Load())
	}()
	for range 16 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if _, err := CallRaw(t.Context(), pool, echo, []byte("x"), nil); err != nil {
					t.Error(err)
					return
				}
				answered.Add(1)
			}
		})
	}
	both := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			busy := 0
			for _, s := range pool.Servers() {
				if !s.Connected.IsZero() && s.InFlight > 0 {
					busy++
				}
			}
			if busy == len(servers) {
				return
			}
			if t.Failed() || time.Now().After(end) {
				t.Fatalf("the servers are not both called: %+v", pool.Servers())
			}
		}
	}
	for range 3 {
		for i := range servers {
			both()
			servers[i].Signal(unix.SIGTERM)
			servers[i].Exit(0, "SIGTERM")
			servers[i] = start(i)
		}
	}
	both()
}
