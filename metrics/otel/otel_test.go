package otel

import (
	"context"
	"fmt"
	"slices"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/metrics/internal/program"
)

// OpenTelemetry collects the values that the source reads, which Prometheus scrapes, too.
func TestCollect(t *testing.T) {
	p := program.Start(t)
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	r, err := Register(provider.Meter("test"), p.Source)
	if err != nil {
		t.Fatal(err)
	}
	collect(t, reader)
	p.Source.Read(context.Background())
	p.Shutdown()
	got := collect(t, reader)
	want := slices.Clone(p.Source.Read(context.Background()))
	want = slices.DeleteFunc(want, func(s metrics.Sample) bool { return s.Kind == metrics.Histogram })
	if len(got) != len(want) || len(got) < 100 {
		t.Errorf("%d series, want %d", len(got), len(want))
	}
	for _, s := range want {
		labels := make(map[string]string)
		for i, name := range s.Labels {
			labels[name] = s.Values[i]
		}
		name := fmt.Sprint(s.Kind, s.Instrument(), s.Unit.UCUM(), s.Help, labels)
		if v, ok := got[name]; !ok || v != s.Value && s.Name() != "rdmactor_read_duration_seconds" {
			t.Errorf("%s = %v, %v; want %v", name, v, ok, s.Value)
		}
	}
	if err := r.Unregister(); err != nil {
		t.Fatal(err)
	}
	if left := collect(t, reader); len(left) > 0 {
		t.Errorf("collected after Unregister: %v", left)
	}
	if err := provider.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// collect returns the values by name, labels and all other attributes.
func collect(t *testing.T, reader sdk.Reader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	note := func(kind metrics.Kind, m metricdata.Metrics, points []metricdata.DataPoint[float64]) {
		for _, p := range points {
			labels := make(map[string]string)
			for _, l := range p.Attributes.ToSlice() {
				labels[string(l.Key)] = l.Value.AsString()
			}
			values[fmt.Sprint(kind, m.Name, m.Unit, m.Description, labels)] = p.Value
		}
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[float64]:
				if !d.IsMonotonic {
					t.Errorf("%s is no counter", m.Name)
				}
				note(metrics.Counter, m, d.DataPoints)
			case metricdata.Gauge[float64]:
				note(metrics.Gauge, m, d.DataPoints)
			default:
				t.Errorf("%s has %T", m.Name, m.Data)
			}
		}
	}
	return values
}
