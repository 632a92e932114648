package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// An interceptor that neither calls next nor answers fails the call, on either side, for calls and
// streams.
func TestInterceptorThatDoesNotGoOn(t *testing.T) {
	stop := func(context.Context, *Info, func(context.Context) error) error { return nil }
	swallow := func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		_ = next(ctx)
		return nil
	}
	all := func(r *rig, f Fate) {
		r.t.Helper()
		_, err := CallRaw(r.t.Context(), r.c, fail, nil, nil)
		want(r.t, err, ErrInternal, f)
		v, err := Call(r.t.Context(), r.c, length, wrapperspb.String("four"))
		want(r.t, err, ErrInternal, f)
		if v != nil {
			r.t.Errorf("an answer with the error: %v", v)
		}
	}
	setup := func(s *Server) {
		HandleRaw(s, fail, func(context.Context, []byte, []byte) ([]byte, error) { return nil, errTaken })
		Handle(s, length, func(context.Context, *wrapperspb.StringValue) (*wrapperspb.Int64Value, error) { return nil, errTaken })
		handleCount(s)
	}
	inWorld(t, rigConfig{client: ClientConfig{Interceptors: []Interceptor{stop}}}, setup, func(r *rig) {
		all(r, FateNotSent)
		_, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(1))
		want(r.t, err, ErrInternal, FateNotSent)
	})
	inWorld(t, rigConfig{client: ClientConfig{Interceptors: []Interceptor{swallow}}}, setup, func(r *rig) { all(r, FateUnknown) })
	inWorld(t, rigConfig{server: ServerConfig{Interceptors: []Interceptor{stop}}}, setup, func(r *rig) {
		all(r, FateAnswered)
		in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(1))
		if err != nil {
			r.t.Fatal(err)
		}
		_, err = in.Receive()
		want(r.t, err, ErrInternal, FateAnswered)
	})
	inWorld(t, rigConfig{server: ServerConfig{Interceptors: []Interceptor{swallow}}}, setup, func(r *rig) { all(r, FateAnswered) })
}

// Interceptors that answer without calling next.
func TestInterceptorThatAnswers(t *testing.T) {
	answer := func(_ context.Context, call *Info, _ func(context.Context) error) error {
		if call.Reply = []byte("cached"); call.Method == "test.Length" {
			call.Reply = wrapperspb.Int64(7)
		}
		return nil
	}
	for _, cfg := range []rigConfig{{client: ClientConfig{Interceptors: []Interceptor{answer}}}, {server: ServerConfig{Interceptors: []Interceptor{answer}}}} {
		inWorld(t, cfg, func(s *Server) {
			handleEcho(s)
			Handle(s, length, func(context.Context, *wrapperspb.StringValue) (*wrapperspb.Int64Value, error) { return nil, errTaken })
		}, func(r *rig) {
			if got, err := CallRaw(r.t.Context(), r.c, echo, nil, nil); err != nil || string(got) != "cached" {
				r.t.Errorf("%q, %v", got, err)
			}
			if got, err := Call(r.t.Context(), r.c, length, wrapperspb.String("four")); err != nil || got.Value != 7 {
				r.t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// A stream that an interceptor has opened is closed if it does not reach the caller, because the
// interceptor called next again or panicked.
func TestInterceptorLeaksNoStream(t *testing.T) {
	panics := false
	twice := func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		if err := next(ctx); err != nil {
			return err
		}
		if panics {
			panic("an interceptor's")
		}
		return next(ctx)
	}
	inWorld(t, rigConfig{client: ClientConfig{Interceptors: []Interceptor{twice}}}, func(s *Server) { handleCount(s) }, func(r *rig) {
		in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1))
		if err != nil {
			r.t.Fatal(err)
		}
		open := func(n int, why string) {
			r.t.Helper()
			r.Wait()
			if c, s := r.c.InFlight(), r.s.InFlight(); c != n || s != n {
				r.t.Errorf("%s: %d streams at the client and %d at the server, want %d", why, c, s, n)
			}
		}
		open(1, "opened twice")
		if item, err := in.Receive(); err != nil || item.Value != 0 {
			r.t.Error(item, err)
		}
		panics = true
		func() {
			defer func() { _ = recover() }()
			_, _ = Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1))
		}()
		open(1, "opened and panicked")
		in.Close()
		open(0, "closed")
	})
}

// The error with which a handler's context has ended does not change, whether the deadline or the
// end of the call came first, and whether Done was called before that, between the two or never.
func TestContextEndsOnce(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		for _, asked := range []string{"never", "before", "between"} {
			for _, first := range []error{context.DeadlineExceeded, context.Canceled} {
				c := &callContext{deadline: time.Now().Add(time.Second)}
				if asked == "before" {
					c.makeReal()
				}
				if errors.Is(first, context.Canceled) {
					c.cancelContext(errHandled)
				}
				w.Advance(2 * time.Second)
				look := func(when string) {
					t.Helper()
					if err := c.Err(); err != first { //nolint:errorlint // context.Context's contract: these very values
						t.Errorf("asked for Done %s, ended with %v: it says %v %s", asked, first, err, when)
					}
				}
				if errors.Is(first, context.Canceled) {
					look("after the deadline")
				}
				if asked == "between" {
					c.makeReal()
				}
				c.cancelContext(errHandled) // even if Err was not called before
				look("after the end")
				<-c.Done()
				look("after Done")
				want := first
				if errors.Is(first, context.Canceled) {
					want = errHandled
				}
				if cause := context.Cause(c.makeReal()); cause != want { //nolint:errorlint // as above
					t.Errorf("asked for Done %s, ended with %v: the cause is %v", asked, first, cause)
				}
			}
		}
	})
}

// An item that cannot be decoded ends its stream, also if further items, or the stream's end, have
// come already.
func TestStreamEndsAtItsDecodeError(t *testing.T) {
	odd := NewStream[wrapperspb.Int64Value, Bytes]("test.Odd")
	asCount := Stream[wrapperspb.Int64Value, wrapperspb.Int64Value]{newMethod("test.Odd", serverSends, protoCodec, protoCodec)}
	for name, endless := range map[string]bool{"it has ended": false, "it goes on": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				HandleStream(s, odd, func(ctx context.Context, _ *wrapperspb.Int64Value, out *Sender[Bytes]) error {
					for _, item := range []Bytes{{8, 1}, {0xff}, {8, 3}, {8, 4}} {
						if err := out.Send(&item); err != nil {
							return err
						}
					}
					if endless {
						<-ctx.Done()
					}
					return nil
				})
			}, func(r *rig) {
				in, err := Open(r.t.Context(), r.c, asCount, wrapperspb.Int64(0))
				if err != nil {
					r.t.Fatal(err)
				}
				r.Wait()
				if item, err := in.Receive(); err != nil || item.Value != 1 {
					r.t.Fatal(item, err)
				}
				for range 3 {
					item, err := in.Receive()
					if want(r.t, err, ErrBadMessage, FateAnswered); item != nil {
						r.t.Errorf("an item behind the end: %v", item)
					}
				}
				r.Wait()
				if c, s := r.c.InFlight(), r.s.InFlight(); c+s != 0 {
					r.t.Errorf("%d and %d calls are still in flight", c, s)
				}
			})
		})
	}
}

// A Timeout covers the opening of a stream, which may wait for a connection, and not the stream.
func TestTimeoutCoversOpen(t *testing.T) {
	cfg := rigConfig{client: ClientConfig{Backoff: quick.Backoff, WaitForReady: true, Timeout: time.Second}}
	inWorld(t, cfg, func(s *Server) { handleCount(s) }, func(r *rig) {
		in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(20_000))
		if err != nil {
			r.t.Fatal(err)
		}
		r.Advance(time.Minute)
		n := 0
		for _, err := range in.All() {
			if n++; err != nil {
				r.t.Fatal(err)
			}
		}
		if n != 20_000 {
			r.t.Errorf("%d items", n)
		}
		r.s.Close()
		r.Wait()
		ctx, cancel := context.WithCancelCause(r.t.Context())
		defer time.AfterFunc(time.Hour, func() { cancel(errors.New("it waits for ever")) }).Stop()
		begin := r.Elapsed()
		_, err = Open(ctx, r.c, count, wrapperspb.Int64(1))
		want(r.t, err, ErrDeadline, FateNotSent)
		if d := r.Elapsed() - begin; d != time.Second {
			r.t.Errorf("it waited %v", d)
		}
	})
}

// A request in the slot of one that was not answered ends the connection, whichever handlers the
// two have.
func TestPlaceTakenTwice(t *testing.T) {
	now := NewRawMethod("test.Now")
	for name, method := range map[string]string{
		"a handler on a goroutine": "test.Echo", "a handler on the loop": "test.Now", "no handler": "test.Nowhere",
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				handleEcho(s)
				handleBlock(s)
				HandleRaw(s, now, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil }, HandlerConfig{OnLoop: true})
			}, func(r *rig) {
				c := r.rawClient()
				c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Block"), frame(wire.Header{Type: wire.FrameDeclare, Number: 1}, method),
					frame(wire.Header{Type: wire.FrameCall, Call: 7}, ""))
				r.Wait()
				c.say(frame(wire.Header{Type: wire.FrameCall, Call: 1<<16 | 7, Number: 1}, "second"))
				r.Wait()
				if m, ok := actortest.Next[any](c.Probe).(*rdma.Received); ok {
					r.t.Errorf("it was answered: %x", m.Data)
				}
				r.good()
			})
		})
	}
}

// OnLoop handlers are called in the order in which one goroutine has called.
func TestOnLoopHandlersKeepTheOrder(t *testing.T) {
	const n = 2000
	ordered := NewMethod[wrapperspb.Int64Value, wrapperspb.Int64Value]("test.Ordered")
	var order []int64 // the loop's, until the last was answered
	inWorld(t, rigConfig{server: ServerConfig{MaxCalls: n}, client: ClientConfig{MaxCalls: n}}, func(s *Server) {
		Handle(s, ordered, func(_ context.Context, q *wrapperspb.Int64Value) (*wrapperspb.Int64Value, error) {
			order = append(order, q.Value)
			return q, nil
		}, HandlerConfig{OnLoop: true})
	}, func(r *rig) {
		do, got := asks(r)
		do(func(ctx actor.Context) {
			for i := range int64(n) {
				Go(ctx, r.c, ordered, wrapperspb.Int64(i))
			}
		})
		for range n {
			if a := (<-got).(*Reply[wrapperspb.Int64Value]); a.Err != nil {
				r.t.Fatal(a.Err)
			}
		}
		for i, v := range order {
			if v != int64(i) {
				r.t.Fatalf("call %d was handled as number %d", v, i)
			}
		}
	})
}
