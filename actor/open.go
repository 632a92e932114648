package actor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/flight"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Open starts a runtime in an ActorSystem, which stays the caller's: Shutdown stops only the
// runtime. Without one (nil) Open makes an ActorSystem, which [Runtime.System] returns and Shutdown
// shuts down. It logs to cfg.Logger, or to slog.Default().
func Open(sys *actor.ActorSystem, cfg Config) (*Runtime, error) {
	cfg = cfg.withDefaults()
	if cfg.Device == nil {
		return nil, noDevice()
	}
	for i, l := range cfg.Loops {
		if l.Poller != nil && reflect.ValueOf(l.Poller).Comparable() && slices.ContainsFunc(cfg.Loops[:i], func(o eventloop.Config) bool { return o.Poller == l.Poller }) {
			return nil, fmt.Errorf("rdma: loop %d has the same Poller as another one (Config.Loops): %w", i, unix.EINVAL)
		}
	}
	if sys != nil {
		return startRuntime(sys, cfg)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	sys = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return cfg.Logger }))
	rt, err := startRuntime(sys, cfg)
	if err != nil {
		sys.Shutdown()
		return nil, err
	}
	rt.ownsSystem = true
	return rt, nil
}

// startRuntime starts a runtime with a checked configuration.
func startRuntime(sys *actor.ActorSystem, cfg Config) (*Runtime, error) {
	if cfg.Logger == nil {
		cfg.Logger = sys.Logger()
	}
	rt := &Runtime{sys: sys, registry: mailbox.RegistryOf(sys), off: &mailbox.Goroutines{Scheduler: cfg.Scheduler}, cfg: cfg, stopped: make(chan struct{})}
	rt.off.Escaped = rt.reportEscaped
	rt.idDefaults = IDConfig{}.withDefaults(&rt.cfg)
	rt.spawner.init()
	rt.idMailbox = &mailbox.Config{
		Retained: asRetained, Carried: carriedMessage, Limit: int32(cfg.Limits.Mailbox), Last: &lastMessage{}, PoisonPill: &poisonPill{},
	}
	rt.commands, _ = cfg.Observer.(CommandObserver)
	rt.journal.Scheduler = cfg.Scheduler
	rt.computing.Places(cfg.Scheduler)
	rt.log = rt.journal.Logger(cfg.Logger)
	rt.resolve = cmid.LookupAddrInfo
	if own, ok := cfg.Device.(cmid.NameResolver); ok {
		rt.resolve = own.LookupAddrInfo
	}
	rt.shutdown.done = make(chan struct{})
	rt.lookups, rt.cancel = context.WithCancel(context.Background())
	for i, c := range cfg.Loops {
		if err := rt.addLoop(i, c); err != nil {
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
	rt.failures = sys.EventStream.Subscribe(rt.actorFailed)
	return rt, nil
}

func (rt *Runtime) addLoop(i int, cfg eventloop.Config) error {
	if cfg.Name == "" {
		cfg.Name = "rdma-" + strconv.Itoa(i)
	}
	if cfg.Logger == nil {
		cfg.Logger = rt.cfg.Logger
	}
	cfg.Logger = rt.journal.Logger(cfg.Logger)
	cfg.Alarm = rt.registry.Alarm()
	traces := cfg.OnStall != nil
	l := &loop{rt: rt, ids: make(map[*ident]struct{}), clock: time.Now, flight: flight.New(rt.cfg.Flight.Records)}
	if cfg.Clock != nil {
		l.clock = cfg.Clock.Now
	}
	el, err := eventloop.New(l.recordingConfig(cfg))
	if err != nil {
		return err
	}
	l.el, l.exec = el, mailbox.NewLoop(el, traces)
	l.exec.Context, l.exec.Scheduler, l.exec.Failed, l.exec.Escaped = l, rt.cfg.Scheduler, l.recordPanic, l.reportEscaped
	limits := &rt.cfg.Limits
	l.Init(el, rt.log, datapath.Limits{
		Receive: limits.ReceiveMemory, Send: limits.SendMemory, Memory: limits.Memory, Queue: limits.SendQueue,
	})
	l.Observed, l.NewInbound = rt.cfg.Observer != nil, newInbound
	l.returns.el, l.dials.l = el, l
	rt.loops = append(rt.loops, l)
	l.ch, err = cmid.NewChannel(el, rt.cfg.Device, l.deliverEvent, rt.cfg.Scheduler.HandleCounter())
	el.OnGoexit(l.failAll) // before the channel's
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

// noDevice returns the error for a Config without Device. It names the devices of this host.
func noDevice() error {
	more := ""
	if _, err := os.Stat("/dev/infiniband/rdma_cm"); err == nil {
		more = ", or ucm.New(), for this host has /dev/infiniband/rdma_cm"
	}
	return fmt.Errorf("rdma: no device: set rdma.Config.Device to iwarp.New(), which needs no hardware%s: %w", more, unix.ENODEV)
}

// guardianProps returns the Props of the parent of all identifiers.
func (rt *Runtime) guardianProps() *actor.Props {
	return actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Stopped); ok {
			close(rt.stopped)
		}
	}, onLoop(rt.loops[0]), actor.WithSupervisor(stopsFailed{rt}), actor.WithGuardian(resumesFailed{}))
}

// resumesFailed supervises identifiers' parents, which fail only if a subscriber of the system's
// events ends their goroutine. They are resumed, because identifiers need a supervisor.
type resumesFailed struct{}

// HandleFailure resumes the parent.
func (resumesFailed) HandleFailure(
	_ *actor.ActorSystem, by actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, _, _ any,
) {
	by.ResumeChildren(child)
}

// stopsFailed supervises identifiers. One that panics is stopped, because its objects in the kernel
// would not survive a restart. Proto.Actor's strategies publish first, and act when the subscribers
// have returned.
type stopsFailed struct{ rt *Runtime }

// HandleFailure stops the identifier.
func (s stopsFailed) HandleFailure(
	_ *actor.ActorSystem, by actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any,
) {
	by.StopChildren(child)
	s.rt.publishEvent(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: actor.StopDirective})
}
