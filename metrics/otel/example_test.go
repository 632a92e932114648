package otel_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/metrics/otel"
)

// A reader of the SDK collects a runtime's metrics.
func ExampleRegister() {
	ctx := context.Background()
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(ctx)
	reader := metric.NewManualReader() // a program has one that exports
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	defer provider.Shutdown(ctx)
	if _, err := otel.Register(provider.Meter("program"), metrics.New(metrics.Config{Runtime: rt})); err != nil {
		log.Fatal(err)
	}

	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "rdmactor.loop.blocked" {
			fmt.Println(m.Name, m.Data.(metricdata.Gauge[float64]).DataPoints[0].Value)
		}
	}
	// Output: rdmactor.loop.blocked 0
}
