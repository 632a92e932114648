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

// patience is how long a test waits for what should happen at once.
const patience = 20 * time.Second

// soon is a context that ends after patience.
func soon(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	return ctx
}

// openRuntime opens a runtime over the embedded device. When the test has ended, it is shut down,
// and nothing is left.
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
		time.Sleep(5 * time.Millisecond) // Proto.Actor's throttle of dead letters ends by itself
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

// pipe is both ends of a connection, which are closed when the test has ended.
func pipe(tb testing.TB, rt *rdma.Runtime, cfg ...Config) (client, server *Conn) {
	tb.Helper()
	return joined(tb, rt, listen(tb, rt, cfg...), one(cfg))
}

// joined is a connection to l.
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

// reserve is c's next slot.
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

// receive is the next slot that has come to c.
func receive(tb testing.TB, c *Conn) Received {
	tb.Helper()
	r, err := c.Receive(soon(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// receives fails the test unless the next slot has text in it.
func receives(tb testing.TB, c *Conn, text string) {
	tb.Helper()
	r := receive(tb, c)
	defer r.Release()
	if string(r.Bytes()) != text {
		tb.Errorf("received %q, want %q", r.Bytes(), text)
	}
}
