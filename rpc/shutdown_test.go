package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// A runtime that has been shut down: nothing of a Client's waits for what will not come, whatever
// its connection was at.
func TestAfterShutdown(t *testing.T) {
	for name, test := range map[string]func(w *actortest.World, at string){
		"Dial": func(w *actortest.World, at string) {
			if err := w.Runtime().Shutdown(w.T().Context()); err != nil {
				w.T().Error(err)
			}
			if _, err := Dial(context.Background(), w.Runtime(), at); !errors.Is(err, rdma.ErrShutdown) {
				w.T().Errorf("Dial says %v, want ErrShutdown", err)
			}
		},
		"calls that wait": func(w *actortest.World, at string) {
			c := dialAt(w, at, WaitForReady())
			var err error
			waited := make(chan struct{})
			w.RemoveDevice("mem0")
			time.Sleep(time.Second)
			go func() {
				_, err = CallRaw(context.Background(), c, echo, nil, nil)
				close(waited)
			}()
			time.Sleep(time.Second)
			if err := w.Runtime().Shutdown(w.T().Context()); err != nil {
				w.T().Error(err)
			}
			<-waited
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, rdma.ErrShutdown) {
				w.T().Errorf("a call that waited says %v, want ErrUnavailable and ErrShutdown", err)
			}
			if _, err := CallRaw(context.Background(), c, echo, nil, nil); !errors.Is(err, rdma.ErrShutdown) {
				w.T().Errorf("a call says %v, want ErrShutdown", err)
			}
			c.Close()
		},
		"Close": func(w *actortest.World, at string) {
			c := dialAt(w, at)
			w.RemoveDevice("mem0")
			if err := w.Runtime().Shutdown(w.T().Context()); err != nil { // while it is about to connect again
				w.T().Error(err)
			}
			time.Sleep(time.Minute)
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, func(w *actortest.World) {
				s := NewServer(w.Host("mem1", there))
				at, err := s.Listen(w.T().Context(), there+":7471")
				if err != nil {
					w.T().Fatal(err)
				}
				test(w, at.String())
				s.Close()
			})
		})
	}
}

func dialAt(w *actortest.World, at string, opts ...ClientOption) *Client {
	c, err := Dial(w.T().Context(), w.Runtime(), at, append(opts, quick)...)
	if err != nil {
		w.T().Fatal(err)
	}
	return c
}
