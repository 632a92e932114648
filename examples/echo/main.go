// Command echo sends back what it receives. With an argument it is the client: it sends that to the
// server, and prints the answer.
//
//	go run ./examples/echo
//	go run ./examples/echo hello
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

const addr = "127.0.0.1:7471"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 1 {
		var answer string
		answer, err = sendText(rt, addr, os.Args[1])
		fmt.Println(answer)
	} else {
		err = serveEcho(ctx, rt, addr)
	}
	if err = errors.Join(err, rt.Shutdown(context.Background())); err != nil {
		log.Fatal(err)
	}
}

// serveEcho echoes until ctx ends.
func serveEcho(ctx context.Context, rt *rdma.Runtime, addr string) error {
	owner := rt.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.ConnectRequest: // the Sender is the new identifier
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received: // the Sender is the connection
			ctx.Respond(rdma.NewSend(m.Data))
		case rdma.Failure:
			log.Print(m)
		}
	}, rt.OnLoop()))
	return rt.ListenAndServe(ctx, addr, owner)
}

// sendText connects, sends text, and disconnects when an answer has come.
func sendText(rt *rdma.Runtime, addr, text string) (answer string, err error) {
	closed := make(chan error, 1)
	rt.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Send(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: addr})
		case *rdma.Established:
			ctx.Respond(rdma.NewSend([]byte(text)))
		case *rdma.Received:
			answer = string(m.Data)
			ctx.Respond(&rdma.Close{})
		case *rdma.Closed: // the last event, with the reason
			closed <- m.Err
			ctx.Stop(ctx.Self())
		}
	}, rt.OnLoop()))
	err = <-closed
	return answer, err
}
