package traces

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// A line that is logged within a span contains its ids, and others contain none.
func TestHandler(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(Handler(slog.NewTextHandler(&b, nil))).With("peer", "x")
	traceID, _ := trace.TraceIDFromHex(parent[3:35])
	spanID, _ := trace.SpanIDFromHex(parent[36:52])
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID}))
	log.InfoContext(ctx, "within")
	log.InfoContext(context.Background(), "without")
	log.WithGroup("g").InfoContext(ctx, "grouped")
	log.DebugContext(ctx, "not enabled")
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	ids := "trace_id=" + parent[3:35] + " span_id=" + parent[36:52]
	if len(lines) != 3 || !strings.HasSuffix(lines[0], "peer=x "+ids) || strings.Contains(lines[1], "trace_id") ||
		!strings.Contains(lines[2], "g.trace_id=") {
		t.Errorf("%s", b.String())
	}
}
