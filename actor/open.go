package actor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Open starts a runtime in an ActorSystem that the caller has, and keeps: Shutdown stops the
// runtime only.
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

// guardianProps is the actor above all identifiers. One that panics is stopped: its kernel part
// would not survive a restart.
func (rt *Runtime) guardianProps() *actor.Props {
	stop := actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
	return actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Stopped); ok {
			close(rt.stopped)
		}
	}, onLoop(rt.loops[0]), actor.WithSupervisor(stop))
}
