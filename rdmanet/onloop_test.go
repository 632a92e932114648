package rdmanet

import (
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
)

// A method that would wait for its own loop returns an error, and the loop goes on.
func TestWaitingOnALoop(t *testing.T) {
	for name, wait := range map[string]func(rt *rdma.Runtime, l *Listener, c *Conn) error{
		"Read": func(_ *rdma.Runtime, _ *Listener, c *Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"Write": func(_ *rdma.Runtime, _ *Listener, c *Conn) error {
			_, err := c.Write(make([]byte, 10<<20))
			return err
		},
		"Accept": func(_ *rdma.Runtime, l *Listener, _ *Conn) error {
			_, err := l.Accept()
			return err
		},
		"Dial": func(rt *rdma.Runtime, l *Listener, _ *Conn) error {
			_, err := Dial(t.Context(), rt, l.Addr().String())
			return err
		},
		"Listen": func(rt *rdma.Runtime, _ *Listener, _ *Conn) error {
			_, err := Listen(t.Context(), rt, "10.0.0.2:9000")
			return err
		},
		"Listener.Close": func(_ *rdma.Runtime, l *Listener, _ *Conn) error {
			if err := l.Close(); err != nil {
				return err
			}
			return eventloop.ErrOnLoop // Close has nothing to report, and did not wait
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorlds(t, func(w *actortest.World, rt *rdma.Runtime, l *Listener) {
				client, server := joined(w, rt, l)
				result := make(chan error, 1)
				pid := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(string); ok {
						result <- wait(rt, l, client)
					}
				}, rt.OnLoop()))
				w.System().Root.Send(pid, "go")
				if err := <-result; !errors.Is(err, eventloop.ErrOnLoop) {
					w.T().Errorf("got %v", err)
				}
				w.System().Root.Stop(pid)
				if _, err := server.Write([]byte("x")); err != nil {
					w.T().Error(err)
				}
				if n, err := client.Read(make([]byte, 1)); n != 1 || err != nil {
					w.T().Errorf("afterwards: %d bytes, %v", n, err)
				}
			}, actortest.Config{OnStall: func(eventloop.Stall) {}})
		})
	}
}
