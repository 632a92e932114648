package actor

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
)

// Runtime is rdmactor in one ActorSystem: the loops and what runs on them. Its methods are for any
// goroutine.
type Runtime struct {
	sys      *actor.ActorSystem
	registry *mailbox.Registry
	loops    []*loop
	off      *mailbox.Goroutines
	spawned  atomic.Uint32 // OnLoop actors spawned

	cfg      Config
	journal  journal
	log      *slog.Logger // the journal's
	guardian *actor.PID   // every identifier's parent
	stopped  chan struct{}
	names    atomic.Uint64
	count    atomic.Int64 // identifiers
	closing  atomic.Bool

	resolve func(ctx context.Context, node, service string, hints *cmid.AddrInfo) ([]cmid.AddrInfo, error)
	lookups context.Context // ends with Shutdown
	cancel  context.CancelFunc
	running sync.WaitGroup // look-ups

	shutdown struct {
		begun atomic.Bool
		done  chan struct{}
		err   error
	}
}

// System is the ActorSystem that the runtime was opened in. Any goroutine.
func (rt *Runtime) System() *actor.ActorSystem { return rt.sys }

// ErrShutdown is why an identifier was closed, or not created, that met Runtime.Shutdown, and why
// its connection has ended: in Closed.Err, and in Disconnected.Err where that comes.
var ErrShutdown = errors.New("the runtime has been shut down")

// name makes a name that was never used before.
func (rt *Runtime) name(kind string) string {
	return rt.guardian.Id + "/" + kind + "-" + strconv.FormatUint(rt.names.Add(1), 10)
}

// Logger is the runtime's logger (Config.Logger), for lines that others can cause: of each text 10
// are written in 10 s, the next says how many were not ("unlogged before"), and the caller does
// not wait for them to be written. So a line's values must not change any more. Lines below Info
// are written at once and all. Any goroutine, any time; Shutdown waits for what was logged before,
// while the logger goes on: 5 s for a line. A process that ends without Shutdown loses what waits.
func (rt *Runtime) Logger() *slog.Logger { return rt.log }
