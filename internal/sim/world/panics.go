package world

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Failures passes on to h the log of an ActorSystem, and reports each actor that has failed: by a
// panic, or by runtime.Goexit. Proto.Actor logs that on the actor's goroutine, before it asks a
// supervisor, so the stack is the failed one. The event that it publishes comes later, and not
// always. report is called on that goroutine.
func Failures(h slog.Handler, report func(eventloop.Panic)) slog.Handler { return failures{h, report} }

type failures struct {
	slog.Handler
	report func(eventloop.Panic)
}

// failed is the message of the line for an actor that has failed.
const failed = "[ACTOR] Recovering"

// Enabled implements slog.Handler.
func (f failures) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || f.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (f failures) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == failed {
		f.reportRecord(r)
	}
	if !f.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return f.Handler.Handle(ctx, r)
}

func (f failures) reportRecord(r slog.Record) {
	p := eventloop.Panic{Holder: eventloop.Holder{Kind: "actor"}, Stack: debug.Stack()}
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any(); a.Key {
		case "self":
			if pid, ok := v.(*actor.PID); ok {
				p.Holder.Name = pid.Id
			}
		case "reason":
			p.Value = v
		}
		return true
	})
	f.report(p)
}

// WithAttrs implements slog.Handler.
func (f failures) WithAttrs(as []slog.Attr) slog.Handler {
	return failures{f.Handler.WithAttrs(as), f.report}
}

// WithGroup implements slog.Handler.
func (f failures) WithGroup(name string) slog.Handler {
	return failures{f.Handler.WithGroup(name), f.report}
}
