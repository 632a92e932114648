package rdmanet

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/iwarp"
)

// patience is the time-out for events that should happen immediately.
const patience = 20 * time.Second

// openRuntime opens a runtime over the embedded device. At the test's end it is shut down without
// leftovers.
func openRuntime(tb testing.TB, cfg ...rdma.Config) *rdma.Runtime {
	tb.Helper()
	closesFiles(tb)
	log := slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	c := one(cfg)
	c.Logger = log
	if c.Device == nil {
		c.Device = iwarp.New()
	}
	rt, err := rdma.Open(sys, c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := rt.Shutdown(ctx); err != nil {
			tb.Error(err)
		}
		sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters ends on a timer
	})
	return rt
}

// watched contains the tests whose open files are counted.
var watched sync.Map

// closesFiles fails a test if more files are open after it, when its runtimes were shut down, than
// before it.
func closesFiles(tb testing.TB) {
	if _, already := watched.LoadOrStore(tb, true); already {
		return
	}
	leak.Files(tb)
	tb.Cleanup(func() { watched.Delete(tb) })
}

// is fails the test unless err is a *net.OpError in which errors.Is finds target.
func is(tb testing.TB, err, target error) {
	tb.Helper()
	var op *net.OpError
	if !errors.Is(err, target) || !errors.As(err, &op) {
		tb.Errorf("the error is %T %v, want a *net.OpError with %v", err, err, target)
	}
}

// one returns the optional config, or the zero one.
func one[C any](given []C) (c C) {
	if len(given) > 0 {
		c = given[0]
	}
	return c
}

// listen listens on loopback until the test has ended.
func listen(tb testing.TB, rt *rdma.Runtime, cfg ...Config) *Listener {
	tb.Helper()
	l, err := Listen(tb.Context(), rt, "127.0.0.1:0", cfg...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	return l.(*Listener)
}

// pipe returns both ends of a stream, which are closed when the test has ended.
func pipe(tb testing.TB, rt *rdma.Runtime, cfg ...Config) (client, server *Conn) {
	tb.Helper()
	l := listen(tb, rt, cfg...)
	client, server = connect(tb, rt, l, cfg...)
	return client, server
}

// connect dials l.
func connect(tb testing.TB, rt *rdma.Runtime, l *Listener, cfg ...Config) (client, server *Conn) {
	tb.Helper()
	c, err := Dial(tb.Context(), rt, l.Addr().String(), cfg...)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = c.Close()
		_ = s.Close()
	})
	return c.(*Conn), s.(*Conn)
}
