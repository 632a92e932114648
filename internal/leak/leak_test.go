package leak

import (
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
)

// TestMain fails if a dead letter's goroutine is there when Run has ended.
func TestMain(m *testing.M) { goleak.VerifyTestMain(Settled{M: m}) }

// TestDeadLetter leaves such a goroutine.
func TestDeadLetter(t *testing.T) {
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	sys.Root.Send(sys.NewLocalPID("nobody"), "hello")
	if !counting() {
		t.Fatal("a dead letter is not counted, or not where Settled looks")
	}
	sys.Shutdown()
}
