package remoting_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// BenchmarkRequest makes requests to each kind of actor, one after the other. Both nodes are in
// this process, so an operation costs what both sides do. bench/ measures two processes.
func BenchmarkRequest(b *testing.B) {
	eachKind(b, func(b *testing.B, client *node, echo *actor.PID) {
		for b.Loop() {
			request(b, client, echo)
		}
	})
}

// BenchmarkRequests makes requests from 64 goroutines.
func BenchmarkRequests(b *testing.B) {
	eachKind(b, func(b *testing.B, client *node, echo *actor.PID) {
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				request(b, client, echo)
			}
		})
	})
}

func request(tb testing.TB, client *node, to *actor.PID) {
	if _, err := client.ask(to, text("hello")); err != nil {
		tb.Error(err)
	}
}

func eachKind(b *testing.B, run func(b *testing.B, client *node, echo *actor.PID)) {
	for _, kind := range []string{"loop", "default"} {
		b.Run(kind, func(b *testing.B) {
			server, client := start(b, remoting.Config{Expose: everything}), start(b, remoting.Config{})
			server.spawn("echo", echo, server.kinds()[kind]...)
			request(b, client, server.pid("echo")) // connects
			b.ReportAllocs()
			run(b, client, server.pid("echo"))
		})
	}
}

// BenchmarkOneWay sends messages to each kind of actor, whose sender waits while there is no room.
func BenchmarkOneWay(b *testing.B) {
	for _, kind := range []string{"loop", "default"} {
		b.Run(kind, func(b *testing.B) {
			server := start(b, remoting.Config{Expose: everything})
			client := start(b, remoting.Config{Overflow: remoting.Block})
			server.spawn("echo", echo, server.kinds()[kind]...)
			n, arrived := 0, make(chan struct{})
			server.spawn("sink", func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.BytesValue); !ok {
					return
				}
				if n++; n == b.N {
					close(arrived)
				}
			}, server.kinds()[kind]...)
			to, m := server.pid("sink"), wrapperspb.Bytes(make([]byte, 64))
			request(b, client, server.pid("echo"))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				client.sys.Root.Send(to, m)
			}
			<-arrived
		})
	}
}
