package shop

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }

// shop has all methods but Old.
type shop struct{ UnimplementedOrdersServer }

func (shop) Get(ctx context.Context, q *GetRequest) (*Order, error) {
	trace, _ := rpc.Metadata(ctx, "trace")
	return &Order{Number: q.Number, Item: "pear" + trace}, rpc.SetTrailer(ctx, "k", "v")
}

func (shop) Watch(_ context.Context, q *GetRequest, out *rpc.Sender[Order]) error {
	for n := q.Number; n < q.Number+3; n++ {
		if err := out.Send(&Order{Number: n}); err != nil {
			return err
		}
	}
	return nil
}

func (shop) Put(_ context.Context, in *rpc.Receiver[Order]) (*wrapperspb.Int64Value, error) {
	n := int64(0)
	for _, err := range in.All() {
		if err != nil {
			return nil, err
		}
		n++
	}
	return wrapperspb.Int64(n), nil
}

func (shop) Price(_ context.Context, in *rpc.Receiver[GetRequest], out *rpc.Sender[Order]) error {
	for q, err := range in.All() {
		if err != nil {
			return err
		}
		if err := out.Send(&Order{Number: q.Number * 2}); err != nil {
			return err
		}
	}
	return nil
}

// connect returns a client of a shop, over iWARP on loopback.
func connect(t *testing.T, cfg ...rpc.HandlerConfig) *rpc.Client {
	t.Helper()
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New()})
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer(rt)
	RegisterOrdersServer(s, shop{}, cfg...)
	at, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rpc.Dial(t.Context(), rt, at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters expires
	})
	return c
}

// All kinds of methods can be called, and one that is not implemented is refused.
func TestEveryKindOfMethod(t *testing.T) {
	var c OrdersAPI = NewOrdersClient(connect(t))
	var trailer rpc.Pairs
	got, err := c.Get(rpc.WithMetadata(t.Context(), "trace", "7"), &GetRequest{Number: 4}, rpc.ReceiveTrailer(&trailer))
	if v, _ := trailer.Get("k"); err != nil || got.Number != 4 || got.Item != "pear7" || v != "v" {
		t.Error(got, err, v)
	}
	n := int64(4)
	for order, err := range c.Watch(t.Context(), &GetRequest{Number: n}) {
		if err != nil || order.Number != n {
			t.Fatal(order, err)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d orders", n-4)
	}
	up, err := c.Put(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := up.Send(&Order{}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := up.CloseAndReceive(); err != nil || n.Value != 5 {
		t.Error(n, err)
	}
	d, err := c.Price(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		if err := d.Send(&GetRequest{Number: i}); err != nil {
			t.Fatal(err)
		}
		if order, err := d.Receive(); err != nil || order.Number != 2*i {
			t.Fatal(order, err)
		}
	}
	d.CloseSend()
	if _, err := d.Receive(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := c.Old(t.Context(), &GetRequest{}); !errors.Is(err, rpc.ErrUnknownMethod) || !strings.Contains(err.Error(), Orders_Old_Name) {
		t.Error(err)
	}
}

// The generated client adds no allocation to a call.
func TestAllocations(t *testing.T) {
	c := connect(t, rpc.HandlerConfig{OnLoop: true})
	orders, q := NewOrdersClient(c), &GetRequest{Number: 1}
	measure := func(call func() (*Order, error)) float64 {
		const calls = 3000
		var before, after runtime.MemStats
		for range 2 { // the first round fills the pools
			runtime.ReadMemStats(&before)
			for range calls {
				if _, err := call(); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
		}
		return float64(after.Mallocs-before.Mallocs) / calls
	}
	plain := measure(func() (*Order, error) { return rpc.Call(t.Context(), c, OrdersGet, q) })
	if n := measure(func() (*Order, error) { return orders.Get(t.Context(), q) }); n > plain+0.3 {
		t.Errorf("%.2f allocations per call, %.2f without generated code", n, plain)
	}
}
