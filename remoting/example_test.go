package remoting_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
)

// quiet silences Proto.Actor's log.
func quiet(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// machine is a program's actor system, a runtime in it, and the node that they are.
type machine struct {
	system *actor.ActorSystem
	rt     *rdma.Runtime
	node   *remoting.Node
}

func boot(cfg remoting.Config) *machine {
	system := actor.NewActorSystem(actor.WithLoggerFactory(quiet))
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	node, err := remoting.Start(rt, cfg)
	if err != nil {
		log.Fatal(err)
	}
	return &machine{system, rt, node}
}

func (p *machine) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := errors.Join(p.node.Shutdown(ctx), p.rt.Shutdown(ctx)); err != nil {
		log.Fatal(err)
	}
	p.system.Shutdown()
}

// greeting boots a node with an actor that others may send to.
func greeting(addr string) *machine {
	p := boot(remoting.Config{
		Listen: addr,
		Expose: remoting.Expose{Reach: []string{"greeter"}},
	})
	greeter := actor.PropsFromFunc(func(ctx actor.Context) {
		if name, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.Respond(wrapperspb.String("hello " + name.Value))
		}
	}, p.rt.OnLoop())
	if _, err := p.system.Root.SpawnNamed(greeter, "greeter"); err != nil {
		log.Fatal(err)
	}
	return p
}

// Two nodes, which are two processes elsewhere. Only the address in the PID distinguishes them.
func Example() {
	server := greeting("127.0.0.1:0")
	defer server.shutdown()
	client := boot(remoting.Config{Listen: "127.0.0.1:0"})
	defer client.shutdown()

	greeter := actor.NewPID(server.node.Name(), "greeter")
	answer, err := remoting.Result(client.system.Root.RequestFuture(greeter, wrapperspb.String("ann"), 5*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.(*wrapperspb.StringValue).Value)
	// Output: hello ann
}

// The errors of a failed request, for a caller that repeats it.
func ExampleResult() {
	server := greeting("127.0.0.1:0")
	defer server.shutdown()
	client := boot(remoting.Config{Listen: "127.0.0.1:0"})
	defer client.shutdown()

	ask := func(id string) {
		pid := actor.NewPID(server.node.Name(), id)
		answer, err := remoting.Result(client.system.Root.RequestFuture(pid, wrapperspb.String("ann"), 5*time.Second))
		var unknown *remoting.Unknown
		switch {
		case err == nil:
			fmt.Println(answer.(*wrapperspb.StringValue).Value)
		case errors.As(err, &unknown):
			fmt.Println("the link was lost: it may have been carried out")
		case errors.Is(err, remoting.ErrDenied):
			fmt.Println("that node does not expose", id)
		case errors.Is(err, actor.ErrDeadLetter):
			fmt.Println("nobody is there: it was not carried out")
		}
	}
	ask("greeter")
	ask("treasurer")
	server.node.Expose(remoting.Expose{Reach: []string{"treasurer"}})
	ask("treasurer")
	// Output:
	// hello ann
	// that node does not expose treasurer
	// nobody is there: it was not carried out
}

// Job and Done are messages that are not protobuf.
type (
	Job  struct{ ID int }
	Done struct{ ID int }
)

// Messages that are not protobuf are registered, with the same names on all nodes.
func ExampleConfig_codec() {
	messages := codec.New(codec.JSON[*Job]("jobs.Job"), codec.JSON[*Done]("jobs.Done"))
	server := boot(remoting.Config{
		Listen: "127.0.0.1:0", Codec: messages,
		Expose: remoting.Expose{Reach: []string{"worker-*"}},
	})
	defer server.shutdown()
	worker := actor.PropsFromFunc(func(ctx actor.Context) {
		if job, ok := ctx.Message().(*Job); ok {
			ctx.Respond(&Done{job.ID})
		}
	}, server.rt.OnLoop())
	if _, err := server.system.Root.SpawnNamed(worker, "worker-1"); err != nil {
		log.Fatal(err)
	}

	client := boot(remoting.Config{Listen: "127.0.0.1:0", Codec: messages})
	defer client.shutdown()
	pid := actor.NewPID(server.node.Name(), "worker-1")
	answer, err := remoting.Result(client.system.Root.RequestFuture(pid, &Job{7}, 5*time.Second))
	if done, ok := answer.(*Done); ok {
		fmt.Println(done.ID, "is done")
	} else {
		fmt.Println(answer, err)
	}
	// Output: 7 is done
}

// An actor of another node, spawned from here and watched.
func ExampleNode_Spawn() {
	server := boot(remoting.Config{
		Listen: "127.0.0.1:0",
		Kinds:  map[string]*actor.Props{"counter": actor.PropsFromFunc(func(actor.Context) {})},
		Expose: remoting.Expose{Spawn: []string{"counter"}},
	})
	defer server.shutdown()
	client := boot(remoting.Config{Listen: "127.0.0.1:0"})
	defer client.shutdown()

	ended := make(chan *actor.Terminated, 1)
	client.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(actor.NewPID(server.node.Name(), "nobody"))
		case *actor.Terminated:
			ended <- m
		case *actor.PID:
			ctx.Watch(m)
			ctx.Stop(m)
		}
	}))
	fmt.Println((<-ended).Why)
	counter, err := client.node.Spawn(context.Background(), server.node.Name(), "counter", "of-ann")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(counter.Id, counter.Address == server.node.Name())
	_, err = client.node.Spawn(context.Background(), server.node.Name(), "counter", "of-ann")
	fmt.Println(errors.Is(err, actor.ErrNameExists))
	// Output:
	// NotFound
	// Remote$of-ann true
	// true
}
