package rpc

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

func TestInterceptors(t *testing.T) {
	var mu sync.Mutex
	var order []string
	add := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	note := func(who string) Interceptor {
		return func(ctx context.Context, call *Info, next func(context.Context) error) error {
			add(who + " " + call.Method)
			defer add("/" + who)
			return next(ctx)
		}
	}
	var handled atomic.Int32
	guard := func(ctx context.Context, call *Info, next func(context.Context) error) error {
		if who, _ := Metadata(ctx, "user"); who != "a" && call.Method != "test.Count" {
			return &Error{Code: codeOf(errTaken), Message: "who are you?"}
		}
		return next(ctx)
	}
	upper := func(ctx context.Context, call *Info, next func(context.Context) error) error {
		if q, ok := call.Request.([]byte); ok {
			call.Request = append([]byte("upper "), q...)
		}
		err := next(ctx)
		if r, ok := call.Reply.([]byte); ok && err == nil {
			call.Reply = append(r, '!')
		}
		return err
	}
	identity := func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		return next(WithMetadata(ctx, "user", "a"))
	}
	cfg := rigConfig{
		server: ServerConfig{Interceptors: []Interceptor{note("s1"), note("s2"), guard}},
		client: ClientConfig{Interceptors: []Interceptor{note("c1"), identity, note("c2"), upper}},
	}
	inWorld(t, cfg, func(s *Server) {
		HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
			handled.Add(1)
			return append(reply, q...), nil
		})
		handleCount(s)
	}, func(r *rig) {
		got, err := CallRaw(r.t.Context(), r.c, echo, []byte("x"), nil)
		if err != nil || string(got) != "upper x!" {
			r.t.Errorf("%q, %v", got, err)
		}
		same(r.t, order, "c1 test.Echo", "c2 test.Echo", "s1 test.Echo", "s2 test.Echo", "/s2", "/s1", "/c2", "/c1")
		stranger := r.dial()
		_, err = CallRaw(r.t.Context(), stranger, echo, []byte("x"), nil)
		want(r.t, err, errTaken, FateAnswered)
		if handled.Load() != 1 {
			r.t.Error("the handler was called for a stranger")
		}
		stranger.Close()
		r.Wait()
		order = nil
		in, err := Open(r.t.Context(), r.c, count, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, err := range in.All() {
			r.t.Error(err)
		}
		r.Wait()
		same(r.t, order[:2], "c1 test.Count", "c2 test.Count")
	})
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}
