package actortest

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// Run runs test in a separate world, and fails t if anything is left of it. Log lines of the
// runtime show the time since test began, and come with a test that fails. Inside test both t and
// w.T may be used, and t.Run may not.
func Run(t *testing.T, cfg Config, test func(w *World)) {
	t.Helper()
	skipped := false
	synctest.Test(t, func(inner *testing.T) {
		w := newWorld(inner, cfg)
		inner.Cleanup(w.closeAndCheck) // last of the cleanups
		defer func() {
			if w.finished {
				if t.Skipped() || inner.Skipped() {
					inner.Error("actortest: Skip was called, on another goroutine than the test's: it has skipped nothing")
				}
				return
			}
			if r := recover(); r != nil {
				panic(r)
			}
			// FailNow and Skip on t, of which the testing package would complain.
			switch skipped = t.Skipped() || inner.Skipped(); {
			case t.Failed() && !inner.Failed():
				inner.FailNow()
			case t.Skipped():
				inner.SkipNow()
			}
		}()
		w.start = time.Now()
		test(w)
		w.finished = true
	})
	if skipped {
		t.SkipNow()
	}
}

func newWorld(t *testing.T, cfg Config) *World {
	t.Helper()
	w := &World{
		t: t, cfg: cfg, start: time.Now(),
		fabric:  cmidtest.NewFabric(cfg.fabricConfig()),
		devices: make(map[string]*plug),
		own:     bubbleGoroutines(),
		panics:  &panics{t: t, onPanic: cfg.OnPanic},
	}
	w.sys = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(world.Failures(w.newLogger(slog.LevelWarn).Handler(), w.panics.handlePanic))
		}),
		actor.WithDeadLetterThrottleInterval(deadLetterTick),
	)
	w.hang = time.AfterFunc(forEver, w.hangs)
	w.sys.EventStream.Subscribe(w.panics.handleEvent)
	w.rt = w.openRuntime("", "mem0", "10.0.0.1/24")
	return w
}
