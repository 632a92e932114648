package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/rdmanet"
	"github.com/rdmactor/rdmactor/rpc"
)

// TestLayers plays programs above the loops twice with each seed: everything happens in the same
// order both times.
func TestLayers(t *testing.T) {
	for name, script := range map[string]func(w *World){"calls": calls, "streams": streams, "links": links} {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds(20) {
				twice(t, Config{Seed: seed, Kind: Kind(seed % 4)}, script)
			}
		})
	}
}

// handles are numbered over the whole process.
var handles = regexp.MustCompile(`\bid \d+`)

// text returns an error without the parts that differ from run to run.
func text(err error) string { return handles.ReplaceAllString(fmt.Sprint(err), "id") }

const (
	near = "10.0.0.1"
	far  = "10.0.0.2"
	at   = far + ":7471"
)

// pair starts a server, and after that listens a client, each with a runtime of two loops. Some
// time after the client has returned, the world ends.
func pair(w *World, server, client func(p *Process, rt *rdma.Runtime) error) {
	done := false
	start := func(name, addr string, main func(p *Process, rt *rdma.Runtime) error) {
		w.Machine(name, addr+"/24").Start(func(p *Process) {
			rt, err := p.Open(rdma.Config{Loops: make([]eventloop.Config, 2)})
			if err == nil {
				err = main(p, rt)
			}
			if err != nil {
				w.Fail("%s: %v", p.Name(), err)
			}
		})
	}
	start("far", far, server)
	w.RunFor(time.Second)
	start("near", near, func(p *Process, rt *rdma.Runtime) error {
		defer func() { done = true }()
		return client(p, rt)
	})
	if !w.RunUntil(5*time.Minute, func() bool { return done }) {
		w.Fail("the client does not end")
	}
}

// several runs fn on n goroutines of a process, and waits for them.
func several(p *Process, n int, fn func(i int)) {
	left := n
	for i := range n {
		p.Go(func() {
			defer func() { left-- }()
			fn(i)
		})
	}
	for left > 0 {
		p.Sleep(time.Second)
	}
}

var (
	echoes = rpc.NewMethod[rpc.Bytes, rpc.Bytes]("order.Echo", rpc.MethodConfig{Idempotent: true})
	count  = rpc.NewStream[rpc.Bytes, rpc.Bytes]("order.Count")
)

// calls makes goroutines call, with deadlines that some calls miss, and read streams that some
// of them give up. The server drains during that.
func calls(w *World) {
	pair(w, func(p *Process, rt *rdma.Runtime) error {
		s := rpc.NewServer(rt, rpc.ServerConfig{MaxCalls: 4})
		rpc.Handle(s, echoes, func(_ context.Context, q *rpc.Bytes) (*rpc.Bytes, error) {
			p.Sleep(time.Duration(p.Rand().IntN(20)) * time.Millisecond)
			return q, nil
		})
		rpc.HandleStream(s, count, func(_ context.Context, q *rpc.Bytes, out *rpc.Sender[rpc.Bytes]) error {
			for range 50 {
				if err := out.Send(q); err != nil {
					return err
				}
			}
			return nil
		})
		if _, err := s.Listen(p.Context(), at); err != nil {
			return err
		}
		p.Go(func() {
			p.Sleep(1100 * time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			w.Trace("drained: %s", text(s.Shutdown(ctx)))
		})
		return nil
	}, func(p *Process, rt *rdma.Runtime) error {
		ctx := context.Background()
		c, err := rpc.Dial(ctx, rt, at, rpc.ClientConfig{
			Timeout: 15 * time.Millisecond, StreamWindow: 64 << 10, WaitForReady: true,
			Retry: rpc.Retry{Attempts: 3},
		})
		if err != nil {
			return err
		}
		several(p, 6, func(i int) {
			for n := range 10 {
				q := rpc.Bytes(make([]byte, 100+n*20_000))
				if i%2 == 0 {
					r, err := rpc.Call(ctx, c, echoes, &q)
					w.Trace("call %d.%d: %v %s", i, n, r != nil, text(err))
					continue
				}
				within, cancel := context.WithTimeout(ctx, time.Duration(1+p.Rand().IntN(1000))*time.Millisecond)
				got := 0
				r, err := rpc.Open(within, c, count, &q)
				for err == nil && got < 40 {
					if _, err = r.Receive(); err == nil {
						got++
					}
				}
				w.Trace("stream %d.%d: %d %s", i, n, got, text(err))
				cancel()
			}
		})
		c.Close()
		return nil
	})
}

// streams makes goroutines write, and two read on each connection, with deadlines.
func streams(w *World) {
	pair(w, func(p *Process, rt *rdma.Runtime) error {
		l, err := rdmanet.Listen(p.Context(), rt, at)
		if err != nil {
			return err
		}
		for {
			c, err := l.Accept()
			if err != nil {
				w.Trace("accept: %v", errors.Is(err, net.ErrClosed))
				return nil
			}
			p.Go(func() {
				n, err := io.Copy(c, c)
				w.Trace("echoed %d: %s", n, text(err))
				_ = c.Close()
			})
		}
	}, func(p *Process, rt *rdma.Runtime) error {
		several(p, 3, func(i int) {
			c, err := rdmanet.Dial(context.Background(), rt, at)
			if err != nil {
				w.Trace("dial %d: %s", i, text(err))
				return
			}
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			several(p, 3, func(k int) {
				if k == 0 {
					n, err := c.Write(make([]byte, 1<<20))
					_ = c.(*rdmanet.Conn).CloseWrite()
					w.Trace("written %d: %d %s", i, n, text(err))
					return
				}
				all := 0
				b := make([]byte, 50_000)
				for {
					n, err := c.Read(b)
					if all += n; err != nil {
						w.Trace("read %d by %d: %d %s", i, k, all, text(err))
						return
					}
				}
			})
			_ = c.Close()
		})
		return nil
	})
}

// links makes links that reconnect, to a server that closes the connections it accepts, and actors
// that may block.
func links(w *World) {
	pair(w, func(p *Process, rt *rdma.Runtime) error {
		owner := p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *rdma.ConnectRequest:
				p.Sleep(time.Duration(p.Rand().IntN(5)) * time.Millisecond)
				ctx.Respond(&rdma.Accept{})
			case *rdma.Received:
				w.Trace("the server got %d bytes", len(m.Data))
				ctx.Respond(&rdma.DestroyID{})
			}
		}, rt.OffLoop()))
		id := rt.CreateID(owner)
		_, err := rdma.Ask[*rdma.Listening](p.Context(), rt, id, &rdma.Serve{Addr: at})
		return err
	}, func(p *Process, rt *rdma.Runtime) error {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		several(p, 4, func(i int) {
			closed := false
			owner := p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *reconnect.Up:
					w.Trace("link %d is up", i)
					ctx.Respond(rdma.NewSend(make([]byte, 10*(i+1))))
				case *reconnect.Down:
					w.Trace("link %d is down, until %v", i, time.Until(m.NextTry))
				case *reconnect.Closed:
					closed = true
				}
			}, []actor.PropsOption{rt.OnLoop(), rt.OffLoop()}[i%2]))
			reconnect.Spawn(rt, owner, reconnect.Config{Dial: rdma.Dial{Addr: at}, Context: ctx})
			for !closed {
				p.Sleep(time.Second)
			}
		})
		return nil
	})
}
