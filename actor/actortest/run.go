package actortest

import (
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/states"
)

// Option is an option of Run.
type Option func(*config)

type config struct {
	fabric  cmidtest.Config
	runtime []rdma.Option
	onPanic func(eventloop.Panic) // nil: the test fails
	onStall func(eventloop.Stall) // nil: the test fails
}

// IWARP has the device play iWARP, as the embedded device of package iwarp does. This is the default. Limitations in the package
// comment say where the two differ.
func IWARP() Option {
	return func(c *config) { c.fabric.Flavor, c.fabric.Embedded = states.IWARP, true }
}

// InfiniBand has the device play InfiniBand as RoCE does: padded private data, disconnects that are answered, timewait.
func InfiniBand() Option { return func(c *config) { c.fabric.Flavor = 0 } }

// Seed decides what chance decides: port numbers, and what Reorder does. It is 0 otherwise. Several loops (WithLoops) run at the same time:
// then no seed repeats a run.
func Seed(n uint64) Option { return func(c *config) { c.fabric.Seed = n } }

// RuntimeOptions are further options of every runtime: WithTimeouts, WithLimits, WithObserver, WithLogger, WithLoops. The device and how
// the loops are made are the World's.
func RuntimeOptions(opts ...rdma.Option) Option {
	return func(c *config) { c.runtime = append(c.runtime, opts...) }
}

// OnPanic has fn told of whatever panics or calls runtime.Goexit: actors, what loops call, rpc
// handlers. Then that does not fail the test, and ExpectPanic means nothing. fn is called where it
// happens, on any goroutine; a Goexit is told by each whom it passes, such as an actor and its
// loop.
func OnPanic(fn func(eventloop.Panic)) Option { return func(c *config) { c.onPanic = fn } }

// Run runs test in a world of its own, and fails t if anything is left of it. Log lines of the runtime show the time since test
// began, and come with a test that fails. Inside test both t and w.T may be used, and t.Run may not.
func Run(t *testing.T, test func(w *World), opts ...Option) {
	t.Helper()
	var cfg config
	for _, o := range append([]Option{IWARP()}, opts...) {
		o(&cfg)
	}
	skipped := false
	synctest.Test(t, func(inner *testing.T) {
		w := newWorld(inner, cfg)
		inner.Cleanup(w.end) // last of the cleanups
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

// deadLetterTick is how long Proto.Actor keeps a goroutine for counting dead letters.
const deadLetterTick = time.Millisecond

func newWorld(t *testing.T, cfg config) *World {
	t.Helper()
	w := &World{
		t: t, cfg: cfg, start: time.Now(),
		fabric:  cmidtest.NewFabric(cfg.fabric),
		devices: make(map[string]*plug),
		own:     bubbleGoroutines(),
	}
	w.sys = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(failures{w.logger(slog.LevelWarn).Handler(), w})
		}),
		actor.WithDeadLetterThrottleInterval(deadLetterTick),
	)
	w.hang = time.AfterFunc(forEver, w.hangs)
	w.sys.EventStream.Subscribe(w.published)
	w.rt = w.open("", "mem0", "10.0.0.1/24")
	return w
}

// logger writes to the test's log, with virtual time.
func (w *World) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Duration(slog.TimeKey, a.Value.Time().Sub(w.start))
			}
			return a
		},
	}))
}

// open starts a runtime on a host, with its first device.
func (w *World) open(host, device string, addrs ...string) *rdma.Runtime {
	w.t.Helper()
	h := w.fabric.Host(host)
	m := &machine{host: h}
	w.plugIn(m, device, addrs)
	opts := append([]rdma.Option{rdma.WithLogger(w.logger(slog.LevelDebug))}, w.cfg.runtime...)
	opts = append(opts, rdma.WithDevice(h.Driver()), rdma.WithEachLoop(func(i int) eventloop.Config {
		name := device
		if i > 0 {
			name += "-" + strconv.Itoa(i)
		}
		p := &poller{Poller: eventlooptest.NewPoller(), w: w, m: m, since: time.Now()}
		w.pollers = append(w.pollers, p)
		return eventloop.Config{Name: name, Poller: p, CheckOwner: true, OnPanic: w.panicked, OnStall: p.stalled}
	}))
	rt, err := rdma.Open(w.sys, opts...)
	if err != nil {
		w.t.Fatalf("actortest: %v", err)
	}
	m.rt = rt
	w.machines = append(w.machines, m)
	return rt
}
