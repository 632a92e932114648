package traces

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Guard returns an exporter that turns panics into errors, which the SDK reports to OpenTelemetry's
// error handler. The SDK's batch processor calls its exporter on a separate goroutine, so without
// Guard a panic there ends the process.
func Guard(e sdktrace.SpanExporter) sdktrace.SpanExporter { return guarded{e} }

type guarded struct{ to sdktrace.SpanExporter }

func (g guarded) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return callGuarded(func() error { return g.to.ExportSpans(ctx, spans) })
}

func (g guarded) Shutdown(ctx context.Context) error {
	return callGuarded(func() error { return g.to.Shutdown(ctx) })
}

func callGuarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the exporter has panicked: %v", v)
		}
	}()
	return f()
}
