package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/internal/relisten"
)

// After a runtime was shut down, no method of a Client waits forever, whatever its connection was
// doing.
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
			c := dialAt(w, at, ClientConfig{WaitForReady: true})
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
			// while it is about to connect again
			if err := w.Runtime().Shutdown(w.T().Context()); err != nil {
				w.T().Error(err)
			}
			time.Sleep(time.Minute)
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
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

// Serve ends with an error when its listener has ended.
func TestServeEndsWithItsListener(t *testing.T) {
	for name, tt := range map[string]struct {
		end func(w *actortest.World, rt *rdma.Runtime)
		is  error
	}{
		"device removed": {func(w *actortest.World, _ *rdma.Runtime) { w.RemoveDevice("mem1") }, unix.ENODEV},
		"shut down": {func(w *actortest.World, rt *rdma.Runtime) {
			if err := rt.Shutdown(w.T().Context()); err != nil {
				w.T().Error(err)
			}
		}, rdma.ErrShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				far := w.Host("mem1", there)
				s := NewServer(far)
				over := make(chan error, 1)
				go func() { over <- s.Serve(w.T().Context(), there+":7471") }()
				time.Sleep(time.Second)
				tt.end(w, far)
				select {
				case err := <-over:
					if !errors.Is(err, tt.is) {
						w.T().Errorf("Serve says %v, want %v", err, tt.is)
					}
				case <-time.After(2 * relisten.GiveUp):
					w.T().Error("Serve goes on")
				}
				s.Close()
			})
		})
	}
}

// A Dial or a Close returns if a Shutdown comes, or if it is given up, whatever the client was
// doing. If it did not, the World would notice that nothing goes on.
func TestShutdownAtEveryStage(t *testing.T) {
	for stage, at := range map[string]struct {
		before func(w *actortest.World)
		after  time.Duration
	}{
		"at once":          {func(*actortest.World) {}, 0},
		"while it dials":   {func(w *actortest.World) { w.Silence(there) }, 5 * time.Millisecond},
		"between attempts": {func(w *actortest.World) { w.RemoveDevice("mem1") }, 300 * time.Millisecond},
	} {
		for how, end := range map[string]func(w *actortest.World, cancel func()){
			"cancelled": func(_ *actortest.World, cancel func()) { cancel() },
			"Shutdown": func(w *actortest.World, _ func()) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_ = w.Runtime().Shutdown(ctx) // an operation in progress may be aborted
			},
		} {
			inWorldAt := func(test func(w *actortest.World, at string)) func(t *testing.T) {
				return func(t *testing.T) {
					actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
						s := NewServer(w.Host("mem1", there))
						addr, err := s.Listen(w.T().Context(), there+":7471")
						if err != nil {
							w.T().Fatal(err)
						}
						test(w, addr.String())
						s.Close()
					})
				}
			}
			t.Run("Dial, "+how+" "+stage, inWorldAt(func(w *actortest.World, addr string) {
				at.before(w)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				result := make(chan error, 1)
				go func() {
					c, err := Dial(ctx, w.Runtime(), addr, quick)
					if err == nil {
						c.Close()
					}
					result <- err
				}()
				time.Sleep(at.after)
				end(w, cancel)
				var e *Error
				if err := <-result; err != nil && !errors.As(err, &e) {
					w.T().Errorf("Dial says %v, want an *Error", err)
				}
			}))
			t.Run("Close, "+how+" "+stage, inWorldAt(func(w *actortest.World, addr string) {
				c := dialAt(w, addr)
				at.before(w)
				if stage != "between attempts" {
					w.Disconnect(c.link().id)
				}
				time.Sleep(at.after)
				end(w, func() {})
				c.Close()
				time.Sleep(time.Minute)
				c.Close()
				_, err := CallRaw(context.Background(), c, echo, nil, nil)
				want(w.T(), err, ErrClosed, FateNotSent)
			}))
		}
	}
}

// A context that ended before, or ends while there is no answer.
func TestDialWithoutTime(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := Dial(over, w.Runtime(), there+":7471"); !errors.Is(err, context.Canceled) {
			w.T().Errorf("%v, want Canceled", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begin := w.Elapsed()
		if _, err := Dial(ctx, w.Runtime(), "10.0.0.9:7471"); !errors.Is(err, ErrDeadline) {
			w.T().Errorf("%v, want ErrDeadline", err)
		}
		if d := w.Elapsed() - begin; d != time.Second {
			w.T().Errorf("after %v", d)
		}
	})
}

// Numbers that make no sense are replaced by the defaults, or by the least that works.
func TestConfigWithoutSense(t *testing.T) {
	for name, cfg := range map[string]ClientConfig{
		"First": {Backoff: reconnect.Backoff{First: -1}}, "Most": {Backoff: reconnect.Backoff{Most: -1}},
		"Stable":   {Backoff: reconnect.Backoff{Stable: -1}},
		"all":      {Backoff: reconnect.Backoff{First: -1, Most: -1, Stable: -1}},
		"calls":    {MaxCalls: -1},
		"streams":  {MaxStreams: -1},
		"messages": {MaxMessage: -1, Credits: -1},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				far := w.Host("mem1", there)
				s := NewServer(far)
				handleEcho(s)
				addr, err := s.Listen(w.T().Context(), there+":7471")
				if err != nil {
					w.T().Fatal(err)
				}
				cfg.WaitForReady, cfg.Timeout, cfg.StreamWindow = true, -1, -1
				cfg.Retry = Retry{Attempts: -1, Backoff: -1, Max: -1}
				c, err := Dial(w.T().Context(), w.Runtime(), addr.String(), cfg)
				if err != nil {
					w.T().Fatal(err)
				}
				for range 5 {
					if _, err := CallRaw(w.T().Context(), c, echo, nil, nil); err != nil {
						w.T().Error(err)
					}
					w.Disconnect(c.link().id)
					time.Sleep(time.Minute)
				}
				c.Close()
				s.Close()
			})
		})
	}
}

// A server whose machine has crashed, or whose loop is blocked: Shutdown ends when its context has.
func TestDrainOnALoopThatStandsStill(t *testing.T) {
	for name, stop := range map[string]func(w *actortest.World, s *Server){
		"crashed": func(w *actortest.World, _ *Server) { w.Crash("mem1") },
		"frozen":  func(w *actortest.World, _ *Server) { w.Freeze("mem1") },
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				s := NewServer(w.Host("mem1", there))
				handleEcho(s)
				addr, err := s.Listen(w.T().Context(), there+":7471")
				if err != nil {
					w.T().Fatal(err)
				}
				c := dialAt(w, addr.String())
				stop(w, s)
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				begin := w.Elapsed()
				if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					w.T().Errorf("%v, want DeadlineExceeded", err)
				}
				if d := w.Elapsed() - begin; d > 3*time.Second+2*abortFor {
					w.T().Errorf("after %v", d)
				}
				c.Close()
			})
		})
	}
}

func dialAt(w *actortest.World, at string, cfg ...ClientConfig) *Client {
	one := optional.Value(cfg)
	one.Backoff = quick.Backoff
	c, err := Dial(w.T().Context(), w.Runtime(), at, one)
	if err != nil {
		w.T().Fatal(err)
	}
	return c
}
