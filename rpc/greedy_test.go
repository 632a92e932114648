package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// deaf is an actor that calls, and keeps each answer without releasing its memory: the server's
// credits run out, and then its memory.
type deaf struct {
	mu   sync.Mutex
	kept []*rdma.Received
	ends []string
	stop bool // releases answers again
}

// deafCalls is more than a server answers ahead of its credits, and keeps unanswered: see
// TestClientThatNeverReads.
const deafCalls = 250

func (d *deaf) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Established:
		ctx.Send(ctx.Sender(), rdma.NewSend(declareEcho))
		for i := range deafCalls {
			ctx.Send(ctx.Sender(), rdma.NewSend(frame(wire.Header{Type: wire.FrameCall, Call: wire.CallID(i)}, "")))
		}
	case *rdma.Received:
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.stop {
			d.kept = append(d.kept, m.Retain())
		}
	case *rdma.Disconnected:
		d.end(fmt.Sprint("disconnected: ", m.Err))
	case rdma.Failure:
		d.end(m.Error())
	}
}

func (d *deaf) end(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends = append(d.ends, why)
}

func (d *deaf) listen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.kept {
		m.Release()
	}
	d.kept, d.stop = nil, true
}

// The requests of clients that never read their answers wait in memory that the server's
// connections share. Other clients are not affected. No request is lost, either: when these clients
// read, all requests are answered.
func TestInnocentCallsAmongDeafClients(t *testing.T) {
	const clients, patience = 5, time.Minute
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	open := func(cfg rdma.Config) *rdma.Runtime {
		cfg.Device = iwarp.New()
		rt, err := rdma.Open(sys, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := rt.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return rt
	}
	t.Cleanup(func() {
		sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters expires
	})
	there, here := open(rdma.Config{Limits: rdma.Limits{ReceiveMemory: 8 << 20}}), open(rdma.Config{})
	s := NewServer(there)
	t.Cleanup(s.Close)
	answered := make(chan struct{}, clients*deafCalls)
	HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
		if len(q) > 0 {
			return append(reply, q...), nil
		}
		answered <- struct{}{}
		return append(reply, make([]byte, 32<<10)...), nil
	}, HandlerConfig{OnLoop: true})
	at, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	innocent := func() *Client {
		c, err := Dial(t.Context(), here, at.String())
		if err != nil {
			t.Fatal("an innocent client: ", err)
		}
		t.Cleanup(c.Close)
		return c
	}
	calls := func(c *Client, n int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		q := make([]byte, 1000)
		for i := range n {
			if got, err := CallRaw(ctx, c, echo, q, nil); err != nil || len(got) != len(q) {
				t.Fatalf("innocent call %d: %d bytes, %v", i, len(got), err)
			}
		}
	}
	before := innocent()
	calls(before, 1)

	d := &deaf{}
	t.Cleanup(d.listen)
	owner := sys.Root.Spawn(actor.PropsFromFunc(d.Receive, here.OnLoop()))
	for range clients {
		sys.Root.Send(here.CreateID(owner, rdma.IDConfig{}), &rdma.Dial{Addr: at.String(), PrivateData: wire.Hello{Version: 1, Window: 64}.Bytes()})
	}
	seen := 0
	await := func(n int) {
		t.Helper()
		for late := time.After(patience); seen < n; seen++ {
			select {
			case <-answered:
			case <-late:
				t.Fatalf("only %d of %d calls of deaf clients are answered", seen, n)
			}
		}
	}
	// so many answers may wait for each, before its requests do
	await(clients * highWater / (32 << 10))
	calls(before, 300)
	calls(innocent(), 300)
	if seen+len(answered) == clients*deafCalls {
		t.Error("all calls of clients that do not listen are answered")
	}
	d.listen()
	await(clients * deafCalls)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ends) > 0 {
		t.Errorf("clients that were only slow had this happen: %v", d.ends)
	}
}
