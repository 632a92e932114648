// Package program is a program for tests to watch: two nodes that have exchanged messages, and a
// server of calls with a client. After Shutdown none of its figures changes.
package program

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
)

// LoopName is the name of a loop, with characters that no label should contain.
const LoopName = "a \"loop\"\nof \\ \xff bytes"

// Messages is the number of messages that the first node has received from the second.
const Messages = 10

// Calls is the number of calls that succeeded; one more has failed.
const Calls = 20

// Echo is their method, whose name has characters that no label should contain.
var Echo = rpc.NewRawMethod("a \"method\"\nof \\ \xff bytes")

// Program is the first node.
type Program struct {
	Source   *metrics.Source
	Runtime  *rdma.Runtime
	Shutdown func() // of both nodes; called at the test's end, too
}

type machine struct {
	sys  *actor.ActorSystem
	rt   *rdma.Runtime
	node *remoting.Node
}

// Start starts the program, and waits until the nodes have exchanged messages.
func Start(t testing.TB) *Program {
	t.Helper()
	loops := []eventloop.Config{{Name: LoopName, StallAfter: -1}, {Name: "second", StallAfter: -1}}
	a, b := bootMachine(t, loops), bootMachine(t, nil)
	heard := make(chan struct{}, Messages)
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			heard <- struct{}{}
		}
	})
	if _, err := a.sys.Root.SpawnNamed(props, "listener"); err != nil {
		t.Fatal(err)
	}
	for range Messages {
		b.sys.Root.Send(actor.NewPID(a.node.Name(), "listener"), wrapperspb.String("hello"))
	}
	for range Messages {
		select {
		case <-heard:
		case <-time.After(time.Minute):
			t.Fatal("the nodes do not talk")
		}
	}
	server, client := startCalls(t, a, b)
	p := &Program{Runtime: a.rt, Source: metrics.New(metrics.Config{
		Runtime: a.rt, Node: a.node, Peers: 1,
		Cluster: func() metrics.Cluster { return metrics.Cluster{Members: 2} },
		Servers: func() []*rpc.Server { return []*rpc.Server{server} },
		Clients: func() []*rpc.Client { return []*rpc.Client{client} },
	})}
	over := false
	p.Shutdown = func() {
		if !over {
			over = true
			client.Close()
			server.Close()
			a.shutdown(t)
			b.shutdown(t)
		}
	}
	t.Cleanup(p.Shutdown)
	return p
}

// startCalls makes b call a.
func startCalls(t testing.TB, a, b *machine) (*rpc.Server, *rpc.Client) {
	server := rpc.NewServer(a.rt)
	rpc.HandleRaw(server, Echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
		if len(q) == 0 {
			return nil, errors.New("nothing was said")
		}
		return append(reply, q...), nil
	})
	at, err := server.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := rpc.Dial(context.Background(), b.rt, at.String())
	if err != nil {
		t.Fatal(err)
	}
	for range Calls {
		if _, err := rpc.CallRaw(context.Background(), client, Echo, []byte("hello"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := rpc.CallRaw(context.Background(), client, Echo, nil, nil); err == nil {
		t.Fatal("an error has become an answer")
	}
	return server, client
}

func bootMachine(t testing.TB, loops []eventloop.Config) *machine {
	t.Helper()
	sys := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Loops: loops})
	if err != nil {
		t.Fatal(err)
	}
	node, err := remoting.Start(rt, remoting.Config{Listen: "127.0.0.1:0", Expose: remoting.Expose{Reach: []string{"listener"}}})
	if err != nil {
		t.Fatal(err)
	}
	return &machine{sys, rt, node}
}

func (m *machine) shutdown(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := m.node.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := m.rt.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	m.sys.Shutdown()
}
