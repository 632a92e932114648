package reconnect_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/iwarp"
)

// Word and Count are the messages between this client and its server. Each has a name, by which the
// other side recognizes it: package codec.
type (
	Word  struct{ Text string }
	Count struct{ Letters int }
)

var messages = codec.New(codec.JSON[*Word]("word"), codec.JSON[*Count]("count"))

// Messages of several types, on both sides.
func Example_messages() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())
	addr := counting(rt)
	done := make(chan struct{})
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			link := reconnect.Spawn(rt, ctx.Self(), reconnect.Config{Dial: rdma.Dial{Addr: addr, Timeout: 5 * time.Second}})
			b, err := messages.Marshal(&Word{"hello"})
			if err != nil { // the error has advice
				log.Fatal(err)
			}
			ctx.Send(link, reconnect.NewSend(1, b)) // waits for the connection
		case *rdma.Received:
			msg, err := messages.Unmarshal(m.Data)
			if count, ok := msg.(*Count); ok {
				fmt.Println(count.Letters, "letters")
			} else {
				fmt.Println(err)
			}
			ctx.Respond(&rdma.Close{})
		case *reconnect.Closed:
			close(done)
		}
	}, rt.OnLoop()))
	<-done
	// Output:
	// 5 letters
}

// counting listens, and answers each Word with its Count; it returns its address.
func counting(rt *rdma.Runtime) string {
	handler := actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Received:
			msg, err := messages.Unmarshal(m.Data)
			word, ok := msg.(*Word)
			if err != nil || !ok {
				ctx.Respond(&rdma.DestroyID{}) // not one of our clients
				return
			}
			if b, err := messages.Marshal(&Count{len(word.Text)}); err == nil {
				ctx.Respond(rdma.NewSend(b))
			}
		}
	})
	id := rt.CreateID(nil, rdma.IDConfig{Handler: handler})
	l, err := rdma.Ask[*rdma.Listening](context.Background(), rt, id, &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	return l.Local.String()
}
