package actor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

// shelf grants its peer 4 KiB of memory, and looks at the peer's bytes when a message names their
// place.
type shelf struct {
	listening chan string
	memory    *rdma.Memory
	seen      chan string
}

func (s *shelf) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Listening:
		s.listening <- m.Local.String()
	case *rdma.ConnectRequest:
		ctx.Respond(&rdma.Accept{})
	case *rdma.Established: // the Sender is the connection
		ctx.Request(ctx.Sender(), &rdma.AllocMemory{Bytes: 4096, Access: rdma.RemoteRead | rdma.RemoteWrite})
	case *rdma.MemoryAllocated:
		s.memory = m.Memory
		ctx.Request(ctx.Sender(), &rdma.Grant{Memory: m.Memory})
	case *rdma.Granted:
		key, err := m.Key.MarshalBinary()
		if err != nil {
			log.Fatal(err)
		}
		ctx.Respond(rdma.NewSend(key))
	case *rdma.Received: // the peer has written, and names the place
		b := make([]byte, 11)
		// the peer chose the offset: ReadAt looks at it
		if _, err := s.memory.ReadAt(b, int64(m.Data[0])); err != nil {
			log.Fatal(err)
		}
		s.seen <- string(b)
	case rdma.Failure:
		log.Print(m)
	}
}

// writer puts something there.
type writer struct {
	memory *rdma.Memory
	key    rdma.RemoteKey
}

func (w *writer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Received:
		if err := w.key.UnmarshalBinary(m.Data); err != nil {
			log.Fatal(err)
		}
		ctx.Request(ctx.Sender(), &rdma.AllocMemory{Bytes: 64})
	case *rdma.MemoryAllocated:
		w.memory = m.Memory
		if _, err := w.memory.WriteAt([]byte("hello there"), 0); err != nil {
			log.Fatal(err)
		}
		ctx.Request(ctx.Sender(), &rdma.Write{Memory: w.memory, Length: 11, Key: w.key, Offset: 200})
		// behind the Write: when it comes the bytes are there
		ctx.Send(ctx.Sender(), rdma.NewSend([]byte{200}))
	case *rdma.WriteDone: // w.memory may be written again
	case rdma.Failure:
		log.Print(m)
	}
}

// One side grants memory, the other writes to it, and reports that in a message behind the Write.
func Example_remoteMemory() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())

	server := &shelf{listening: make(chan string, 1), seen: make(chan string, 1)}
	owner := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return server }, rt.OnLoop()))
	system.Root.RequestWithCustomSender(rt.CreateID(owner, rdma.IDConfig{Memory: 4096}), &rdma.Serve{Addr: "127.0.0.1:0"}, owner)

	client := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &writer{} }, rt.OnLoop()))
	system.Root.Send(rt.CreateID(client, rdma.IDConfig{Memory: 64}), &rdma.Dial{Addr: <-server.listening})

	fmt.Println(<-server.seen)
	// Output: hello there
}
