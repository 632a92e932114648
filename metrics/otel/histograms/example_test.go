package histograms_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/metrics/otel/histograms"
	"github.com/rdmactor/rdmactor/rpc"
)

var echo = rpc.NewRawMethod("echo")

// A reader of the SDK collects how long a server's calls take.
func ExampleNew() {
	ctx := context.Background()
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(ctx)
	server := rpc.NewServer(rt)
	defer server.Close()
	rpc.HandleRaw(server, echo, func(_ context.Context, q, _ []byte) ([]byte, error) { return q, nil })
	addr, err := server.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	client := rpc.NewClient(rt, addr.String())
	defer client.Close()
	if _, err := rpc.CallRaw(ctx, client, echo, []byte("hello"), nil); err != nil {
		log.Fatal(err)
	}

	source := metrics.New(metrics.Config{Servers: func() []*rpc.Server { return []*rpc.Server{server} }})
	scope := instrumentation.Scope{Name: "program"}
	producer := histograms.New(source, scope)
	// A program has a reader that exports.
	reader := metric.NewManualReader(metric.WithProducer(producer))
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	defer provider.Shutdown(ctx)
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	m := all.ScopeMetrics[0].Metrics[0]
	fmt.Println(m.Name, m.Data.(metricdata.Histogram[float64]).DataPoints[0].Count)
	// Output: rdmactor.rpc.latency 1
}
