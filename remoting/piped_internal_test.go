package remoting

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

func aFuture() (*actor.ActorSystem, actor.Future) {
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	return sys, actor.NewFuture(sys, time.Minute)
}

// It is seen whether the result of a future of this version of Proto.Actor is piped.
func TestPiped(t *testing.T) {
	sys, f := aFuture()
	if what := missingPart(sys); what != "" {
		t.Errorf("this version of Proto.Actor: %s", what)
	}
	proc, _ := sys.ProcessRegistry.GetLocal(f.PID().Id)
	if isPiped(proc) {
		t.Error("nobody gets its result")
	}
	f.PipeTo(actor.NewPID("", "nobody"))
	if !isPiped(proc) {
		t.Error("somebody gets its result")
	}
	if !isPiped(sys.DeadLetter) {
		t.Error("what is no future may block")
	}
	if n := testing.AllocsPerRun(100, func() { isPiped(proc) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPiped(b *testing.B) {
	sys, f := aFuture()
	proc, _ := sys.ProcessRegistry.GetLocal(f.PID().Id)
	for b.Loop() {
		isPiped(proc)
	}
}
