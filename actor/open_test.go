package actor

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/iwarp"
)

// Without an ActorSystem Open makes one that logs to Config.Logger, and Shutdown shuts it down. One
// that is given stays the caller's.
func TestOpenMakesASystem(t *testing.T) {
	var out bytes.Buffer
	given := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	defer given.Shutdown()
	for _, sys := range []*actor.ActorSystem{nil, given} {
		rt, err := Open(sys, Config{Device: iwarp.New(), Logger: slog.New(slog.NewTextHandler(&out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		own := rt.System()
		if own == nil || sys != nil && own != sys || own.IsStopped() {
			t.Fatalf("the runtime is in %v, not in %v", own, sys)
		}
		if err := rt.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if own.IsStopped() != (sys == nil) {
			t.Errorf("stopped after Shutdown: %t", own.IsStopped())
		}
	}
	if !strings.Contains(out.String(), "actor system started") {
		t.Errorf("its log is %q", out.String())
	}
}
