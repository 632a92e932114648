package traces

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Handler returns a slog.Handler that adds the ids of the trace and the span, as trace_id and
// span_id, to lines that are logged with a context that has them (slog.InfoContext). to gets the
// lines. Within a group (slog.Logger.WithGroup) the ids are in the group.
func Handler(to slog.Handler) slog.Handler { return &handler{to} }

type handler struct{ to slog.Handler }

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.to.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		rec = rec.Clone()
		rec.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return h.to.Handle(ctx, rec)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler { return &handler{h.to.WithAttrs(attrs)} }

func (h *handler) WithGroup(name string) slog.Handler { return &handler{h.to.WithGroup(name)} }
