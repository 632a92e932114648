package rpc

import (
	"context"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/eventloop"
)

// onLoop calls fn in the Receive of an actor on one of rt's loops, and returns fn's error.
func (r *rig) onLoop(rt *rdma.Runtime, fn func() error) error {
	result := make(chan error, 1)
	pid := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(string); ok {
			result <- fn()
		}
	}, rt.OnLoop()))
	defer r.System().Root.Stop(pid)
	r.System().Root.Send(pid, "go")
	return <-result
}

// mayStall configures a World in which a loop may be blocked.
var mayStall = actortest.Config{OnStall: func(eventloop.Stall) {}}

// A method that would wait for its own loop returns an error, and the loop goes on.
func TestWaitingOnALoop(t *testing.T) {
	ctx := context.Background()
	for name, wait := range map[string]func(r *rig) error{
		"Call": func(r *rig) error {
			_, err := CallRaw(ctx, r.c, echo, []byte("x"), nil)
			return err
		},
		"Call with a deadline": func(r *rig) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := CallRaw(ctx, r.c, echo, []byte("x"), nil)
			return err
		},
		"Recv": func(r *rig) error {
			in, err := Open(ctx, r.c, count, wrapperspb.Int64(-1))
			if err != nil {
				return err
			}
			defer in.Close()
			_, err = in.Receive()
			return err
		},
		"Call that waits for a connection": func(r *rig) error {
			c := NewClient(r.Runtime(), r.addr, ClientConfig{WaitForReady: true})
			defer c.Close()
			_, err := CallRaw(ctx, c, echo, nil, nil)
			return err
		},
		"Dial": func(r *rig) error {
			_, err := Dial(ctx, r.Runtime(), r.addr)
			return err
		},
		"Listen": func(r *rig) error {
			_, err := NewServer(r.Runtime()).Listen(ctx, "10.0.0.1:9000")
			return err
		},
		"Shutdown": func(r *rig) error { return r.s.Shutdown(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{world: mayStall}, func(s *Server) { handleEcho(s); handleCount(s) }, func(r *rig) {
				if err := r.onLoop(r.Runtime(), func() error { return wait(r) }); !errors.Is(err, eventloop.ErrOnLoop) {
					r.t.Errorf("got %v", err)
				}
				r.good()
			})
		})
	}
	t.Run("the server's loop", func(t *testing.T) {
		inWorld(t, rigConfig{world: mayStall}, handleEcho, func(r *rig) {
			err := r.onLoop(r.far, func() error {
				// the answer would have to be made by the same loop
				_, err := CallRaw(ctx, r.c, echo, []byte("x"), nil)
				return err
			})
			r.Advance(0)
			if err == nil {
				r.t.Error("answered by a loop that was waiting for the answer")
			}
			r.good()
		})
	})
}

// Client.Close and Server.Close return no error: on a loop they do not wait.
func TestClosingOnALoop(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		c := r.dial()
		_ = r.onLoop(r.Runtime(), func() error { c.Close(); return nil })
		_ = r.onLoop(r.far, func() error { r.s.Close(); return nil })
		r.Advance(0)
		if _, err := CallRaw(r.t.Context(), c, echo, nil, nil); !errors.Is(err, ErrClosed) {
			r.t.Errorf("after Close a call gets %v", err)
		}
		if _, err := Dial(r.t.Context(), r.Runtime(), r.addr); err == nil {
			r.t.Error("the server still listens")
		}
	})
}
