package actor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
)

// Listen, accept or reject, echo.
func Example_echo() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())
	listening := make(chan rdma.Addr, 1)
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			id := rt.CreateID(ctx.Self())
			ctx.Send(id, &cmid.BindAddr{Addr: rdma.MustAddr("127.0.0.1:0")})
			ctx.Send(id, &rdma.Listen{Backlog: 128})
		case *rdma.Listening:
			listening <- m.Local
		case *rdma.ConnectRequest: // the Sender is the new identifier
			if string(m.PrivateData) != "echo/1" {
				ctx.Respond(&rdma.Reject{PrivateData: []byte("want echo/1")})
				return
			}
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received: // the Sender is the connection
			ctx.Respond(rdma.NewSend(m.Data))
		case rdma.Failure:
			log.Print(m)
		}
	}, rt.OnLoop()))

	addr := (<-listening).String()
	fmt.Println(talk(system, rt, addr, "echo/1", "hello"))
	fmt.Println(talk(system, rt, addr, "echo/2", "hello"))
	// Output:
	// hello
	// rejected: want echo/1
}

// talk connects, sends text and returns the answer.
func talk(system *actor.ActorSystem, rt *rdma.Runtime, addr, protocol, text string) string {
	answer := make(chan string, 1)
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Send(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: addr, PrivateData: []byte(protocol)})
		case *rdma.Established:
			ctx.Respond(rdma.NewSend([]byte(text)))
		case *rdma.Received:
			answer <- string(m.Data)
			ctx.Respond(&rdma.Close{})
		case *rdma.Rejected:
			answer <- "rejected: " + string(m.PrivateData)
		case *rdma.Closed:
			ctx.Stop(ctx.Self())
		}
	}, rt.OnLoop()))
	return <-answer
}

// redial is the client's message to itself to try again.
type redial struct{}

// client is an actor that connects, talks, survives the end of its connection and tries again.
type client struct {
	rt    *rdma.Runtime
	addr  string
	tries int
	done  chan<- struct{}
}

// Receive is the whole client.
func (c *client) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started, *redial:
		id := c.rt.CreateID(ctx.Self())
		ctx.Send(id, &rdma.Dial{Addr: c.addr, Timeout: 5 * time.Second, PrivateData: []byte("greet/1")})
	case *rdma.Established:
		ctx.Respond(rdma.NewSend([]byte("hello")))
	case *rdma.Received:
		fmt.Printf("%s\n", m.Data)
	case *rdma.Rejected: // also a rdma.Failure
		fmt.Printf("%v says %q\n", c.addr, m.PrivateData)
	case *rdma.DeviceRemoval:
		// the id is being destroyed, as rdma_get_cm_event(3) demands; Closed follows
		fmt.Printf("%s is gone\n", m.Device)
	case *rdma.Closed: // exactly once per id, after everything else of it
		fmt.Printf("delivered %d, unsent %d, unknown %d: %v\n", m.Delivered, m.Unsent, m.Unknown, m.Err)
		if c.tries--; c.tries == 0 {
			close(c.done)
			return
		}
		rdma.After(ctx, 10*time.Millisecond, &redial{}) // the loop's timer, virtual in tests
	}
}

// Connect, talk, redial.
func Example_redial() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())
	addr := greeter(system, rt)
	done := make(chan struct{})
	system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &client{rt: rt, addr: addr, tries: 2, done: done}
	}, rt.OnLoop()))
	<-done
	// Output:
	// welcome
	// delivered 1, unsent 0, unknown 0: <nil>
	// welcome
	// delivered 1, unsent 0, unknown 0: <nil>
}

// greeter answers one message and hangs up; it returns its address.
func greeter(system *actor.ActorSystem, rt *rdma.Runtime) string {
	handler := actor.PropsFromFunc(func(ctx actor.Context) { // one for each connection
		switch ctx.Message().(type) {
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received:
			ctx.Respond(rdma.NewSend([]byte("welcome")))
			ctx.Respond(&rdma.Close{})
		}
	})
	id := rt.CreateID(nil, rdma.IDConfig{Handler: handler})
	l, err := rdma.Ask[*rdma.Listening](context.Background(), rt, id, &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	return l.Local.String()
}
