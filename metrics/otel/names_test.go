package otel

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/otlptranslator"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/metrics/internal/program"
	"github.com/rdmactor/rdmactor/metrics/otel/histograms"
)

// OpenTelemetry's exporter for Prometheus uses the same names as metrics/prom.
func TestPrometheusNames(t *testing.T) {
	p := program.Start(t)
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(
		exporter.WithRegisterer(registry), exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		exporter.WithProducer(histograms.New(p.Source, instrumentation.Scope{Name: "test"})),
	)
	if err != nil {
		t.Fatal(err)
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	if _, err := Register(provider.Meter("test"), p.Source); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, f := range families {
		names[f.GetName()] = true
	}
	for _, d := range metrics.Definitions() {
		if !names[d.Name()] {
			t.Errorf("%s is not there", d.Name())
		}
		delete(names, d.Name())
	}
	delete(names, "target_info")
	for name := range names {
		t.Errorf("%s is not defined", name)
	}
	if err := provider.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
