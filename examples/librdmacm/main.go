// Librdmacm is an echo server on rdmactor. c/echo.c is the same program on librdmacm.
// docs/from-librdmacm.md explains both. Its clients may be C programs. So messages are on the wire
// without a header of rdmactor's (Raw).
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

const hello = "echo/1"

// echo owns the listener, and also its connections, because they have no other owner.
func echo(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Listening:
		log.Print("listening on ", m.Local)
	case *rdma.ConnectRequest:
		// on InfiniBand private data comes padded with zeros, on iWARP as it was sent
		if !strings.HasPrefix(string(m.PrivateData), hello) {
			ctx.Respond(&rdma.Reject{PrivateData: []byte("want " + hello)})
			return
		}
		ctx.Respond(&rdma.Accept{})
	case *rdma.Received:
		ctx.Respond(rdma.NewSend(m.Data))
	case *rdma.DeviceRemoval: // of a connection; a wildcard listener stays
		log.Print(m.Device, " has gone")
	case rdma.Failure:
		log.Print(m)
	}
}

func main() {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.Default() // Proto.Actor's own writes colours, even to a file
	}))
	// or ucm.New(): the kernel's rdma_cm
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	owner := system.Root.Spawn(actor.PropsFromFunc(echo, rt.OnLoop()))
	id := rt.CreateID(owner, rdma.IDConfig{Raw: true, MaxMessage: 4096, Credits: 4})
	system.Root.Send(id, &rdma.Serve{Addr: "0.0.0.0:7471", Backlog: 128})

	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	<-stop.Done()
	deadline, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	// no new connections, the present ones are closed, and nothing is left behind
	if err := rt.Shutdown(deadline); err != nil {
		log.Print(err)
	}
}
