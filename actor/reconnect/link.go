package reconnect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Spawn starts a reconnecting actor that connects to cfg.Dial.Addr for owner. It runs on owner's
// loop if owner is an OnLoop actor of rt, otherwise on the next loop in turn. It ends with Closed,
// or with its owner. Any goroutine may call it.
func Spawn(rt *rdma.Runtime, owner *actor.PID, cfg Config) *actor.PID {
	return rt.System().Root.SpawnPrefix(Props(rt, owner, cfg), "reconnect")
}

// Props returns the Props of Spawn's actor, for an owner that spawns it as its child, or under a
// name. They can be used for one actor only.
func Props(rt *rdma.Runtime, owner *actor.PID, cfg Config) *actor.Props {
	cfg = cfg.withDefaults(rt)
	l := &link{rt: rt, cfg: cfg, owner: owner, state: LinkPausing, status: &status{}}
	// after a panic it is restarted with the same link, which delivers Closed
	return actor.PropsFromProducer(func() actor.Actor { return l }, rt.OnLoopOf(owner))
}

// Receive implements actor.Actor.
func (l *link) Receive(ctx actor.Context) {
	defer l.broken()
	l.receive(ctx, ctx.Message())
}

func (l *link) receive(ctx actor.Context, msg any) {
	switch m := msg.(type) {
	case *rdma.Received:
		if l.current(ctx) {
			l.delivering = true
			l.relay.HandOn(m)
			l.settle()
			l.delivered(ctx)
		}
	case *rdma.Send:
		l.accept(ctx, message{send: m}, m.Take())
	case *Send:
		msg, ok := m.take()
		l.accept(ctx, msg, ok)
	case *rdma.Writable:
		if l.current(ctx) {
			l.flush(ctx)
		}
	case *flush:
		l.flush(ctx)
	case *rdma.SendFailed, *rdma.Sent: // the outbox keeps track of these
	case *rdma.Closed:
		l.withdraw(ctx)
		l.gone(ctx, m)
	case *rdma.ConnectRequest:
		l.request(ctx, m)
	case rdma.Event:
		if l.current(ctx) {
			l.delivering = true
			l.event(ctx, m)
			l.delivered(ctx)
		} else {
			l.withdraw(ctx)
		}
	case *rdma.Close:
		l.close(ctx, m.Timeout, false)
	case *Drain:
		l.close(ctx, m.Timeout, true)
	case *rdma.DestroyID:
		l.finish(ctx, nil)
	case *Break:
		if l.id != nil && m.Generation == l.generation {
			l.down(ctx, m.Err, nil)
		}
	case *Address:
		l.address(ctx, m)
	default:
		l.react(ctx, m)
	}
}

// gone handles the end of an identifier. If it was the generation's, that ends. If the runtime was
// shut down, the actor ends.
func (l *link) gone(ctx actor.Context, m *rdma.Closed) {
	current := l.current(ctx)
	if current {
		l.id = nil
	}
	switch {
	case errors.Is(m.Err, rdma.ErrShutdown): // also if it is an earlier identifier
		l.finish(ctx, m.Err)
	case current:
		l.down(ctx, m.Err, nil)
	}
}

// react handles messages that neither the owner nor an identifier has sent.
func (l *link) react(ctx actor.Context, m any) {
	switch m := m.(type) {
	case *turn:
		if l.state == LinkQueueing {
			l.dial(ctx)
		}
	case *retry:
		if l.state == LinkPausing && m.generation == l.generation {
			l.attempt(ctx)
		}
	case *vouched:
		if m.generation == l.generation {
			l.dismiss(ctx)
		}
	case *resolved:
		l.resolved(ctx, m)
	case *unresolved:
		if l.state == LinkResolving && m.generation == l.generation && m.name == l.cfg.Dial.Addr {
			l.unresolved(ctx, unix.ETIMEDOUT)
		}
	case *tooLong:
		if l.state != LinkUp && l.downSince.Equal(m.since) && l.giveUp() > 0 {
			l.finish(ctx, l.gaveUp())
		}
	case *overdue:
		l.finish(ctx, fmt.Errorf("the peer has not consumed everything in time: %w", unix.ETIMEDOUT))
	case *shutdown:
		if l.over = true; l.id == nil { // else its Closed follows
			l.finish(ctx, l.local.Err())
		}
	case *canceled:
		l.finish(ctx, m.cause)
	case *actor.Terminated:
		if m.Who.Id == l.owner.Id {
			l.orphan = true
			l.finish(ctx, rdma.ErrOwnerDied)
		}
	case *actor.Started:
		l.start(ctx)
	case *actor.Stopping:
		l.finish(ctx, l.stopped())
		l.closed()
	case *actor.Restarting: // after a panic; messages in the mailbox precede the end
		l.finish(ctx, l.stopped())
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.DeadLetterResponse:
	default:
		if p := pointerTo(m); p != nil {
			l.receive(ctx, p)
			return
		}
		l.refuse(message{}, fmt.Errorf("%T is no message for a reconnecting actor: %w", m, unix.EINVAL))
	}
}

// pointerTo returns a pointer to a command that was sent by value, nil for other messages.
func pointerTo(m any) any {
	switch m := m.(type) {
	case rdma.Close:
		return &m
	case rdma.DestroyID:
		return &m
	case Drain:
		return &m
	case Break:
		return &m
	case Address:
		return &m
	}
	return nil
}

// broken records a panic for Closed: user code runs here, in Config.Permanent.
func (l *link) broken() {
	if r := recover(); r != nil {
		l.panicked = r
		panic(r)
	}
}

// stopped returns the error when the actor was stopped from outside, or has panicked.
func (l *link) stopped() error {
	if l.panicked == nil {
		return rdma.ErrStopped
	}
	return fmt.Errorf("%w: it has panicked: %v", rdma.ErrStopped, l.panicked)
}

// current reports whether an event is of this generation. Late events of earlier identifiers are
// dropped.
func (l *link) current(ctx actor.Context) bool {
	from := ctx.Sender()
	return l.id != nil && (from == l.id || l.id.Equal(from))
}

func (l *link) start(ctx actor.Context) {
	if l.state == LinkEnded {
		return // after a panic; the end is in the mailbox
	}
	l.local, l.self = rdma.LocalOf(ctx), ctx.Self()
	l.left = l.local.OnShutdown(&shutdown{})
	l.relay, _ = l.local.Relay(l.owner) // the Props are OnLoop
	l.since = l.local.Now()
	l.publish()
	rosterOf(l.rt).enter(l.status)
	l.local.Watch(ctx, l.owner)
	self, root := ctx.Self(), ctx.ActorSystem().Root
	if c := l.cfg.Context; c != nil {
		l.release = l.rt.Scheduler().OnDone(c, func() { root.Send(self, &canceled{context.Cause(c)}) })
	}
	l.lost(ctx, nil)
	if err := l.join(); err != nil {
		l.finish(ctx, err)
		return
	}
	if l.cfg.Resolve == nil {
		l.home = literal(l.cfg.Dial.Addr)
	}
	l.attempt(ctx)
}

// join enters the link in Peers' table, which may know its PID already, and checks the owner.
func (l *link) join() (err error) {
	if p := l.cfg.Peers; p != nil && !p.join(l.cfg.Peer, l.self, l.cfg.Dial.Addr != "") {
		l.cfg.Peers = nil // there is nothing to leave
		err = fmt.Errorf("node %d is this one, or has a reconnecting actor already: %w", l.cfg.Peer, unix.EINVAL)
	}
	if unfit := l.rt.CheckOwner(l.owner); unfit != nil {
		l.rt.Logger().Error("reconnect: an owner that cannot receive messages", "err", unfit)
		l.orphan = errors.Is(unfit, rdma.ErrRemoteOwner)
		return unfit
	}
	return err
}

// event handles an event of the generation's identifier.
func (l *link) event(ctx actor.Context, ev rdma.Event) {
	switch ev := ev.(type) {
	case *rdma.Established:
		l.up(ctx, ev)
	case *rdma.Disconnected:
		l.down(ctx, ev.Err, nil)
	case *rdma.DeviceRemoval:
		l.down(ctx, &rdma.RemovedError{Device: ev.Device, Err: ev.Err}, nil)
	case rdma.Failure:
		switch l.state {
		case LinkDialling:
			l.down(ctx, ev, ev)
		case LinkAccepting: // the peer has gone
			l.down(ctx, ev, nil)
		}
	}
}

// close begins the end. First the accepted messages are sent: over the present connection, and with
// redial also over later ones.
func (l *link) close(ctx actor.Context, timeout time.Duration, redial bool) {
	if l.state == LinkEnded {
		return
	}
	set(&timeout, defaultDrain)
	l.closing = true
	l.redial = l.redial || redial
	if due := l.local.Now().Add(timeout); l.deadline.IsZero() || due.Before(l.deadline) {
		l.deadline = due
		rdma.After(ctx, timeout, &overdue{})
	}
	switch {
	case l.state == LinkUp:
		l.flush(ctx)
	case !l.redial || l.out.len() == 0:
		l.finish(ctx, nil)
	}
}

// accept queues a message of the owner, or refuses it.
func (l *link) accept(ctx actor.Context, m message, usable bool) {
	switch o := &l.out; {
	case !usable:
		l.refuse(message{tag: m.tag}, fmt.Errorf("not made by NewSend, or sent before: %w", unix.EINVAL))
	case l.closing:
		l.refuse(m, ErrClosing)
	case l.cfg.FailFast && o.line == nil:
		l.refuse(m, ErrDown)
	case o.line != nil && m.send.Len() > o.maxSend:
		l.refuse(m, tooLarge(m.send, o.maxSend))
	case o.waiting() >= l.cfg.Queue:
		o.full = true
		l.refuse(m, errQueueFull)
	default:
		o.queue.Push(m)
		if o.waiting() == 1 {
			l.flush(ctx)
		}
	}
}

// flush sends as many messages as the connection has room for, and reports the known fates.
func (l *link) flush(ctx actor.Context) {
	o := &l.out
	if l.state != LinkUp {
		return
	}
	if !l.closeSent {
		o.post()
	}
	l.settle()
	if o.full && o.waiting() <= l.cfg.Queue/2 {
		o.full = false
		l.deliver(&rdma.Writable{})
	}
	l.closeLine(ctx)
}

// settle reports the fates that have become known.
func (l *link) settle() {
	o := &l.out
	if l.state != LinkUp {
		return
	}
	if fates := o.collect(); len(fates) > 0 {
		l.deliver(&Settled{Generation: l.generation, Fates: fates})
	}
	if o.tagged > 0 {
		o.line.Awake()
	}
}

// closeLine closes the identifier in order when it was given all messages. The identifier then
// waits until the peer has consumed them.
func (l *link) closeLine(ctx actor.Context) {
	if l.closing && !l.closeSent && l.out.waiting() == 0 {
		l.closeSent = true
		ctx.Request(l.id, &rdma.Close{Timeout: max(l.deadline.Sub(l.local.Now()), 1)})
	}
}
