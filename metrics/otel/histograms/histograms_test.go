package histograms

import (
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/metrics/internal/program"
)

// A reader collects the histograms that the source reads.
func TestCollect(t *testing.T) {
	p := program.Start(t)
	scope := instrumentation.Scope{Name: "test"}
	reader := sdk.NewManualReader(sdk.WithProducer(New(p.Source, scope)))
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	p.Source.Read(context.Background())
	p.Shutdown()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.ScopeMetrics) != 1 || all.ScopeMetrics[0].Scope != scope || len(all.ScopeMetrics[0].Metrics) != 1 {
		t.Fatalf("%+v", all)
	}
	m := all.ScopeMetrics[0].Metrics[0]
	h, ok := m.Data.(metricdata.Histogram[float64])
	if !ok || m.Name != "rdmactor.rpc.latency" || m.Unit != "s" || m.Description == "" || h.Temporality != metricdata.CumulativeTemporality {
		t.Fatalf("%+v", m)
	}
	sides := 0
	for _, s := range p.Source.Read(context.Background()) {
		if s.Kind != metrics.Histogram {
			continue
		}
		i := slices.IndexFunc(h.DataPoints, func(d metricdata.HistogramDataPoint[float64]) bool {
			side, _ := d.Attributes.Value("side")
			method, _ := d.Attributes.Value("method")
			return side.AsString() == s.Values[0] && method.AsString() == s.Values[1]
		})
		if i < 0 {
			t.Fatalf("%q is not there", s.Values)
		}
		same(t, &h.DataPoints[i], &s)
		sides++
	}
	if sides != 2 || len(h.DataPoints) != 2 {
		t.Errorf("%d of %d", sides, len(h.DataPoints))
	}
	if err := provider.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// same compares a point with the source's sample.
func same(t *testing.T, d *metricdata.HistogramDataPoint[float64], s *metrics.Sample) {
	t.Helper()
	if d.Count != program.Calls+1 || d.Sum != s.Histogram.Sum().Seconds() || !d.Time.After(d.StartTime) || len(d.BucketCounts) != len(d.Bounds)+1 {
		t.Errorf("%+v; want %v", d, s.Histogram)
	}
	i, below := 0, uint64(0)
	for bound, calls := range s.Histogram.Octaves {
		if below += d.BucketCounts[i]; d.Bounds[i] != bound.Seconds() || below != calls {
			t.Errorf("%d calls up to %v s; want %d up to %v", below, d.Bounds[i], calls, bound)
		}
		i++
	}
	if i != len(d.Bounds) || below+d.BucketCounts[i] != d.Count {
		t.Errorf("%v of %d", d.BucketCounts, d.Count)
	}
}

// Without calls there is nothing to report.
func TestNothing(t *testing.T) {
	if all, err := New(metrics.New(metrics.Config{}), instrumentation.Scope{}).Produce(context.Background()); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
}
