package remoting_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
)

// An orderly Shutdown logs no warning, in whatever order two nodes end of which one watches an
// actor of the other: an operator who restarts them has nothing to look into.
func TestOrderlyShutdownIsQuiet(t *testing.T) {
	for name, shutdown := range map[string]func(a, b *node){
		"dialler first":  func(a, b *node) { a.end(); b.end() },
		"listener first": func(a, b *node) { b.end(); a.end() },
		"both": func(a, b *node) {
			var ends sync.WaitGroup
			ends.Go(a.end)
			ends.Go(b.end)
			ends.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var lines strings.Builder
			instead = slog.New(slog.NewTextHandler(writer(func(b []byte) {
				mu.Lock()
				defer mu.Unlock()
				lines.Write(b)
			}), &slog.HandlerOptions{Level: slog.LevelWarn}))
			defer func() { instead = nil }()
			a, b := open(t, remoting.Config{}, 1), open(t, remoting.Config{Expose: everything}, 1)
			b.spawn("echo", echo)
			if _, err := a.ask(b.pid("echo"), text("x")); err != nil {
				t.Fatal(err)
			}
			a.spawn("watcher", func(ctx actor.Context) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					ctx.Watch(b.pid("echo"))
				}
			})
			eventually(t, "b's actor is watched", func() bool { return b.info(a).Watched == 1 })
			shutdown(a, b)
			mu.Lock()
			defer mu.Unlock()
			if lines.Len() > 0 {
				t.Error(lines.String())
			}
		})
	}
}
