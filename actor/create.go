package actor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/states"
)

// CreateID is rdma_create_id(3): it makes an identifier, which is an actor. The PID may be used
// immediately. owner gets the identifier's events, with the PID as their Sender and Closed as the
// last of them. The death of owner destroys the identifier. With a nil owner only the senders of
// commands are answered. The identifier lives on owner's loop if that is one of the runtime's,
// otherwise on the loop that has the fewest identifiers.
//
// The identifier may be impossible to make: EMFILE, a port space that the device does not have,
// ErrMailbox, or ErrRemoteOwner. Then the waiting commands are answered with CommandFailed, and
// Closed has the cause. With ErrRemoteOwner the owner gets nothing, and the error is logged. Any
// goroutine may call it.
func (rt *Runtime) CreateID(owner *actor.PID, cfg ...IDConfig) *actor.PID {
	return rt.createID(owner, rt.idConfig(cfg), nil)
}

// createID implements CreateID. closed is called after Closed was sent, with its error.
func (rt *Runtime) createID(owner *actor.PID, cfg *IDConfig, closed func(error)) *actor.PID {
	unfit := cmp.Or(rt.CheckOwner(owner), cfg.checkSecurity())
	if unfit != nil {
		rt.log.Error("rdma: CreateID", "err", unfit)
	}
	if errors.Is(unfit, ErrRemoteOwner) {
		owner = nil
	}
	l := rt.assignLoopFor(owner)
	it := rt.newIdent(l, rt.newOwner(l, owner), cfg)
	it.life.cause, it.closed = unfit, closed
	it.counted = rt.countIfRoom()
	return rt.spawnActor(it)
}

// idConfig returns an optional configuration with its defaults.
func (rt *Runtime) idConfig(cfg []IDConfig) *IDConfig {
	if len(cfg) == 0 {
		return rt.idDefaults
	}
	return optional.Value(cfg).withDefaults(&rt.cfg)
}

// countIfRoom counts an identifier, if there is room for one more.
func (rt *Runtime) countIfRoom() bool {
	if rt.count.Add(1) > int64(rt.cfg.Limits.Connections) {
		rt.count.Add(-1)
		return false
	}
	return true
}

func (rt *Runtime) newIdent(l *loop, o owner, cfg *IDConfig) *ident {
	it := new(ident)
	it.l, it.cfg, it.owner, it.tenancy.outbox = l, cfg, o, &it.outbox
	it.box = mailbox.New(l.exec, rt.idMailbox, it)
	return it
}

// spawner makes the actors of identifiers. They share Props, which would be 280 bytes for each.
type spawner struct {
	props *actor.Props
	mu    sync.Mutex
	next  *ident // the one being spawned
}

// init makes the Props. Their functions are called only during a spawn, because identifiers are not
// restarted (stopsFailed).
func (s *spawner) init() {
	s.props = actor.PropsFromProducer(
		func() actor.Actor { return s.next },
		actor.WithMailbox(func() actor.Mailbox { return s.next.box }),
	)
}

// spawnActor makes the actor. The guardian does not spawn its children, so that CreateID need not
// wait for it.
func (rt *Runtime) spawnActor(it *ident) *actor.PID {
	s := &rt.spawner
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = it
	pid, err := actor.DefaultSpawner(rt.sys, rt.uniqueName("id"), s.props, under{guardian: rt.guardian})
	s.next = nil
	if err != nil {
		panic(fmt.Sprintf("rdma: a name was used twice: %v", err)) // rt.name does not repeat names
	}
	return pid
}

// under is the guardian in the form that DefaultSpawner takes.
type under struct {
	actor.SpawnerContext
	guardian *actor.PID
}

func (u under) Self() *actor.PID { return u.guardian }

// startActor makes the identifier, unless it came with a request, and watches the owner.
func (it *ident) startActor(ctx actor.Context) {
	it.ctx, it.pid = ctx, ctx.Self()
	it.l.addIdent(it)
	it.watchOwner()
	if it.cfg.Context != nil {
		box, c := it.box, it.cfg.Context
		it.release = it.l.rt.Scheduler().OnDone(c, func() { box.PostUserMessage(&abort{context.Cause(c)}) })
	}
	if it.id != nil {
		if it.l.rt.closing.Load() { // Shutdown has listed the identifiers already, without this one
			it.box.PostUserMessage(&shutdownAsked{})
		}
		return
	}
	if err := it.createIdentifier(); err != nil {
		it.life.cause = err
		it.setLife(lifeGone)
		it.l.rt.sys.Root.Stop(it.pid)
	}
}

// createIdentifier creates the device's identifier, as rdma_create_id(3) does.
func (it *ident) createIdentifier() error {
	switch {
	case it.life.cause != nil: // its owner or its security is unfit
		return fmt.Errorf("create_id: %w", it.life.cause)
	case it.l.rt.closing.Load():
		return fmt.Errorf("create_id: %w (%w)", ErrShutdown, unix.ESHUTDOWN)
	case it.l.failErr() != nil:
		return fmt.Errorf("create_id: %w (%w)", it.l.failErr(), unix.ESHUTDOWN)
	case !it.counted:
		return fmt.Errorf("create_id: the runtime has its %d identifiers (Limits.Connections): %w", it.l.rt.cfg.Limits.Connections, unix.EMFILE)
	}
	id, err := it.l.createDevice(it.cfg)
	if err != nil {
		return err
	}
	it.id = id
	id.Context = it
	it.lastState = id.State()
	it.publishState()
	return nil
}

// createDevice makes the device's part of an identifier with that configuration.
func (l *loop) createDevice(cfg *IDConfig) (*cmid.ID, error) {
	id, err := l.ch.CreateIDFor(cfg.addrInfo())
	if err != nil {
		return nil, err
	}
	if err := cfg.Transport.Set(id); err != nil {
		l.destroyOrphan(id, nil)
		return nil, fmt.Errorf("create_id: Transport: %w", err)
	}
	return id, nil
}

// addIdent adds an identifier, which may be there already, to those of its loop.
func (l *loop) addIdent(it *ident) {
	l.ids[it] = struct{}{}
	it.known = l.known.add(it.box, it.describeID())
}

// renewID gives the actor a new identifier in place of a used one.
func (it *ident) renewID() error {
	old, conn := it.id, it.conn
	id, err := it.l.createDevice(it.cfg)
	if err != nil {
		return err
	}
	old.Context = nil
	it.tenancy.moveOut()
	it.handshake.countFailed(FailedLost, nil) // the failed attempt's handshake
	it.handshake.failUnfinished(nil)
	it.handshake = nil
	it.conn, it.id, id.Context = nil, id, it
	id.Inherit(old)
	for _, p := range slices.Clone(old.Pending()) {
		if !p.Inner {
			p.Answer(it.endingAnswer(p.Command))
		}
	}
	it.l.destroyOrphan(old, conn)
	it.reportTransition(states.OpDestroyID)
	for _, o := range it.options {
		id.Do(o, nil) // a refused option is refused again
	}
	return nil
}
