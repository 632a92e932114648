package rpcreflect

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/internal/orders"
	"github.com/rdmactor/rdmactor/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }

// A client learns a server's methods, and what they take and return, without having been compiled
// with them.
func TestReflection(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		s := rpc.NewServer(w.Host("mem1", "10.0.0.2"))
		defer s.Close()
		rpc.Handle(s, orders.Get, func(context.Context, *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
			return nil, nil
		})
		raw := rpc.NewRawMethod("raw")
		rpc.HandleRaw(s, raw, func(_ context.Context, q, _ []byte) ([]byte, error) { return q, nil })
		Register(s)
		if _, err := s.Listen(w.T().Context(), "10.0.0.2:7471"); err != nil {
			w.T().Fatal(err)
		}
		c := rpc.NewClient(w.Runtime(), "10.0.0.2:7471")
		defer c.Close()
		names, err := List(w.T().Context(), c)
		if err != nil || !slices.Equal(names, []string{"raw", "test.Orders/Get"}) {
			w.T().Errorf("got %v, %v", names, err)
		}
		m, err := Find(w.T().Context(), c, "test.Orders/Watch") // it needs no handler
		if err != nil || !m.IsStreamingServer() || m.Input().FullName() != "google.protobuf.StringValue" {
			w.T().Errorf("got %v, %v", m, err)
		}
		for _, name := range []string{"raw", "test.Orders/Nothing", "test.Nothing/Get", "google.protobuf.StringValue/x", ""} {
			if m, err := Find(w.T().Context(), c, name); !errors.Is(err, ErrNoService) {
				w.T().Errorf("%q: got %v, %v", name, m, err)
			}
		}
	})
}
