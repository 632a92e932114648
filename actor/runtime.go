package actor

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"

	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/journal"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// Runtime has the event loops that Open starts in an ActorSystem, and the identifiers on them. Its
// methods are for any goroutine.
type Runtime struct {
	sys *actor.ActorSystem
	// Open made sys, so that Shutdown shuts it down
	ownsSystem bool
	registry   *mailbox.Registry
	loops      []*loop
	off        *mailbox.Goroutines
	spawned    atomic.Uint32 // OnLoop actors spawned

	cfg        Config
	idDefaults *IDConfig       // of an identifier that is created without
	idMailbox  *mailbox.Config // of every identifier
	spawner    spawner
	commands   CommandObserver // the Observer, if it is one; nil: no notifications
	journal    journal.Journal
	dumps      dumps
	log        *slog.Logger // the journal's
	guardian   *actor.PID   // every identifier's parent
	failures   *eventstream.Subscription
	stopped    chan struct{}
	names      atomic.Uint64
	count      atomic.Int64 // identifiers
	closing    atomic.Bool
	strangers  limits.Strangers  // peers that are not authenticated
	identities limits.Identities // of authenticated peers
	computing  handshakes.Computing
	over       atomic.Bool // Shutdown has ended

	resolve func(ctx context.Context, node, service string, hints *cmid.AddrInfo) ([]cmid.AddrInfo, error)
	lookups context.Context // ends with Shutdown
	cancel  context.CancelFunc
	running sync.WaitGroup // look-ups, and computations of handshakes

	shutdown struct {
		begun atomic.Bool
		done  chan struct{}
		err   error
	}
}

// System returns the ActorSystem that the runtime was opened in. Any goroutine may call it.
func (rt *Runtime) System() *actor.ActorSystem { return rt.sys }

// ErrShutdown: Runtime.Shutdown has closed the identifier, or has kept it from being created. It is
// in Closed.Err, and in Disconnected.Err if there is one.
var ErrShutdown = errors.New("the runtime has been shut down")

// Scheduler returns Config.Scheduler: nil, except in a simulation. It is for packages of this
// module. Any goroutine may call it.
func (rt *Runtime) Scheduler() *sched.Scheduler { return rt.cfg.Scheduler }

// uniqueName returns a name that was never used before.
func (rt *Runtime) uniqueName(kind string) string {
	return rt.guardian.Id + "/" + kind + "-" + strconv.FormatUint(rt.names.Add(1), 10)
}

// Logger returns Config.Logger with a limit, for lines that peers or programs can cause. Of each
// text 10 lines are written in 10 s, and the next one reports how many were not ("unlogged"). The
// caller does not wait until a line is written, so the values in it must not change afterwards.
// Lines below Info are written immediately and without a limit. Shutdown waits for the lines that
// were logged before it, as long as the logger takes no more than 5 s for one. A process that ends
// without Shutdown loses the lines that wait. Any goroutine may call it, at any time.
func (rt *Runtime) Logger() *slog.Logger { return rt.log }
