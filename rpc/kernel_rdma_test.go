//go:build linux && rdma

package rpc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid/ucm"
)

// These tests run where the kernel has RDMA devices: see lab/vm.

// kernelPatience is far above the time that an emulated machine needs for any step here.
const kernelPatience = 30 * time.Second

// onKernel returns a server and a client over the kernel's devices, each with a runtime. The
// credits are few and the messages small, because there each connection has memory for all of them.
// Larger messages are read by their receiver.
func onKernel(t *testing.T, setup func(s *Server)) (s *Server, dial func() *Client) {
	t.Helper()
	addr := os.Getenv("RDMA_ADDR")
	if addr == "" {
		t.Fatal("RDMA_ADDR is not set: this test runs in the rig's machine")
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	t.Cleanup(func() {
		sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters expires
	})
	open := func() *rdma.Runtime {
		rt, err := rdma.Open(sys, rdma.Config{Device: ucm.New(), Security: &rdma.Security{Mode: rdma.Insecure}, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), kernelPatience)
			defer cancel()
			if err := rt.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
		return rt
	}
	here, there := open(), open()
	s = NewServer(there, ServerConfig{MaxMessage: 1 << 20, Credits: 8})
	t.Cleanup(s.Close)
	setup(s)
	at, err := s.Listen(t.Context(), addr+":0")
	if err != nil {
		t.Fatal(err)
	}
	return s, func() *Client {
		t.Helper()
		c, err := Dial(t.Context(), here, at.String(), ClientConfig{MaxMessage: 1 << 20, Credits: 8})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

// Many callers on two connections, with small and large messages; each gets its own answer.
func TestKernelCalls(t *testing.T) {
	_, dial := onKernel(t, handleEcho)
	clients := []*Client{dial(), dial()}
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for n := range 20 {
				q := bytes.Repeat([]byte{byte(i), byte(n)}, 32<<(n%10)) // up to 32 KiB, and on to
				if n == 19 {
					q = bytes.Repeat(q, 20) // 640 KiB
				}
				if got, err := CallRaw(t.Context(), clients[i%2], echo, q, nil); err != nil || !bytes.Equal(got, q) {
					t.Errorf("caller %d, call %d of %d bytes: %d bytes, %v", i, n, len(q), len(got), err)
					return
				}
			}
		})
	}
	callers.Wait()
}

func TestKernelStream(t *testing.T) {
	_, dial := onKernel(t, func(s *Server) { handleCount(s) })
	in, err := Open(t.Context(), dial(), count, wrapperspb.Int64(2000))
	if err != nil {
		t.Fatal(err)
	}
	var got int64
	for item, err := range in.All() {
		if err != nil {
			t.Fatal(err)
		}
		if item.Value != got {
			t.Fatalf("item %d is %d", got, item.Value)
		}
		got++
	}
	if got != 2000 {
		t.Errorf("%d items of 2000", got)
	}
}

// When the server drains, calls in flight are answered and new ones are refused.
func TestKernelDrain(t *testing.T) {
	var b *blocking
	s, dial := onKernel(t, func(s *Server) {
		handleEcho(s)
		b = handleBlock(s)
	})
	c := dial()
	answered := make(chan error, 1)
	go func() {
		_, err := CallRaw(t.Context(), c, block, []byte("in flight"), nil)
		answered <- err
	}()
	<-b.began
	drained := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), kernelPatience)
		defer cancel()
		drained <- s.Shutdown(ctx)
	}()
	<-s.Draining()
	if _, err := CallRaw(t.Context(), c, echo, nil, nil); !errors.Is(err, ErrDraining) {
		t.Errorf("a call to a server that drains: %v", err)
	}
	close(b.release)
	if err := <-answered; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := <-drained; err != nil {
		t.Errorf("the drain: %v", err)
	}
}
