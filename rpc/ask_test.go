package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// asks starts an actor that calls Go for the test, and passes the answers to got.
func asks(r *rig, opts ...actor.PropsOption) (do func(func(ctx actor.Context)), got chan any) {
	got = make(chan any, 100)
	pid := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case func(actor.Context):
			m(ctx)
		case *Reply[wrapperspb.Int64Value], *Reply[Bytes]:
			got <- m
		}
	}, opts...))
	r.t.Cleanup(func() { r.System().Root.Stop(pid) })
	return func(fn func(actor.Context)) { r.System().Root.Send(pid, fn) }, got
}

var (
	blockBytes = NewMethod[Bytes, Bytes]("test.Block")
	lost       = NewMethod[Bytes, Bytes]("test.Nowhere")
)

func TestGo(t *testing.T) {
	pass := func(ctx context.Context, _ *Info, next func(context.Context) error) error { return next(ctx) }
	for name, cfg := range map[string]ClientConfig{"loop": {}, "goroutine": {Interceptors: []Interceptor{pass}}} {
		t.Run(name, func(t *testing.T) {
			var b *blocking
			inWorld(t, rigConfig{client: cfg, server: ServerConfig{MaxMessage: 64 << 10}}, func(s *Server) {
				Handle(s, length, func(_ context.Context, q *wrapperspb.StringValue) (*wrapperspb.Int64Value, error) {
					return wrapperspb.Int64(int64(len(q.Value))), nil
				})
				b = handleBlock(s)
			}, func(r *rig) {
				for _, where := range []actor.PropsOption{r.Runtime().OnLoop(), r.Runtime().OffLoop()} {
					do, got := asks(r, where)
					calls := make(chan *Pending, 10)
					do(func(ctx actor.Context) {
						calls <- Go(ctx, r.c, length, wrapperspb.String("four"))
					})
					if a := (<-got).(*Reply[wrapperspb.Int64Value]); a.Err != nil || a.Value.Value != 4 || a.Call != <-calls {
						r.t.Errorf("%+v", a)
					}
					do(func(ctx actor.Context) { Go(ctx, r.c, lost, &Bytes{}) })
					want(r.t, (<-got).(*Reply[Bytes]).Err, ErrUnknownMethod, FateRefused)
					big := make(Bytes, 64<<10)
					do(func(ctx actor.Context) { Go(ctx, r.c, lost, &big) })
					want(r.t, (<-got).(*Reply[Bytes]).Err, ErrTooLarge, FateNotSent)
					begin := r.Elapsed()
					do(func(ctx actor.Context) { Go(ctx, r.c, blockBytes, &Bytes{}, GoConfig{Timeout: time.Second}) })
					if a := (<-got).(*Reply[Bytes]); !errors.Is(a.Err, ErrDeadline) || r.Elapsed()-begin != time.Second {
						r.t.Error(a.Err, r.Elapsed()-begin)
					}
					<-b.ended
					do(func(ctx actor.Context) {
						p := Go(ctx, r.c, blockBytes, &Bytes{})
						rdma.After(ctx, time.Second, func(actor.Context) { p.Cancel() })
					})
					want(r.t, (<-got).(*Reply[Bytes]).Err, context.Canceled, FateUnknown)
					if err := <-b.ended; !errors.Is(err, context.Canceled) {
						r.t.Error(err)
					}
					ctx, cancel := context.WithCancel(r.t.Context())
					do(func(a actor.Context) { Go(a, r.c, blockBytes, &Bytes{}, GoConfig{Context: ctx}) })
					r.Wait()
					cancel()
					want(r.t, (<-got).(*Reply[Bytes]).Err, context.Canceled, FateUnknown)
					<-b.ended
				}
				r.Wait()
				if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
					r.t.Errorf("%d and %d calls are still in flight", n, m)
				}
			})
		})
	}
}

// ClientConfig.Timeout applies only to calls without a deadline.
func TestGoKeepsTheDeadlineOfItsContext(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{client: ClientConfig{Timeout: time.Second}}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		do, got := asks(r, r.Runtime().OnLoop())
		for _, c := range []struct {
			cfg  GoConfig
			want time.Duration
		}{
			{GoConfig{Context: r.within(3 * time.Second)}, 3 * time.Second}, // from now on, too
			{GoConfig{Context: r.t.Context()}, time.Second},
		} {
			begin := r.Elapsed()
			do(func(ctx actor.Context) { Go(ctx, r.c, blockBytes, &Bytes{}, c.cfg) })
			if a := (<-got).(*Reply[Bytes]); !errors.Is(a.Err, ErrDeadline) || r.Elapsed()-begin != c.want {
				r.t.Errorf("%v after %v, want %v", a.Err, r.Elapsed()-begin, c.want)
			}
			<-b.ended
			r.Wait()
		}
	})
}

// A call that Go makes with a negative Timeout has no deadline, also if it is made on a goroutine.
func TestGoWithoutADeadline(t *testing.T) {
	for name, cfg := range map[string]ClientConfig{"loop": {}, "goroutine": {WaitForReady: true}} {
		t.Run(name, func(t *testing.T) {
			var b *blocking
			cfg.Timeout = time.Second
			inWorld(t, rigConfig{client: cfg}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
				do, got := asks(r, r.Runtime().OnLoop())
				do(func(ctx actor.Context) {
					p := Go(ctx, r.c, blockBytes, &Bytes{}, GoConfig{Timeout: -1})
					rdma.After(ctx, time.Minute, func(actor.Context) { p.Cancel() })
				})
				want(r.t, (<-got).(*Reply[Bytes]).Err, context.Canceled, FateUnknown)
				<-b.ended
			})
		})
	}
}

// An interceptor may call another service with the context of a call without a deadline: that call
// keeps its own client's Timeout.
func TestNoDeadlineIsOfOneClient(t *testing.T) {
	var one, other Client
	ctx := context.WithValue(t.Context(), unlimited{&one}, true)
	for c, want := range map[*Client]bool{&one: false, &other: true} {
		limited, cancel := c.withTimeout(ctx, time.Second)
		if _, has := limited.Deadline(); has != want {
			t.Errorf("a deadline: %v, want %v", has, want)
		}
		cancel()
	}
}
