package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// A call that takes 20 ms on the way and 10 ms at the server is cancelled after every possible
// number of milliseconds. Whatever its outcome is, nothing is left of it, and the connection goes
// on.
func TestCancelAtEveryStep(t *testing.T) {
	inWorld(t, rigConfig{}, func(s *Server) {
		HandleRaw(s, block, func(ctx context.Context, q, reply []byte) ([]byte, error) {
			select {
			case <-time.After(10 * time.Millisecond):
				return append(reply, q...), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		handleEcho(s)
	}, func(r *rig) {
		r.Delay(10 * time.Millisecond)
		answered := 0
		for d := time.Duration(0); d < 45*time.Millisecond; d += time.Millisecond {
			ctx, cancel := context.WithCancel(r.t.Context())
			stop := time.AfterFunc(d, cancel)
			switch got, err := CallRaw(ctx, r.c, block, []byte("x"), nil); {
			case err == nil && string(got) == "x":
				answered++
			case !errors.Is(err, context.Canceled):
				r.t.Errorf("cancelled after %v: %q, %v", d, got, err)
			}
			stop.Stop()
			cancel()
		}
		if answered < 10 || answered > 20 {
			r.t.Errorf("%d of 45 calls were answered", answered)
		}
		r.Advance(time.Second)
		if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
			r.t.Errorf("%d and %d calls are still in flight", n, m)
		}
		r.Delay(0)
		r.good()
	})
}

// Many callers with little time, some with none, all over one connection.
func TestManyThatGiveUp(t *testing.T) {
	inWorld(t, rigConfig{client: ClientConfig{MaxCalls: 50}}, handleEcho, func(r *rig) {
		r.Delay(time.Millisecond)
		const callers, each = 64, 50
		errs := make(chan error, callers)
		for range callers {
			go func() {
				var wrong error
				for range each {
					ctx, cancel := context.WithTimeout(r.t.Context(), rand.N(5*time.Millisecond))
					got, err := CallRaw(ctx, r.c, echo, []byte("x"), nil)
					if err == nil && string(got) != "x" || err != nil && !errors.Is(err, ErrDeadline) && !errors.Is(err, ErrOverloaded) {
						wrong = errors.Join(wrong, err)
					}
					cancel()
				}
				errs <- wrong
			}()
		}
		for range callers {
			if err := <-errs; err != nil {
				r.t.Error(err)
			}
		}
		r.Advance(time.Second)
		if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
			r.t.Errorf("%d and %d calls are still in flight", n, m)
		}
		if r.c.link() == nil {
			r.t.Fatal("the connection was lost")
		}
		r.c.link().out.mu.Lock()
		defer r.c.link().out.mu.Unlock()
		if n := r.c.link().marked; n != 0 {
			r.t.Errorf("%d requests may not go as they were put, and there are none: every message is looked through", n)
		}
	})
}
