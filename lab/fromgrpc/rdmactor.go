package fromgrpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/shop"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/metrics/prom"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/rpchttp"
)

type orders struct {
	shop.UnimplementedOrdersServer
	mu  sync.Mutex
	all map[int64]*shop.Order
}

var errNoOrder = rpc.RegisterCode(300, "no such order")

func (o *orders) Get(_ context.Context, q *shop.GetRequest) (*shop.Order, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if order := o.all[q.Number]; order != nil {
		return order, nil
	}
	return nil, fmt.Errorf("number %d: %w", q.Number, errNoOrder)
}

func (o *orders) Watch(ctx context.Context, q *shop.GetRequest, out *rpc.Sender[shop.Order]) error {
	for n := q.Number; ; n++ {
		order, err := o.Get(ctx, &shop.GetRequest{Number: n})
		if err != nil {
			return nil
		}
		if err := out.Send(order); err != nil {
			return err
		}
	}
}

func (o *orders) Put(_ context.Context, in *rpc.Receiver[shop.Order]) (*wrapperspb.Int64Value, error) {
	reply := &wrapperspb.Int64Value{}
	for order, err := range in.All() {
		if err != nil {
			return nil, err
		}
		o.mu.Lock()
		o.all[order.Number] = order
		o.mu.Unlock()
		reply.Value++
	}
	return reply, nil
}

func (o *orders) Price(ctx context.Context, in *rpc.Receiver[shop.GetRequest], out *rpc.Sender[shop.Order]) error {
	for q, err := range in.All() {
		if err != nil {
			return err
		}
		order, err := o.Get(ctx, q)
		if err != nil {
			return err
		}
		if err := out.Send(order); err != nil {
			return err
		}
	}
	return nil
}

// serveOrders serves orders over RDMA, and over HTTP for curl and Prometheus, until ctx ends.
func serveOrders(ctx context.Context, all *orders, addr, web string, certificates *tls.Config) error {
	sys := actor.NewActorSystem()
	defer sys.Shutdown()
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Security: &rdma.Security{Mode: rdma.TLS, TLS: certificates}})
	if err != nil {
		return err
	}
	defer rt.Shutdown(context.Background())
	server := rpc.NewServer(rt)
	shop.RegisterOrdersServer(server, all)
	if _, err := server.Listen(ctx, addr); err != nil {
		return err
	}
	local := rpc.NewClient(rt, addr)
	defer local.Close()
	forCurl, err := rpchttp.New(local, rpchttp.Config{}, "shop.v1.Orders")
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.New(metrics.New(metrics.Config{Runtime: rt, Servers: func() []*rpc.Server { return []*rpc.Server{server} }})))
	mux := http.NewServeMux()
	mux.Handle("/", forCurl)
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return serveWeb(ctx, web, mux, func() { server.Shutdown(context.Background()) })
}

// callServers calls three servers.
func callServers(ctx context.Context, addrs []string, certificates *tls.Config) (items []string, err error) {
	sys := actor.NewActorSystem()
	defer sys.Shutdown()
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New(), Security: &rdma.Security{Mode: rdma.TLS, TLS: certificates}})
	if err != nil {
		return nil, err
	}
	defer rt.Shutdown(context.Background())
	pool := rpc.NewPool(rt, rpc.Static(addrs...), rpc.PoolConfig{Balance: rpc.RoundRobin})
	defer pool.Close()
	client := shop.NewOrdersClient(pool)
	put, err := client.Put(ctx)
	if err != nil {
		return nil, err
	}
	for n := range int64(3) {
		if err := put.Send(&shop.Order{Number: n, Item: fmt.Sprint("item ", n)}); err != nil {
			return nil, err
		}
	}
	if _, err := put.CloseAndReceive(); err != nil {
		return nil, err
	}
	for order, err := range client.Watch(ctx, &shop.GetRequest{}) {
		if err != nil {
			return nil, err
		}
		items = append(items, order.Item)
	}
	_, err = client.Get(ctx, &shop.GetRequest{Number: 2})
	return items, err
}
