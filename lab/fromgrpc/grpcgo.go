package fromgrpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"connectrpc.com/vanguard/vanguardgrpc"
	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/lab/fromgrpc/shopgrpc"
)

type grpcOrders struct {
	shopgrpc.UnimplementedOrdersServer
	mu  sync.Mutex
	all map[int64]*shopgrpc.Order
}

func (o *grpcOrders) Get(_ context.Context, q *shopgrpc.GetRequest) (*shopgrpc.Order, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if order := o.all[q.Number]; order != nil {
		return order, nil
	}
	return nil, status.Errorf(codes.NotFound, "number %d", q.Number)
}

func (o *grpcOrders) Watch(q *shopgrpc.GetRequest, out grpc.ServerStreamingServer[shopgrpc.Order]) error {
	for n := q.Number; ; n++ {
		order, err := o.Get(out.Context(), &shopgrpc.GetRequest{Number: n})
		if err != nil {
			return nil
		}
		if err := out.Send(order); err != nil {
			return err
		}
	}
}

func (o *grpcOrders) Put(in grpc.ClientStreamingServer[shopgrpc.Order, wrapperspb.Int64Value]) error {
	reply := &wrapperspb.Int64Value{}
	for {
		order, err := in.Recv()
		if err == io.EOF {
			return in.SendAndClose(reply)
		}
		if err != nil {
			return err
		}
		o.mu.Lock()
		o.all[order.Number] = order
		o.mu.Unlock()
		reply.Value++
	}
}

func (o *grpcOrders) Price(s grpc.BidiStreamingServer[shopgrpc.GetRequest, shopgrpc.Order]) error {
	for {
		q, err := s.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		order, err := o.Get(s.Context(), q)
		if err != nil {
			return err
		}
		if err := s.Send(order); err != nil {
			return err
		}
	}
}

// grpcServe serves orders over gRPC, and over HTTP for curl and Prometheus, until ctx ends.
func grpcServe(ctx context.Context, all *grpcOrders, addr, web string, certificates *tls.Config) error {
	counted := grpcprom.NewServerMetrics(grpcprom.WithServerHandlingTimeHistogram())
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(certificates)),
		grpc.ChainUnaryInterceptor(counted.UnaryServerInterceptor()), grpc.ChainStreamInterceptor(counted.StreamServerInterceptor()))
	shopgrpc.RegisterOrdersServer(server, all)
	counted.InitializeMetrics(server)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go server.Serve(listener)
	defer server.GracefulStop()
	forCurl, err := vanguardgrpc.NewTranscoder(server)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(counted)
	mux := http.NewServeMux()
	mux.Handle("/", forCurl)
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return serveWeb(ctx, web, mux, func() {})
}

// grpcUse calls three servers.
func grpcUse(ctx context.Context, addrs []string, certificates *tls.Config) (items []string, err error) {
	servers := manual.NewBuilderWithScheme("orders")
	var endpoints []resolver.Endpoint
	for _, a := range addrs {
		endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
	}
	servers.InitialState(resolver.State{Endpoints: endpoints})
	pool, err := grpc.NewClient("orders:///", grpc.WithResolvers(servers), grpc.WithTransportCredentials(credentials.NewTLS(certificates)),
		grpc.WithAuthority("127.0.0.1"), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	client := shopgrpc.NewOrdersClient(pool)
	put, err := client.Put(ctx)
	if err != nil {
		return nil, err
	}
	for n := range int64(3) {
		if err := put.Send(&shopgrpc.Order{Number: n, Item: fmt.Sprint("item ", n)}); err != nil {
			return nil, err
		}
	}
	if _, err := put.CloseAndRecv(); err != nil {
		return nil, err
	}
	watch, err := client.Watch(ctx, &shopgrpc.GetRequest{})
	if err != nil {
		return nil, err
	}
	for {
		order, err := watch.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		items = append(items, order.Item)
	}
	_, err = client.Get(ctx, &shopgrpc.GetRequest{Number: 2})
	return items, err
}
