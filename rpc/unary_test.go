package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

var length = NewMethod[wrapperspb.StringValue, wrapperspb.Int64Value]("test.Length")

func TestCall(t *testing.T) {
	for name, cfg := range map[string]HandlerConfig{"goroutine": {}, "loop": {OnLoop: true}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				Handle(s, length, func(ctx context.Context, q *wrapperspb.StringValue) (*wrapperspb.Int64Value, error) {
					if i := InfoOf(ctx); i.Method != "test.Length" || !i.Server || i.Peer.String() == "" {
						return nil, fmt.Errorf("%+v", i)
					}
					return wrapperspb.Int64(int64(len(q.Value))), nil
				}, cfg)
				HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil }, cfg)
			}, func(r *rig) {
				n, err := Call(r.t.Context(), r.c, length, wrapperspb.String("seven!!"))
				if err != nil || n.Value != 7 {
					r.t.Fatal(n, err)
				}
				for _, size := range []int{0, 1, gatherBytes - wire.HeaderLen, gatherBytes, gatherBytes + 1, 64<<10 - wire.HeaderLen} {
					q := bytes.Repeat([]byte{7}, size)
					got, err := CallRaw(r.t.Context(), r.c, echo, q, []byte("before "))
					if err != nil || !bytes.Equal(got, append([]byte("before "), q...)) {
						r.t.Errorf("%d bytes: %d came back, %v", size, len(got), err)
					}
				}
			})
		})
	}
}

func TestManyCallers(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		const callers, each = 64, 100
		errs := make(chan error, callers)
		for i := range callers {
			go func() {
				var err error
				for n := range each {
					q := fmt.Appendf(nil, "%d of %d", n, i)
					got, e := CallRaw(r.t.Context(), r.c, echo, q, nil)
					if e != nil || !bytes.Equal(got, q) {
						err = fmt.Errorf("%q became %q, %w", q, got, e)
						break
					}
				}
				errs <- err
			}()
		}
		for range callers {
			if err := <-errs; err != nil {
				r.t.Error(err)
			}
		}
		r.Wait() // The server is done with a call when its answer has been sent.
		if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
			r.t.Errorf("%d and %d calls are still in flight", n, m)
		}
	})
}

func TestErrors(t *testing.T) {
	inWorld(t, rigConfig{}, func(s *Server) {
		handleEcho(s)
		HandleRaw(s, fail, func(_ context.Context, q, _ []byte) ([]byte, error) {
			switch string(q) {
			case "wrapped":
				return nil, fmt.Errorf("key %q: %w", "a", errTaken)
			case "details":
				e, err := NewError(errTaken, "by another", durationpb.New(time.Minute))
				return nil, errors.Join(e, err)
			case "plain":
				return nil, errors.New("no luck")
			case "large":
				return make([]byte, 4<<20), nil
			case "overloaded": // from a server behind this one
				return nil, &Error{Code: CodeOverloaded, Fate: FateRefused}
			case "long":
				return nil, errors.New(strings.Repeat("x", 2*wire.MaxErrorText))
			}
			panic("on the way")
		})
	}, func(r *rig) {
		say := func(q string) error {
			_, err := CallRaw(r.t.Context(), r.c, fail, []byte(q), nil)
			return err
		}
		err := say("wrapped")
		want(t, err, errTaken, FateAnswered)
		if s := err.Error(); s != `rpc: test.Fail: taken: key "a": rpc: taken` {
			r.t.Error(s)
		}
		err = say("details")
		want(t, err, errTaken, FateAnswered)
		if d, ok := DetailsOf[durationpb.Duration](err); !ok || d.AsDuration() != time.Minute {
			r.t.Error(d, ok)
		}
		if _, ok := DetailsOf[durationpb.Duration](say("wrapped")); ok {
			r.t.Error("details that nobody has sent")
		}
		var e *Error
		if err := say("plain"); !errors.As(err, &e) || e.Code != CodeUnknown || e.Message != "no luck" {
			r.t.Error(err)
		}
		r.ExpectPanic("on the way")
		want(t, say("panic"), ErrInternal, FateAnswered)
		want(t, say("large"), ErrTooLarge, FateAnswered)
		err = say("overloaded")
		want(t, err, ErrOverloaded, FateAnswered)
		if isRetryable(false, err) {
			r.t.Error("the refusal of a server behind is taken for this one's: the handler was called")
		}
		if err := say("long"); !errors.As(err, &e) || len(e.Message) != wire.MaxErrorText {
			r.t.Error(err)
		}
		_, err = CallRaw(r.t.Context(), r.c, nowhere, nil, nil)
		want(t, err, ErrUnknownMethod, FateRefused)
		_, err = CallRaw(r.t.Context(), r.c, echo, make([]byte, 4<<20), nil)
		want(t, err, ErrTooLarge, FateNotSent)
		if !strings.Contains(err.Error(), "ServerConfig.MaxMessage there: 4194304") {
			r.t.Error("the error does not name the limit:", err)
		}
		got, err := CallRaw(r.t.Context(), r.c, echo, []byte("after all that"), nil)
		if err != nil || string(got) != "after all that" {
			r.t.Error(got, err)
		}
	})
}

func TestBadMessage(t *testing.T) {
	inWorld(t, rigConfig{}, func(s *Server) {
		Handle(s, length, func(context.Context, *wrapperspb.StringValue) (*wrapperspb.Int64Value, error) { return nil, nil })
		HandleRaw(s, echo, func(context.Context, []byte, []byte) ([]byte, error) { return []byte{0xff}, nil })
	}, func(r *rig) {
		_, err := Call(r.t.Context(), r.c, length, wrapperspb.String("x"))
		want(t, err, ErrInternal, FateAnswered) // nothing, and no error
		asRaw, asProto := RawMethod{newMethod("test.Length", unary, bytesCodec, bytesCodec)},
			Method[wrapperspb.StringValue, wrapperspb.Int64Value]{newMethod("test.Echo", unary, protoCodec, protoCodec)}
		_, err = CallRaw(r.t.Context(), r.c, asRaw, []byte{0xff}, nil)
		want(t, err, ErrBadMessage, FateAnswered)
		_, err = Call(r.t.Context(), r.c, asProto, wrapperspb.String("x"))
		want(t, err, ErrBadMessage, FateAnswered)
	})
}

func TestDeadlineReachesTheServer(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) {
		b = handleBlock(s)
		HandleRaw(s, echo, func(ctx context.Context, _, reply []byte) ([]byte, error) {
			deadline, ok := ctx.Deadline()
			return fmt.Append(reply, ok, time.Until(deadline)), nil
		})
	}, func(r *rig) {
		// in milliseconds on the wire
		got, err := CallRaw(r.within(90*time.Minute), r.c, echo, nil, nil)
		if err != nil || string(got) != "true 1h30m0s" {
			r.t.Errorf("%s, %v", got, err)
		}
		begin := r.Elapsed()
		_, err = CallRaw(r.within(250*time.Millisecond), r.c, block, nil, nil)
		// the client's own, or the server's answer at the same moment
		if !errors.Is(err, ErrDeadline) {
			r.t.Error(err)
		}
		if d := r.Elapsed() - begin; d != 250*time.Millisecond {
			r.t.Errorf("the caller got it after %v", d)
		}
		if err := <-b.ended; !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			r.t.Errorf("the handler's context ended with %v", err)
		}
		if d := r.Elapsed() - begin; d != 250*time.Millisecond {
			r.t.Errorf("the handler got it after %v", d)
		}
		done, cancel := context.WithCancel(r.t.Context())
		cancel()
		_, err = CallRaw(done, r.c, echo, nil, nil)
		want(t, err, context.Canceled, FateNotSent)
		r.Wait()
		if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
			r.t.Errorf("%d and %d calls are still in flight", n, m)
		}
	})
}

func TestCancelReachesTheServer(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		ctx, cancel := context.WithCancelCause(r.t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := CallRaw(ctx, r.c, block, nil, nil)
			result <- err
		}()
		<-b.began
		why := errors.New("lost interest")
		cancel(why)
		err := <-result
		want(t, err, context.Canceled, FateUnknown)
		if !errors.Is(err, why) {
			r.t.Errorf("%v does not say the cause", err)
		}
		if err := <-b.ended; !errors.Is(err, context.Canceled) {
			r.t.Errorf("the handler's context ended with %v", err)
		}
		r.Wait()
		if n, m := r.c.InFlight(), r.s.InFlight(); n+m != 0 {
			r.t.Errorf("%d and %d calls are still in flight", n, m)
		}
	})
}

func TestMetadata(t *testing.T) {
	inWorld(t, rigConfig{}, func(s *Server) {
		HandleRaw(s, echo, func(ctx context.Context, q, reply []byte) ([]byte, error) {
			v, ok := Metadata(ctx, string(q))
			return fmt.Appendf(reply, "%s %v", v, ok), nil
		})
	}, func(r *rig) {
		ctx := WithMetadata(WithMetadata(WithMetadata(r.t.Context(), "user", "a"), "trace", "1234"), "user", "b")
		for key, v := range map[string]string{"user": "b true", "trace": "1234 true", "none": " false"} {
			got, err := CallRaw(ctx, r.c, echo, []byte(key), nil)
			if err != nil || string(got) != v {
				r.t.Errorf("%s: %q, %v", key, got, err)
			}
		}
		for _, c := range []context.Context{
			WithMetadata(ctx, "", "x"), WithMetadata(ctx, "k", strings.Repeat("x", wire.MaxMetadataValue+1)),
			WithMetadata(WithMetadata(ctx, "k", strings.Repeat("x", wire.MaxMetadataValue)), "l", strings.Repeat("x", wire.MaxMetadataValue)),
		} {
			_, err := CallRaw(c, r.c, echo, nil, nil)
			want(t, err, ErrTooLarge, FateNotSent)
		}
	})
}

func TestInfiniBandPadsTheHello(t *testing.T) {
	inWorld(t, rigConfig{world: actortest.Config{InfiniBand: true}}, handleEcho, func(r *rig) { r.good() })
}

func TestLargeMessages(t *testing.T) {
	large := rigConfig{server: ServerConfig{MaxMessage: 4 << 20, Credits: 8}, client: ClientConfig{MaxMessage: 4 << 20, Credits: 8}}
	inWorld(t, large, handleEcho, func(r *rig) {
		errs := make(chan error, 4)
		for i := range cap(errs) {
			go func() {
				q := bytes.Repeat([]byte{byte(i)}, 3<<20+i)
				got, err := CallRaw(r.t.Context(), r.c, echo, q, nil)
				if err == nil && !bytes.Equal(got, q) {
					err = fmt.Errorf("%d bytes became %d others", len(q), len(got))
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				r.t.Error(err)
			}
		}
		_, err := CallRaw(r.t.Context(), r.c, echo, make([]byte, 4<<20), nil)
		want(r.t, err, ErrTooLarge, FateNotSent)
	})
}

// A handler's context ends when the handler returns, wherever that runs. If a handler has kept its
// context, no other call gets it.
func TestContextEndsWithItsHandler(t *testing.T) {
	type mark struct{}
	for name, cfg := range map[string]HandlerConfig{"goroutine": {}, "loop": {OnLoop: true}} {
		t.Run(name, func(t *testing.T) {
			kept := make(chan context.Context, 2)
			inWorld(t, rigConfig{}, func(s *Server) {
				HandleRaw(s, echo, func(ctx context.Context, q, reply []byte) ([]byte, error) {
					child, cancel := context.WithTimeout(context.WithValue(ctx, mark{}, "mine"), time.Hour)
					defer cancel()
					if child.Err() != nil || child.Value(mark{}) != "mine" {
						return nil, errors.New("the context is over before its call")
					}
					kept <- ctx
					return append(reply, q...), nil
				}, cfg)
			}, func(r *rig) {
				for range 2 {
					if _, err := CallRaw(r.within(time.Minute), r.c, echo, nil, nil); err != nil {
						r.t.Fatal(err)
					}
				}
				r.Wait()
				first, second := <-kept, <-kept
				if first == second || !errors.Is(first.Err(), context.Canceled) || !errors.Is(second.Err(), context.Canceled) {
					r.t.Errorf("%v, %v", first.Err(), second.Err())
				}
			})
		})
	}
}

func TestServe(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		ctx, cancel := context.WithCancel(r.t.Context())
		served := make(chan error, 1)
		s := NewServer(r.far)
		handleEcho(s)
		go func() { served <- s.Serve(ctx, there+":7472") }()
		r.Wait()
		c, err := Dial(r.t.Context(), r.Runtime(), there+":7472")
		if err != nil {
			r.t.Fatal(err)
		}
		defer c.Close()
		if _, err := CallRaw(r.t.Context(), c, echo, nil, nil); err != nil {
			r.t.Error(err)
		}
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			r.t.Error(err)
		}
		if _, err := s.Listen(r.t.Context(), there+":7473"); !errors.Is(err, ErrClosed) {
			r.t.Error(err)
		}
	})
}

// A handler that returns a nil *Error returns an error whose text cannot be read. That counts as a
// panic of the handler, and does not end the server.
func TestNilError(t *testing.T) {
	for name, cfg := range map[string]HandlerConfig{"goroutine": {}, "loop": {OnLoop: true}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				handleEcho(s)
				HandleRaw(s, fail, func(context.Context, []byte, []byte) ([]byte, error) {
					var e *Error
					return nil, e
				}, cfg)
			}, func(r *rig) {
				r.ExpectPanic("nil pointer")
				_, err := CallRaw(r.t.Context(), r.c, fail, nil, nil)
				want(r.t, err, ErrInternal, FateAnswered)
				r.good()
			})
		})
	}
}
