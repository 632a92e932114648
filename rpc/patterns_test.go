package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// patterns are interceptors as net/http's and gRPC's users write them. Each lets every call succeed
// in the end, at either side; handlers is how often a handler may be called for it.
var patterns = map[string]struct {
	around   Interceptor
	handlers int64
}{
	"time-out": {giveUpAfter(time.Hour, nil), 1},
	"recover": {func(ctx context.Context, _ *Info, next func(context.Context) error) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("recovered: %v", v)
			}
		}()
		return next(ctx)
	}, 1},
	"retry": {func(ctx context.Context, _ *Info, next func(context.Context) error) (err error) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		_ = next(over) // an attempt that fails, unless a handler ignores its context
		for range 3 {
			if err = next(ctx); err == nil {
				break
			}
		}
		return err
	}, 2},
	"twice": {func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		if err := next(ctx); err != nil {
			return err
		}
		return next(ctx)
	}, 2},
	"hedge": {func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- next(ctx) }()
		}
		err := <-errs
		if err != nil {
			err = <-errs
		}
		return err
	}, 2},
	"context": {func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		return next(WithMetadata(context.WithoutCancel(ctx), "k", "v"))
	}, 1},
	"other goroutine": {func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		err := errors.New("none")
		done := make(chan struct{})
		go func() {
			defer close(done)
			err = next(ctx)
		}()
		<-done
		return err
	}, 1},
}

// Calls and streams succeed within every pattern, at either side, and nothing is left of them.
func TestPatterns(t *testing.T) {
	for name, p := range patterns {
		for side, cfg := range map[string]rigConfig{
			"client": {client: ClientConfig{Interceptors: []Interceptor{p.around}}},
			"server": {server: ServerConfig{Interceptors: []Interceptor{p.around}}},
		} {
			t.Run(name+"/"+side, func(t *testing.T) {
				var handled atomic.Int64
				inWorld(t, cfg, func(s *Server) {
					HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
						handled.Add(1)
						return append(reply, q...), nil
					})
					Handle(s, length, func(_ context.Context, q *wrapperspb.StringValue) (*wrapperspb.Int64Value, error) {
						return wrapperspb.Int64(int64(len(q.Value))), nil
					})
					handleCount(s)
				}, func(r *rig) {
					for i := range 20 {
						handled.Store(0)
						q := fmt.Sprint("request ", i)
						got, err := CallRaw(r.t.Context(), r.c, echo, []byte(q), []byte("> "))
						if err != nil || string(got) != "> "+q {
							r.t.Fatalf("%q, %v", got, err)
						}
						r.Wait()
						if n := handled.Load(); n < 1 || n > p.handlers {
							r.t.Errorf("handled %d times, want at most %d", n, p.handlers)
						}
						if v, err := Call(r.t.Context(), r.c, length, wrapperspb.String("four")); err != nil || v.Value != 4 {
							r.t.Errorf("%v, %v", v, err)
						}
					}
					if p.handlers > 1 && side == "server" || name == "hedge" || name == "time-out" {
						return // two handlers would use one stream, or it ends with the context
					}
					in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(3))
					if err != nil {
						r.t.Fatal(err)
					}
					n := -1
					for ; err == nil; n++ {
						_, err = in.Receive()
					}
					if !errors.Is(err, io.EOF) || n != 3 {
						r.t.Errorf("%d items, %v", n, err)
					}
					in.Close()
					r.Wait()
					if c, s := r.c.InFlight(), r.s.InFlight(); c+s != 0 {
						r.t.Errorf("%d and %d calls are still in flight", c, s)
					}
				})
			})
		}
	}
}

// An interceptor that keeps answers, as a cache does, keeps them as they are.
func TestInterceptorsKeepAnswers(t *testing.T) {
	var kept [][]byte
	keep := func(ctx context.Context, call *Info, next func(context.Context) error) error {
		err := next(ctx)
		kept = append(kept, call.Reply.([]byte))
		return err
	}
	for side, cfg := range map[string]rigConfig{
		"client": {client: ClientConfig{Interceptors: []Interceptor{keep}}}, "server": {server: ServerConfig{Interceptors: []Interceptor{keep}}},
	} {
		kept = nil
		inWorld(t, cfg, handleEcho, func(r *rig) {
			var reply []byte
			for i := range 20 {
				var err error
				if reply, err = CallRaw(r.t.Context(), r.c, echo, fmt.Append(nil, "answer ", i), reply[:0]); err != nil {
					r.t.Fatal(err)
				}
			}
			for i, b := range kept {
				if want := fmt.Sprint("answer ", i); string(b) != want {
					r.t.Errorf("at the %s answer %d is %q now, want %q", side, i, b, want)
				}
			}
		})
	}
}
