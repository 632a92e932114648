package pacluster

import (
	"log/slog"
	"runtime"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// A subscriber that fails ends neither the process nor the goroutine that carries out decisions.
func TestFailingSubscribers(t *testing.T) {
	for name, fail := range map[string]func(any){
		"panic":  func(any) { panic("a bug of the user's") },
		"Goexit": func(any) { runtime.Goexit() },
	} {
		t.Run(name, func(t *testing.T) {
			log := slog.New(slog.NewTextHandler(t.Output(), nil))
			m := &Member{sys: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))}
			defer m.sys.Shutdown()
			m.sys.EventStream.Subscribe(fail)
			went := false
			m.publishGuarded(func() {
				defer func() { went = true }()
				m.sys.EventStream.Publish(&Resumed{})
			})
			if !went {
				t.Error("nothing was published")
			}
		})
	}
}
