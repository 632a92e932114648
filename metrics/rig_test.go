package metrics

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
)

// open opens a runtime with loops of these names.
func open(t testing.TB, loops ...string) (*actor.ActorSystem, *rdma.Runtime) {
	t.Helper()
	sys := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	cfg := rdma.Config{Device: iwarp.New()}
	for _, name := range loops {
		cfg.Loops = append(cfg.Loops, eventloop.Config{Name: name, StallAfter: -1})
	}
	rt, err := rdma.Open(sys, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		sys.Shutdown()
	})
	return sys, rt
}

// value finds a sample; ok is false if there is none.
func value(samples []Sample, name string, labels ...string) (v float64, ok bool) {
	for _, s := range samples {
		if s.Name() != name {
			continue
		}
		same := len(labels) == len(s.Values)
		for i := range labels {
			same = same && s.Values[i] == labels[i]
		}
		if same {
			return s.Value, true
		}
	}
	return 0, false
}

// want checks a sample.
func want(t *testing.T, samples []Sample, v float64, name string, labels ...string) {
	t.Helper()
	if got, ok := value(samples, name, labels...); !ok || got != v {
		t.Errorf("%s%q = %v, %v; want %v", name, labels, got, ok, v)
	}
}
