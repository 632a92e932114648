package world

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// echo is a script: clients send messages to a server, which sends them back.
func echo(w *World) {
	const clients, messages = 3, 10
	server := w.Machine("server", "10.0.0.1/24")
	server.Start(func(p *Process) {
		rt, err := p.Open(rdma.Config{Loops: make([]eventloop.Config, 2)})
		if err != nil {
			w.Fail("open: %v", err)
			return
		}
		owner := p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *rdma.ConnectRequest:
				ctx.Respond(&rdma.Accept{})
			case *rdma.Received:
				ctx.Respond(rdma.NewSend(m.Data))
			}
		}, rt.OnLoop()))
		_ = rt.ListenAndServe(context.Background(), "10.0.0.1:7471", owner, rdma.IDConfig{})
	})
	done := 0
	for i := range clients {
		client := w.Machine(fmt.Sprint("client", i), fmt.Sprintf("10.0.0.%d/24", i+2))
		client.Start(func(p *Process) {
			p.Sleep(time.Second)
			rt, err := p.Open(rdma.Config{})
			if err != nil {
				w.Fail("open: %v", err)
				return
			}
			n := 0
			p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *actor.Started:
					ctx.Send(rt.CreateID(ctx.Self(), rdma.IDConfig{}), &rdma.Dial{Addr: "10.0.0.1:7471"})
				case *rdma.Established:
					ctx.Respond(rdma.NewSend([]byte("hello")))
				case *rdma.Received:
					w.Trace("%s got %d", p.Name(), n)
					if n++; n == messages {
						done++
						ctx.Respond(&rdma.Close{})
						return
					}
					ctx.Respond(rdma.NewSend(m.Data))
				case rdma.Failure:
					w.Fail("%v", m)
				}
			}, rt.OnLoop()))
		})
	}
	if !w.RunUntil(time.Minute, func() bool { return done == clients }) {
		w.Fail("%d of %d clients have finished", done, clients)
	}
}

func TestEcho(t *testing.T) {
	for _, kind := range []Kind{Embedded, Twin, TwinSoftRoCE, TwinSIW} {
		for seed := range uint64(20) {
			var lines [2][]string
			var hash [2]uint64
			for i := range 2 {
				r := Run(t, Config{Seed: seed, Kind: kind, Print: func(s string) {
					if !strings.HasPrefix(s, Aside) {
						lines[i] = append(lines[i], s)
					}
				}}, echo)
				if r.Failure != "" {
					t.Fatalf("%v, seed %d: %s", kind, seed, r.Failure)
				}
				hash[i] = r.Hash
			}
			if hash[0] != hash[1] {
				for i, l := range lines[0] {
					if i >= len(lines[1]) || l != lines[1][i] {
						t.Fatalf("%v, seed %d: two runs differ at line %d:\n%v\n%v", kind, seed, i, lines[0][i:min(i+5, len(lines[0]))], lines[1][i:min(i+5, len(lines[1]))])
					}
				}
			}
		}
	}
}
