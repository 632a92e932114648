package traces

import (
	"context"
	"errors"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Guard returns an exporter that turns panics and runtime.Goexit into errors, which the SDK reports
// to OpenTelemetry's error handler. The SDK's batch processor calls its exporter on a separate
// goroutine, so without Guard a panic there ends the process, and a Goexit ends all exporting.
func Guard(e sdktrace.SpanExporter) sdktrace.SpanExporter { return guarded{e} }

type guarded struct{ to sdktrace.SpanExporter }

func (g guarded) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return callGuarded(func() error { return g.to.ExportSpans(ctx, spans) })
}

func (g guarded) Shutdown(ctx context.Context) error {
	return callGuarded(func() error { return g.to.Shutdown(ctx) })
}

var errGoexit = errors.New("the exporter has called runtime.Goexit")

// callGuarded calls f on a goroutine that f may end.
func callGuarded(f func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("the exporter has panicked: %v", v)
			}
			result <- err
		}()
		err = f()
	}()
	return <-result
}
