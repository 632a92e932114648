// Package histograms exports the histograms of package metrics to OpenTelemetry's SDK.
// OpenTelemetry's API has no histogram whose buckets are counted elsewhere, and one that records
// every call would cost every call. So the SDK's readers ask a Producer. It is a separate package
// because it needs the SDK, and metrics/otel does not.
//
//	scope := instrumentation.Scope{Name: "program"}
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(histograms.New(source, scope)))
//
// # Ownership
//
// A producer owns nothing. The reader calls it at each collection until the reader is shut down.
//
// # Ordering
//
// Producers are called after the instruments of metrics/otel, so their figures are a little newer.
//
// # Errors
//
// There are none: see package metrics.
//
// # Limitations
//
// The SDK's views do not apply to a producer's figures, and its sums are cumulative, whatever the
// reader prefers.
package histograms

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rdmactor/rdmactor/metrics"
)

type producer struct {
	source *metrics.Source
	scope  instrumentation.Scope
	began  time.Time
}

// New makes a producer of the histograms that source reads. scope is that of the meter registered
// with metrics/otel. As there, each runtime of a process needs a separate one.
func New(source *metrics.Source, scope instrumentation.Scope) sdk.Producer {
	return &producer{source, scope, time.Now()}
}

// Produce reads the calls. It asks no loop.
func (p *producer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	points, now := make(map[*metrics.Definition][]metricdata.HistogramDataPoint[float64]), time.Now()
	for _, s := range p.source.ReadCalls(ctx) {
		if s.Kind == metrics.Histogram {
			points[s.Definition] = append(points[s.Definition], p.dataPoint(&s, now))
		}
	}
	scope := metricdata.ScopeMetrics{Scope: p.scope}
	for d, all := range points {
		scope.Metrics = append(scope.Metrics, metricdata.Metrics{
			Name: d.Instrument(), Description: d.Help, Unit: d.Unit.UCUM(),
			Data: metricdata.Histogram[float64]{DataPoints: all, Temporality: metricdata.CumulativeTemporality},
		})
	}
	if scope.Metrics == nil {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{scope}, nil
}

// dataPoint converts a histogram to OpenTelemetry's form, in which buckets are not cumulative.
func (p *producer) dataPoint(s *metrics.Sample, now time.Time) metricdata.HistogramDataPoint[float64] {
	labels := make([]attribute.KeyValue, len(s.Labels))
	for i, name := range s.Labels {
		labels[i] = attribute.String(name, s.Values[i])
	}
	to := metricdata.HistogramDataPoint[float64]{
		Attributes: attribute.NewSet(labels...), StartTime: p.began, Time: now,
		Count: s.Histogram.Count(), Sum: s.Histogram.Sum().Seconds(),
	}
	below := uint64(0)
	for bound, calls := range s.Histogram.Octaves {
		to.Bounds = append(to.Bounds, bound.Seconds())
		to.BucketCounts = append(to.BucketCounts, calls-below)
		below = calls
	}
	to.BucketCounts = append(to.BucketCounts, to.Count-below)
	return to
}
