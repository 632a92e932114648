package actor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

// board has its memory ready before it accepts: the key goes in the private data of Accept.
type board struct{ listening chan string }

func (b *board) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Listening:
		b.listening <- m.Local.String()
	case *rdma.ConnectRequest: // the Sender is the connection to be
		ctx.Request(ctx.Sender(), &rdma.AllocMemory{Bytes: 4096, Access: rdma.RemoteRead})
	case *rdma.MemoryAllocated:
		if _, err := m.Memory.WriteAt([]byte("the news"), 0); err != nil {
			log.Fatal(err)
		}
		ctx.Request(ctx.Sender(), &rdma.Grant{Memory: m.Memory})
	case *rdma.Granted:
		key, err := m.Key.MarshalBinary()
		if err != nil {
			log.Fatal(err)
		}
		ctx.Request(ctx.Sender(), &rdma.Accept{PrivateData: key})
	case rdma.Failure:
		log.Print(m)
	}
}

// reader reads it, without a message in either direction.
type reader struct {
	key  rdma.RemoteKey
	seen chan string
}

func (r *reader) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Established:
		if err := r.key.UnmarshalBinary(m.PrivateData); err != nil {
			log.Fatal(err)
		}
		ctx.Request(ctx.Sender(), &rdma.AllocMemory{Bytes: 8})
	case *rdma.MemoryAllocated:
		ctx.Request(ctx.Sender(), &rdma.Read{Key: r.key, Memory: m.Memory, Length: 8})
	case *rdma.ReadDone:
		r.seen <- string(m.Command.Memory.Bytes())
	case rdma.Failure:
		log.Print(m)
	}
}

// The key to memory comes with the connection.
func Example_memoryBeforeEstablished() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())

	b := &board{listening: make(chan string, 1)}
	server := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return b }, rt.OnLoop()))
	system.Root.RequestWithCustomSender(rt.CreateID(server, rdma.IDConfig{Memory: 4096}), &rdma.Serve{Addr: "127.0.0.1:0"}, server)

	r := &reader{seen: make(chan string, 1)}
	client := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return r }, rt.OnLoop()))
	system.Root.Send(rt.CreateID(client, rdma.IDConfig{Memory: 8}), &rdma.Dial{Addr: <-b.listening})

	fmt.Println(<-r.seen)
	// Output: the news
}
