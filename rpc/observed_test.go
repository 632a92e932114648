package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A server's interceptor sees the arrival time of a request: the time since then was spent in the
// queue.
func TestArrived(t *testing.T) {
	const busy = 3 * time.Second
	waited := make(chan time.Duration, 2)
	measure := func(ctx context.Context, call *Info, next func(context.Context) error) error {
		waited <- time.Since(call.Arrived)
		return next(ctx)
	}
	cfg := rigConfig{server: ServerConfig{Interceptors: []Interceptor{measure}}}
	inWorld(t, cfg, func(s *Server) {
		HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
			time.Sleep(busy)
			return append(reply, q...), nil
		})
	}, func(r *rig) {
		if _, err := CallRaw(r.t.Context(), r.c, echo, []byte("x"), nil); err != nil {
			r.t.Error(err)
		}
		if w := <-waited; w < 0 || w >= busy {
			r.t.Errorf("the request has waited for %v", w)
		}
	})
}

// A client's interceptor is notified of the end of a stream, once.
func TestEnded(t *testing.T) {
	ends := make(chan error, 4)
	listen := func(ctx context.Context, call *Info, next func(context.Context) error) error {
		was := call.Ended
		call.Ended = func(err error) {
			ends <- err
			if was != nil {
				was(err)
			}
		}
		return next(ctx)
	}
	cfg := rigConfig{client: ClientConfig{Interceptors: []Interceptor{listen, listen}}}
	inWorld(t, cfg, func(s *Server) { handleCount(s) }, func(r *rig) {
		in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(10))
		if err != nil {
			r.t.Fatal(err)
		}
		for _, err := range in.All() {
			if err != nil {
				r.t.Error(err)
			}
		}
		for range 2 {
			if err := <-ends; !errors.Is(err, io.EOF) {
				r.t.Error(err)
			}
		}
		if in, err = Open(r.t.Context(), r.c, count, wrapperspb.Int64(-1)); err != nil {
			r.t.Fatal(err)
		}
		in.Close()
		in.Close()
		for range 2 {
			if err := <-ends; !errors.Is(err, context.Canceled) {
				r.t.Error(err)
			}
		}
		r.Wait()
		if len(ends) != 0 {
			r.t.Error("the end was reported again")
		}
	})
}

// It is notified once even if another one prevents that the caller gets the stream.
func TestEndedWithoutStream(t *testing.T) {
	ends := make(chan error, 4)
	listen := func(ctx context.Context, call *Info, next func(context.Context) error) error {
		err := next(ctx)
		call.Ended = func(err error) { ends <- err }
		return err
	}
	for name, bad := range map[string]func(context.Context, func(context.Context) error) error{
		"fails": func(ctx context.Context, next func(context.Context) error) error {
			_ = next(ctx)
			return errors.New("no")
		},
		"panics": func(ctx context.Context, next func(context.Context) error) error {
			_ = next(ctx)
			panic("no")
		},
		"loses it": func(ctx context.Context, next func(context.Context) error) error {
			_ = next(ctx)
			over, cancel := context.WithCancel(ctx)
			cancel()
			_ = next(over)
			return nil
		},
	} {
		is := []Interceptor{func(ctx context.Context, _ *Info, next func(context.Context) error) error { return bad(ctx, next) }, listen}
		inWorld(t, rigConfig{client: ClientConfig{Interceptors: is}}, func(s *Server) { handleCount(s) }, func(r *rig) {
			func() {
				defer func() { _ = recover() }()
				if _, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(10)); err == nil {
					r.t.Errorf("%s: a stream was opened", name)
				}
			}()
			r.Wait()
			select {
			case err := <-ends:
				if err == nil || errors.Is(err, io.EOF) {
					r.t.Errorf("%s: %v", name, err)
				}
			default:
				r.t.Errorf("%s: its end was not reported", name)
			}
			if len(ends) != 0 {
				r.t.Errorf("%s: the end was reported again", name)
			}
		})
	}
}

// If Ended panics, the stream has still ended, and its loop goes on.
func TestEndedPanics(t *testing.T) {
	explode := func(ctx context.Context, call *Info, next func(context.Context) error) error {
		call.Ended = func(error) { panic("Ended says no") }
		return next(ctx)
	}
	inWorld(t, rigConfig{client: ClientConfig{Interceptors: []Interceptor{explode}}}, func(s *Server) {
		handleCount(s)
		HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil })
	}, func(r *rig) {
		in, err := Open(r.t.Context(), r.c, count, wrapperspb.Int64(1_000_000))
		if err != nil {
			r.t.Fatal(err)
		}
		r.ExpectPanic("Ended says no")
		in.Close()
		r.good()
	})
}

// MetadataRoom is exact: a pair of that size fits, and a byte more does not.
func TestMetadataRoom(t *testing.T) {
	ctx := t.Context()
	if room := MetadataRoom(ctx); room != wire.MaxMetadata {
		t.Errorf("room for %d bytes", room)
	}
	ctx = WithMetadata(ctx, "k", strings.Repeat("v", wire.MaxMetadataValue))
	room := MetadataRoom(ctx)
	if _, err := outgoingMetadata(WithMetadata(ctx, "k", strings.Repeat("v", room-4))); err != nil {
		t.Errorf("with %d bytes: %v", room, err)
	}
	if _, err := outgoingMetadata(WithMetadata(ctx, "kk", strings.Repeat("v", room-4))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("with %d bytes: %v", room+1, err)
	}
	if room := MetadataRoom(WithMetadata(ctx, "", "")); room != 0 {
		t.Errorf("room for %d bytes in metadata that is too large", room)
	}
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, 0},
		{errors.New("x"), CodeUnknown},
		{context.Canceled, CodeCanceled},
		{ErrDraining, CodeDraining},
		{fmt.Errorf("x: %w", errTaken), codeOf(errTaken)},
		{fmt.Errorf("x: %w", &Error{Code: CodeTooLarge}), CodeTooLarge},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}
