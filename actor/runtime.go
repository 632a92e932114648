package actor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Runtime is rdmactor in one ActorSystem: the loops and what runs on them. Its methods are for any goroutine.
type Runtime struct {
	sys      *actor.ActorSystem
	registry *mailbox.Registry
	loops    []*loop
	off      *mailbox.Goroutines
	spread   atomic.Uint32 // OnLoop actors spawned

	cfg      config
	journal  journal
	log      *slog.Logger // the journal's
	guardian *actor.PID   // every identifier's parent
	stopped  chan struct{}
	names    atomic.Uint64
	count    atomic.Int64 // identifiers
	closing  atomic.Bool

	resolve func(ctx context.Context, node, service string, hints *AddrInfo) ([]AddrInfo, error)
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
// its connection has ended: in Closed.Err, and in Disconnected.Err where that is told.
var ErrShutdown = errors.New("the runtime has been shut down")

// Open starts a runtime in an ActorSystem that the caller has, and keeps: Shutdown stops the runtime only.
func Open(sys *actor.ActorSystem, opts ...Option) (*Runtime, error) {
	cfg := defaultConfig()
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.device == nil {
		return nil, noDevice()
	}
	if cfg.loops > 1 && cfg.each == nil && (cfg.loop.Poller != nil || cfg.loop.Clock != nil) {
		return nil, fmt.Errorf("rdma: %d loops cannot share WithLoop's Poller or Clock (WithEachLoop): %w", cfg.loops, unix.EINVAL)
	}
	if cfg.log == nil {
		cfg.log = sys.Logger()
	}
	rt := &Runtime{sys: sys, registry: mailbox.RegistryOf(sys), off: &mailbox.Goroutines{}, cfg: cfg, stopped: make(chan struct{})}
	rt.log = rt.journal.logger(cfg.log)
	rt.resolve = cmid.LookupAddrInfo
	rt.shutdown.done = make(chan struct{})
	rt.lookups, rt.cancel = context.WithCancel(context.Background())
	for i := range cfg.loops {
		if err := rt.addLoop(i); err != nil {
			rt.cancel()
			return nil, errors.Join(fmt.Errorf("rdma: %w", err), rt.dropLoops())
		}
	}
	for _, l := range rt.loops {
		rt.off.Loops = append(rt.off.Loops, l.exec)
	}
	for _, l := range rt.loops {
		l.el.Start()
	}
	pid, err := sys.Root.SpawnNamed(rt.guardianProps(), "rdma"+sys.ProcessRegistry.NextID())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rdma: %w", err), rt.stopLoops(context.Background()))
	}
	rt.guardian = pid
	return rt, nil
}

func (rt *Runtime) addLoop(i int) error {
	cfg := rt.cfg.loop
	if rt.cfg.each != nil {
		cfg = rt.cfg.each(i)
	}
	if cfg.Name == "" {
		cfg.Name = "rdma-" + strconv.Itoa(i)
	}
	if cfg.Logger == nil {
		cfg.Logger = rt.cfg.log
	}
	cfg.Logger = rt.journal.logger(cfg.Logger)
	cfg.Alarm = rt.registry.Alarm()
	el, err := eventloop.New(cfg)
	if err != nil {
		return err
	}
	l := &loop{
		el: el, exec: mailbox.NewLoop(el, cfg.OnStall != nil), rt: rt, ids: make(map[*ident]struct{}),
	}
	l.exec.Context = l
	limits := &rt.cfg.limits
	l.Init(el, rt.log, datapath.Limits{
		Receive: limits.ReceiveMemory, Send: limits.SendMemory, Memory: limits.Memory, Queue: limits.SendQueue,
	})
	l.Observed, l.NewInbound = rt.cfg.observer != nil, newReceived
	l.returns.l = l
	rt.loops = append(rt.loops, l)
	l.ch, err = cmid.NewChannel(el, rt.cfg.device, l.sink)
	return err
}

// dropLoops ends loops that never ran.
func (rt *Runtime) dropLoops() (err error) {
	for _, l := range rt.loops {
		if l.ch != nil {
			err = errors.Join(err, l.ch.Close())
		}
		err = errors.Join(err, l.el.Shutdown(context.Background()))
	}
	return err
}

// noDevice says what this host offers.
func noDevice() error {
	more := ""
	if _, err := os.Stat("/dev/infiniband/rdma_cm"); err == nil {
		more = ", or rdma.WithDevice(ucm.New()), for this host has /dev/infiniband/rdma_cm"
	}
	return fmt.Errorf("rdma: no device: use rdma.WithDevice(iwarp.New()), which needs no hardware%s: %w", more, unix.ENODEV)
}

// guardianProps is the actor above all identifiers. One that panics is stopped: its kernel part would not survive a restart.
func (rt *Runtime) guardianProps() *actor.Props {
	stop := actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
	return actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Stopped); ok {
			close(rt.stopped)
		}
	}, onLoop(rt.loops[0]), actor.WithSupervisor(stop))
}

// under is the guardian as DefaultSpawner wants it.
type under struct {
	actor.SpawnerContext
	guardian *actor.PID
}

func (u under) Self() *actor.PID { return u.guardian }

// name makes a name that was never used before.
func (rt *Runtime) name(kind string) string {
	return rt.guardian.Id + "/" + kind + "-" + strconv.FormatUint(rt.names.Add(1), 10)
}

// CreateID is rdma_create_id(3): it makes an identifier, an actor of its own. The PID may be used at once. owner gets its events,
// with the PID as their Sender, and Closed as the last of them; its death destroys the identifier. A nil owner is nobody: only
// senders are answered. The identifier lives on owner's loop if that is one of the runtime's, else on the loop that has fewest.
//
// When it cannot be made (EMFILE, a port space that the device does not have, ErrMailbox, or
// ErrRemoteOwner, whose owner is not told but logged) the commands that wait are answered with
// CommandFailed and Closed tells why. Any goroutine.
func (rt *Runtime) CreateID(owner *actor.PID, opts ...IDOption) *actor.PID {
	o := idOptions{maxMessage: defaultMaxMessage, credits: datapath.DefaultCredits}
	for _, opt := range opts {
		opt(&o)
	}
	unfit := rt.CheckOwner(owner)
	if unfit != nil {
		rt.log.Error("rdma: CreateID", "err", unfit)
	}
	if errors.Is(unfit, ErrRemoteOwner) {
		owner = nil
	}
	l := rt.place(owner)
	it := rt.newIdent(l, rt.newOwner(l, owner), o)
	it.cause = unfit
	it.counted = rt.admit()
	return rt.spawn(it)
}

// admit counts an identifier, if there is room for one more.
func (rt *Runtime) admit() bool {
	if rt.count.Add(1) > int64(rt.cfg.limits.Connections) {
		rt.count.Add(-1)
		return false
	}
	return true
}

func (rt *Runtime) newIdent(l *loop, o owner, opts idOptions) *ident {
	it := &ident{rt: rt, l: l, log: rt.log, opts: opts, owner: o}
	it.box = mailbox.New(l.exec, &mailbox.Config{
		Retained: retained, Limit: int32(rt.cfg.limits.Mailbox), Policy: it, Poison: &poisoned{},
	})
	return it
}

// spawn makes the actor. Children of the guardian are not spawned by it, so that CreateID need not wait for it.
func (rt *Runtime) spawn(it *ident) *actor.PID {
	props := actor.PropsFromProducer(
		func() actor.Actor { return it },
		actor.WithMailbox(func() actor.Mailbox { return it.box }),
	)
	pid, err := actor.DefaultSpawner(rt.sys, rt.name("id"), props, under{guardian: rt.guardian})
	if err != nil {
		panic(fmt.Sprintf("rdma: a name was used twice: %v", err)) // name never does that
	}
	return pid
}
