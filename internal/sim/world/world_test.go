package world

import (
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
		}, rt.OffLoop()))
		_ = rt.ListenAndServe(p.Context(), "10.0.0.1:7471", owner)
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
					ctx.Send(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: "10.0.0.1:7471"})
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
			twice(t, Config{Seed: seed, Kind: kind}, echo)
		}
	}
}

// twice runs a script twice, and fails if the runs differ or fail.
func twice(t *testing.T, cfg Config, script func(w *World)) {
	t.Helper()
	var lines [2][]string
	for i := range lines {
		cfg.Print = func(s string) {
			if !strings.HasPrefix(s, Aside) {
				lines[i] = append(lines[i], s)
			}
		}
		if r := Run(t, cfg, script); r.Failure != "" {
			t.Errorf("%v, seed %d: %s\n%s", cfg.Kind, cfg.Seed, r.Failure, strings.Join(lines[i][max(0, len(lines[i])-40):], "\n"))
			return
		}
	}
	for i, l := range lines[0] {
		if i >= len(lines[1]) || l != lines[1][i] {
			t.Errorf("%v, seed %d: two runs differ at line %d:\n%s\n\n%s", cfg.Kind, cfg.Seed, i,
				strings.Join(lines[0][max(0, i-5):min(i+5, len(lines[0]))], "\n"), strings.Join(lines[1][max(0, i-5):min(i+5, len(lines[1]))], "\n"))
			return
		}
	}
}

// TestGoroutinesEndOneByOne: the deferred calls of a process's goroutines run when the World ends,
// and need no locks. The race detector detects concurrent ends.
func TestGoroutinesEndOneByOne(t *testing.T) {
	ended := 0
	r := Run(t, Config{Seed: 1}, func(w *World) {
		w.Machine("m1", "10.0.0.1/24").Start(func(p *Process) {
			for range 8 {
				p.Go(func() {
					defer func() { ended++ }()
					p.Sleep(time.Hour)
				})
			}
		})
		w.RunFor(time.Second)
	})
	if r.Failure != "" || ended != 8 {
		t.Errorf("%d of 8 goroutines have ended: %s", ended, r.Failure)
	}
}

// TestDeferredWaits: a goroutine's deferred calls may wait when the World ends it, for example for
// a server that it closes.
func TestDeferredWaits(t *testing.T) {
	var ended []string
	r := Run(t, Config{Seed: 1}, func(w *World) {
		w.Machine("m1", "10.0.0.1/24").Start(func(p *Process) {
			defer func() { ended = append(ended, "main") }()
			defer func() {
				p.Sleep(time.Second)
				ended = append(ended, "what it waits for")
			}()
			p.Sleep(time.Hour)
		})
		w.RunFor(time.Second)
	})
	if r.Failure != "" || fmt.Sprint(ended) != "[what it waits for main]" {
		t.Errorf("%q have ended: %s", ended, r.Failure)
	}
}
