package rpc

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
)

// If a handler keeps its loop busy, the loop's watchdog reports the handler, and not the socket
// from which the request came.
func TestWatchdogNamesASlowHandler(t *testing.T) {
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	stalls := make(chan eventloop.Stall, 10)
	there, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Loops: []eventloop.Config{{
		StallAfter: time.Millisecond, OnStall: func(s eventloop.Stall) {
			if s.Holder.Name == "rpc test.Echo" {
				stalls <- s
			}
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	here, err := rdma.Open(sys, rdma.Config{Device: iwarp.New()})
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(there)
	HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
		stall := <-stalls // until it is reported
		return append(reply, stall.Holder.String()...), nil
	}, HandlerConfig{OnLoop: true})
	at, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), here, at.String())
	if err != nil {
		t.Fatal(err)
	}
	got, err := CallRaw(t.Context(), c, echo, nil, nil)
	if err != nil || string(got) != "runnable rpc test.Echo" {
		t.Errorf("%s, %v", got, err)
	}
	c.Close()
	s.Close()
	for _, rt := range []*rdma.Runtime{here, there} {
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
	sys.Shutdown()
	time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters expires
}
