// Package otel exports the metrics of package metrics to OpenTelemetry. It is a separate module,
// and needs OpenTelemetry's API only; the program chooses the SDK.
//
// # Ownership
//
// The meter's provider calls the source at each collection, until Register's result is unregistered
// or the provider is shut down. Each runtime of a process needs a meter with a distinct attribute
// (metric.WithInstrumentationAttributes): if two share a meter, the SDK mixes their values.
//
// # Ordering
//
// Collections that begin while another one is under way share its answer.
//
// # Errors
//
// Register fails if the meter refuses an instrument. A collection does not fail because of a
// reading: see package metrics.
//
// # Limitations
//
// Register leaves out histograms, because OpenTelemetry's API has none that is read: see package
// metrics/otel/histograms. Instruments have OpenTelemetry's names, such as "rdmactor.loop.busy"
// with the unit "s", and floats: docs/metrics.md relates them to Prometheus's.
package otel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/rdmactor/rdmactor/metrics"
)

// Register makes the instruments. They are read when the meter's provider collects.
func Register(meter metric.Meter, source *metrics.Source) (metric.Registration, error) {
	instruments := make(map[*metrics.Definition]metric.Float64Observable)
	var all []metric.Observable
	for _, d := range metrics.Definitions() {
		if d.Kind == metrics.Histogram {
			continue
		}
		i, err := newInstrument(meter, d)
		if err != nil {
			return nil, fmt.Errorf("otel: %s: %w", d.Instrument(), err)
		}
		instruments[d] = i
		all = append(all, i)
	}
	observe := func(ctx context.Context, o metric.Observer) error {
		for _, s := range source.Read(ctx) {
			if s.Kind == metrics.Histogram {
				continue
			}
			labels := make([]attribute.KeyValue, len(s.Labels))
			for i, name := range s.Labels {
				labels[i] = attribute.String(name, s.Values[i])
			}
			o.ObserveFloat64(instruments[s.Definition], s.Value, metric.WithAttributes(labels...))
		}
		return nil
	}
	r, err := meter.RegisterCallback(observe, all...)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return r, nil
}

func newInstrument(meter metric.Meter, d *metrics.Definition) (metric.Float64Observable, error) {
	if d.Kind == metrics.Counter {
		return meter.Float64ObservableCounter(d.Instrument(), metric.WithDescription(d.Help), metric.WithUnit(d.Unit.UCUM()))
	}
	return meter.Float64ObservableGauge(d.Instrument(), metric.WithDescription(d.Help), metric.WithUnit(d.Unit.UCUM()))
}
