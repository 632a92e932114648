package rpchealth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }

// serve runs test with a client of a server that has the service.
func serve(t *testing.T, test func(w *actortest.World, s *rpc.Server, h *Health, c *rpc.Client)) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		s := rpc.NewServer(w.Host("mem1", "10.0.0.2"))
		defer s.Close()
		h := Register(s)
		if _, err := s.Listen(w.T().Context(), "10.0.0.2:7471"); err != nil {
			w.T().Fatal(err)
		}
		c := rpc.NewClient(w.Runtime(), "10.0.0.2:7471")
		defer c.Close()
		test(w, s, h, c)
	})
}

func TestCheck(t *testing.T) {
	serve(t, func(w *actortest.World, _ *rpc.Server, h *Health, c *rpc.Client) {
		h.Set("shop.Orders", true)
		h.Set("shop.Stock", false)
		for service, want := range map[string]bool{"": true, "shop.Orders": true, "shop.Stock": false} {
			if got, err := Check(w.T().Context(), c, service); err != nil || got != want {
				w.T().Errorf("%q: %v, %v", service, got, err)
			}
		}
		if got, err := Check(w.T().Context(), c, "shop.Other"); got || !errors.Is(err, ErrUnknownService) {
			w.T().Errorf("%v, %v", got, err)
		}
	})
}

// A watcher gets the present state and every change, and learns that the server ends before it
// does.
func TestWatch(t *testing.T) {
	serve(t, func(w *actortest.World, s *rpc.Server, h *Health, c *rpc.Client) {
		h.Set("shop.Orders", false)
		var states []bool
		var last error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for serving, err := range Watch(w.T().Context(), c, "shop.Orders") {
				if last = err; err == nil {
					states = append(states, serving)
				}
			}
		}()
		w.Wait()
		h.Set("shop.Orders", true)
		w.Wait()
		h.Set("shop.Stock", true) // does not concern it
		w.Wait()
		if err := s.Shutdown(w.T().Context()); err != nil {
			w.T().Error(err)
		}
		<-ended
		if len(states) != 3 || states[0] || !states[1] || states[2] || !errors.Is(last, rpc.ErrDraining) {
			w.T().Errorf("%v, %v", states, last)
		}
	})
}

// Watches have places apart from streams, and as many: they take none from streams, and are refused
// beyond them.
func TestWatchesTakeNoStreams(t *testing.T) {
	open := rpc.NewStream[rpc.Bytes, rpc.Bytes]("test.Open")
	for _, watched := range []bool{false, true} {
		actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
			s := rpc.NewServer(w.Host("mem1", "10.0.0.2"), rpc.ServerConfig{MaxStreamsInAll: 16})
			defer s.Close()
			Register(s)
			rpc.HandleStream(s, open, func(ctx context.Context, _ *rpc.Bytes, _ *rpc.Sender[rpc.Bytes]) error {
				<-ctx.Done()
				return ctx.Err()
			})
			if _, err := s.Listen(w.T().Context(), "10.0.0.2:7471"); err != nil {
				w.T().Fatal(err)
			}
			c := rpc.NewClient(w.Runtime(), "10.0.0.2:7471")
			defer c.Close()
			// fill begins streams until one is refused.
			fill := func(begin func() <-chan error) (n int) {
				for ; n < 100; n++ {
					ended := begin()
					w.Wait()
					select {
					case err := <-ended:
						if !errors.Is(err, rpc.ErrOverloaded) || !strings.Contains(err.Error(), "MaxStreamsInAll") {
							w.T().Errorf("%v, want ErrOverloaded, with the limit", err)
						}
						return n
					default:
					}
				}
				return n
			}
			ctx, cancel := context.WithCancel(w.T().Context())
			defer w.Wait()
			defer cancel()
			if watched {
				n := fill(func() <-chan error {
					ended := make(chan error, 1)
					go func() {
						for _, err := range Watch(ctx, c, "") {
							if err != nil {
								ended <- err
							}
						}
					}()
					return ended
				})
				if n < 4 || n > 16 {
					w.T().Errorf("%d watches", n)
				}
			}
			n := fill(func() <-chan error {
				ended := make(chan error, 1)
				go func() {
					in, err := rpc.Open(ctx, c, open, new(rpc.Bytes))
					if err == nil {
						_, err = in.Receive()
					}
					ended <- err
				}()
				return ended
			})
			if n != 4 {
				w.T().Errorf("%d streams of one client, want 4 of 16 places (watched: %v)", n, watched)
			}
		})
	}
}

// A watcher that goes away ends the handler.
func TestWatchIsLeft(t *testing.T) {
	serve(t, func(w *actortest.World, s *rpc.Server, _ *Health, c *rpc.Client) {
		for serving, err := range Watch(w.T().Context(), c, "") {
			if !serving || err != nil {
				w.T().Errorf("%v, %v", serving, err)
			}
			break
		}
		w.Advance(time.Second)
		if n := s.InFlight(); n != 0 {
			w.T().Errorf("%d calls are left", n)
		}
	})
}
