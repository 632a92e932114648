package leak

import (
	"log/slog"
	"os"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
)

// TestMain fails if a dead letter's goroutine still runs after Run.
func TestMain(m *testing.M) { goleak.VerifyTestMain(Settled{M: m}) }

// TestDeadLetter leaves such a goroutine.
func TestDeadLetter(t *testing.T) {
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	sys.Root.Send(sys.NewLocalPID("nobody"), "hello")
	if !throttleRuns() {
		t.Fatal("a dead letter is not counted, or not where Settled looks")
	}
	sys.Shutdown()
}

// A file that a test leaves open fails it, and one that it closes does not.
func TestFiles(t *testing.T) {
	for name, left := range map[string]bool{"closed": false, "left open": true} {
		tb := &recorder{TB: t}
		Files(tb)
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		if !left {
			_ = f.Close()
		}
		synctest.Test(t, func(*testing.T) { tb.cleanup() })
		_ = f.Close()
		if tb.failed != left {
			t.Errorf("%s: the test has failed: %v, want %v", name, tb.failed, left)
		}
	}
}

// recorder records the cleanup and the failure of a test.
type recorder struct {
	testing.TB
	cleanup func()
	failed  bool
}

func (r *recorder) Cleanup(fn func())     { r.cleanup = fn }
func (r *recorder) Errorf(string, ...any) { r.failed = true }
