package slots

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

// patience is the time-out for events that should happen immediately.
const patience = 20 * time.Second

// soon returns a context that ends after patience.
func soon(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// openRuntime opens a runtime over the embedded device. At the test's end it is shut down without
// leftovers.
func openRuntime(tb testing.TB, cfg ...rdma.Config) *rdma.Runtime {
	tb.Helper()
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
		if err := rt.Shutdown(soon(tb)); err != nil {
			tb.Error(err)
		}
		sys.Shutdown()
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters ends on a timer
	})
	return rt
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
	l, err := Listen(soon(tb), rt, "127.0.0.1:0", one(cfg))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	return l
}

// pipe returns both ends of a connection, which are closed when the test has ended.
func pipe(tb testing.TB, rt *rdma.Runtime, cfg ...Config) (client, server *Conn) {
	tb.Helper()
	return joined(tb, rt, listen(tb, rt, cfg...), one(cfg))
}

// joined returns both ends of a connection to l.
func joined(tb testing.TB, rt *rdma.Runtime, l *Listener, cfg Config) (client, server *Conn) {
	tb.Helper()
	client, err := Dial(soon(tb), rt, l.Addr().String(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	server, err = l.Accept(soon(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
	})
	return client, server
}

// reserve returns c's next free slot.
func reserve(tb testing.TB, c *Conn) Reserved {
	tb.Helper()
	s, err := c.Reserve(soon(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// send sends a slot with text in it.
func send(tb testing.TB, c *Conn, text string) {
	tb.Helper()
	s := reserve(tb, c)
	if err := s.Send(copy(s.Bytes(), text)); err != nil {
		tb.Fatal(err)
	}
}

// receive returns the next slot that c receives.
func receive(tb testing.TB, c *Conn) Received {
	tb.Helper()
	r, err := c.Receive(soon(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// receives fails the test unless the next slot contains text.
func receives(tb testing.TB, c *Conn, text string) {
	tb.Helper()
	r := receive(tb, c)
	defer r.Release()
	if string(r.Bytes()) != text {
		tb.Errorf("received %q, want %q", r.Bytes(), text)
	}
}
