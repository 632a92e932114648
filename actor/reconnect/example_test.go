package reconnect_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/iwarp"
)

// A client whose server hangs up after each answer.
func Example() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())
	addr := moody(rt)
	done := make(chan struct{})
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			link := reconnect.Spawn(rt, ctx.Self(), reconnect.Config{
				Dial:    rdma.Dial{Addr: addr, Timeout: 5 * time.Second},
				Backoff: reconnect.Backoff{First: 10 * time.Millisecond},
			})
			// waits for the connection
			ctx.Send(link, reconnect.NewSend(1, []byte("anybody there?")))
		case *reconnect.Up: // the Sender of everything is the link
			fmt.Println("up", m.Generation)
			if m.Generation == 2 {
				ctx.Respond(reconnect.NewSend(2, []byte("and now?")))
			}
		case *rdma.Received:
			fmt.Printf("%s\n", m.Data)
		case *reconnect.Settled:
			report(m.Fates)
		case *reconnect.Down:
			report(m.Fates)
			fmt.Println("down", m.Generation)
			if m.Generation == 2 {
				ctx.Respond(&rdma.Close{})
			}
		case *reconnect.Closed:
			fmt.Printf("closed: %d delivered, %d unsent, %d unknown\n", m.Counts.Delivered, m.Counts.Unsent, m.Counts.Unknown)
			close(done)
		}
	}, rt.OnLoop()))
	<-done
	// Output:
	// up 1
	// yes, but not for long
	// message 1: delivered
	// down 1
	// up 2
	// yes, but not for long
	// message 2: delivered
	// down 2
	// closed: 2 delivered, 0 unsent, 0 unknown
}

func report(fates []reconnect.Fate) {
	for _, f := range fates {
		fmt.Printf("message %d: %v\n", f.Tag, f.Outcome)
	}
}

// moody listens, answers the first message of every connection, and hangs up; it returns its
// address.
func moody(rt *rdma.Runtime) string {
	handler := actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received:
			ctx.Respond(rdma.NewSend([]byte("yes, but not for long")))
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
