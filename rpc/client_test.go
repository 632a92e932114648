package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/actor/actortest"
)

// A client is made while its server is down: a call says why it fails, and works when it is up.
func TestClientWithoutItsServer(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		far := w.Host("mem1", there)
		c := NewClient(w.Runtime(), there+":7471", quick)
		defer c.Close()
		_, err := CallRaw(w.T().Context(), c, echo, nil, nil)
		want(w.T(), err, ErrUnavailable, FateNotSent)
		want(w.T(), err, unix.ECONNREFUSED, FateNotSent)
		if err := c.Connect(w.T().Context()); !errors.Is(err, ErrUnavailable) {
			w.T().Errorf("Connect: %v", err)
		}
		s := NewServer(far)
		defer s.Close()
		handleEcho(s)
		if _, err := s.Listen(w.T().Context(), there+":7471"); err != nil {
			w.T().Fatal(err)
		}
		w.Advance(time.Minute)
		if got, err := CallRaw(w.T().Context(), c, echo, []byte("x"), nil); err != nil || string(got) != "x" {
			w.T().Errorf("%q, %v", got, err)
		}
	})
}

// The first call of a client waits for the connection; no call before it connects.
func TestFirstCallConnects(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		f.Advance(time.Minute)
		if n := len(f.Runtime().Inspect()); n != 0 {
			f.t.Errorf("%d identifiers before the first call", n)
		}
		if got := f.call(f.t.Context()); got == "" {
			f.t.Error("nobody has answered")
		}
	})
}

// Repetitions are at most a tenth of the calls, and a hundred.
func TestRetryBudget(t *testing.T) {
	const calls = 3000
	inWorld(t, rigConfig{server: ServerConfig{MaxCallsInAll: 1}, client: ClientConfig{Retry: Retry{Attempts: 5}}}, func(s *Server) {
		handleBlock(s)
		handleEcho(s)
	}, func(r *rig) {
		ctx, cancel := context.WithCancel(r.t.Context())
		go func() { _, _ = CallRaw(ctx, r.c, block, nil, nil) }()
		r.Wait()
		for range calls {
			_, err := CallRaw(ctx, r.c, echo, nil, nil)
			want(r.t, err, ErrOverloaded, FateRefused)
		}
		var repeated uint64
		for _, m := range r.c.Inspect() {
			repeated += m.Repeated
		}
		if repeated < calls/10 || repeated > calls/10+100 {
			r.t.Errorf("%d repetitions of %d calls", repeated, calls)
		}
		cancel()
	})
}

// The error of a call names the server, and how often it was tried.
func TestErrorNamesItsServer(t *testing.T) {
	cfg := ClientConfig{Retry: Retry{Attempts: 3}}
	inWorld(t, rigConfig{client: cfg, server: ServerConfig{MaxCallsInAll: 1}}, func(s *Server) { handleBlock(s); handleEcho(s) }, func(r *rig) {
		ctx, cancel := context.WithCancel(r.t.Context())
		go func() { _, _ = CallRaw(ctx, r.c, block, nil, nil) }()
		r.Wait()
		_, err := CallRaw(ctx, r.c, echo, nil, nil)
		var e *Error
		if !errors.As(err, &e) || e.Server != r.addr || e.Attempts != 3 {
			r.t.Errorf("got %+v", err)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, "test.Echo at "+r.addr+": ") || !strings.Contains(text, "(refused, 3 attempts)") {
			r.t.Error(text)
		}
		cancel()
	})
}

// Go does not wait: not for a connection either.
func TestGoBeforeTheConnection(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		c := NewClient(r.Runtime(), r.addr)
		defer c.Close()
		answers := make(chan any, 1)
		pid := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				Go(ctx, c, goEcho, &wrapperspb.StringValue{Value: "x"})
			case *Reply[wrapperspb.StringValue]:
				answers <- m.Err
			}
		}, r.Runtime().OnLoop()))
		defer r.System().Root.Stop(pid)
		if err := <-answers; !errors.Is(err.(error), ErrUnknownMethod) {
			r.t.Errorf("got %v", err)
		}
	})
}

var goEcho = NewMethod[wrapperspb.StringValue, wrapperspb.StringValue]("test.GoEcho")
