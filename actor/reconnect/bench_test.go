package reconnect_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/iwarp"
)

// echo answers.
func echo(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.ConnectRequest:
		ctx.Respond(&rdma.Accept{})
	case *rdma.Received:
		ctx.Send(ctx.Sender(), rdma.NewSend(m.Data))
	}
}

// benched starts a client and an echo on the embedded device.
func benched(b *testing.B, client func(link func() *actor.PID) actor.ReceiveFunc) (root *actor.RootContext, owner *actor.PID) {
	b.Helper()
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	server := sys.Root.Spawn(actor.PropsFromFunc(echo, rt.OnLoop()))
	l, err := rdma.Ask[*rdma.Listening](context.Background(), rt, rt.CreateID(server), &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	var link *actor.PID
	owner = sys.Root.Spawn(actor.PropsFromFunc(client(func() *actor.PID { return link }), rt.OnLoop()))
	link = reconnect.Spawn(rt, owner, reconnect.Config{Dial: rdma.Dial{Addr: l.Local.String()}})
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = rt.Shutdown(ctx)
		sys.Shutdown()
	})
	return sys.Root, owner
}

// run sets how many messages are to be answered.
type run struct {
	n    int
	done chan struct{}
}

// A round trip of 64 bytes through the actor.
func BenchmarkRoundTrip(b *testing.B) {
	var left *run
	payload := make([]byte, 64)
	root, owner := benched(b, func(link func() *actor.PID) actor.ReceiveFunc {
		return func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *run:
				left = m
				ctx.Send(link(), rdma.NewSend(payload))
			case *rdma.Received:
				if left.n--; left.n > 0 {
					ctx.Send(link(), rdma.NewSend(m.Data))
					return
				}
				left.done <- struct{}{}
			}
		}
	})
	once(b, root, owner)
}

// 64 messages of 64 bytes with fates, under way at the same time, and their echoes.
func BenchmarkTagged(b *testing.B) {
	var left *run
	sent := 0
	payload := make([]byte, 64)
	root, owner := benched(b, func(link func() *actor.PID) actor.ReceiveFunc {
		return func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *run:
				left, sent = m, min(m.n, 64)
				for range sent {
					ctx.Send(link(), reconnect.NewSend(1, payload))
				}
			case *rdma.Received:
				if left.n--; left.n == 0 {
					left.done <- struct{}{}
				} else if sent < b.N && left.n >= 64 {
					sent++
					ctx.Send(link(), reconnect.NewSend(1, payload))
				}
			}
		}
	})
	once(b, root, owner)
}

// The same from an owner with a private queue, which posts only messages that can be sent
// immediately.
func BenchmarkPost(b *testing.B) {
	var left *run
	var up *reconnect.Up
	var next *reconnect.Send
	sent, awake := 0, false
	payload := make([]byte, 64)
	type wake struct{}
	again := &wake{}
	root, owner := benched(b, func(func() *actor.PID) actor.ReceiveFunc {
		post := func() {
			for left != nil && sent < b.N && sent-(b.N-left.n) < 64 {
				if next == nil {
					next = reconnect.NewSend(1, payload)
					next.Quiet = true
				}
				if up.Post(next) != nil {
					return
				}
				next = nil
				sent++
			}
		}
		return func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *reconnect.Up:
				up = m
			case *run:
				left, sent = m, b.N-m.n
				ctx.Send(ctx.Self(), again)
			case *wake:
				awake = false
				post()
			case *rdma.Writable:
				post()
			case *rdma.Received:
				if left.n--; left.n == 0 {
					left.done <- struct{}{}
				} else if !awake {
					awake = true
					ctx.Send(ctx.Self(), again)
				}
			}
		}
	})
	time.Sleep(100 * time.Millisecond) // it connects
	once(b, root, owner)
}

// once makes the owner do b.N of them.
func once(b *testing.B, root *actor.RootContext, owner *actor.PID) {
	b.Helper()
	done := make(chan struct{})
	root.Send(owner, &run{1, done})
	<-done
	b.ReportAllocs()
	b.ResetTimer()
	root.Send(owner, &run{b.N, done})
	<-done
}
