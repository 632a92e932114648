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
	defer l.recordPanic()
	l.receiveMessage(ctx, ctx.Message())
}

func (l *link) receiveMessage(ctx actor.Context, msg any) {
	switch m := msg.(type) {
	case *rdma.Received:
		if l.isCurrent(ctx) {
			l.delivering = true
			l.relay.HandOn(m)
			l.reportFates()
			l.endDelivery(ctx)
		}
	case *rdma.Send:
		l.acceptMessage(ctx, message{send: m}, m.Take())
	case *Send:
		msg, ok := m.takeMessage()
		l.acceptMessage(ctx, msg, ok)
	case *rdma.Writable:
		if l.isCurrent(ctx) {
			l.sendQueued(ctx)
		}
	case *flush:
		l.sendQueued(ctx)
	case *rdma.SendFailed, *rdma.Sent: // the outbox keeps track of these
	case *rdma.Closed:
		l.destroyChallenger(ctx)
		l.handleClosed(ctx, m)
	case *rdma.ConnectRequest:
		l.answerRequest(ctx, m)
	case rdma.Event:
		if l.isCurrent(ctx) {
			l.delivering = true
			l.handleEvent(ctx, m)
			l.endDelivery(ctx)
		} else {
			l.destroyChallenger(ctx)
		}
	case *rdma.Close:
		l.startClose(ctx, m.Timeout, false)
	case *Drain:
		l.startClose(ctx, m.Timeout, true)
	case *rdma.DestroyID:
		l.closeNow(ctx, nil)
	case *Break:
		if l.id != nil && m.Generation == l.generation {
			l.failGeneration(ctx, m.Err, nil)
		}
	case *Address:
		l.changeAddress(ctx, m)
	default:
		l.handleInternal(ctx, m)
	}
}

// handleClosed handles the end of an identifier. If it was the generation's, that ends. If the
// runtime was shut down, the actor ends.
func (l *link) handleClosed(ctx actor.Context, m *rdma.Closed) {
	current := l.isCurrent(ctx)
	if current {
		l.id = nil
	}
	switch {
	case errors.Is(m.Err, rdma.ErrShutdown): // also if it is an earlier identifier
		l.closeNow(ctx, m.Err)
	case current:
		l.failGeneration(ctx, m.Err, nil)
	}
}

// handleInternal handles messages that neither the owner nor an identifier has sent.
func (l *link) handleInternal(ctx actor.Context, m any) {
	switch m := m.(type) {
	case *turn:
		if l.state == LinkQueueing {
			l.dialInTurn(ctx)
		}
	case *retry:
		if l.state == LinkPausing && m.generation == l.generation {
			l.beginAttempt(ctx)
		}
	case *vouched:
		if m.generation == l.generation {
			l.rejectChallenger(ctx)
		}
	case *resolved:
		l.handleResolved(ctx, m)
	case *unresolved:
		if l.state == LinkResolving && m.generation == l.generation && m.name == l.cfg.Dial.Addr {
			l.failResolve(ctx, unix.ETIMEDOUT)
		}
	case *tooLong:
		if l.state != LinkUp && l.downSince.Equal(m.since) && l.giveUp() > 0 {
			l.closeNow(ctx, l.gaveUp())
		}
	case *overdue:
		l.closeNow(ctx, fmt.Errorf("the peer has not consumed everything in time: %w", unix.ETIMEDOUT))
	case *shutdown:
		if l.over = true; l.id == nil { // else its Closed follows
			l.closeNow(ctx, l.local.Err())
		}
	case *canceled:
		l.closeNow(ctx, m.cause)
	case *actor.Terminated:
		if m.Who.Id == l.owner.Id {
			l.orphan = true
			l.closeNow(ctx, rdma.ErrOwnerDied)
		}
	case *actor.Started:
		l.startActor(ctx)
	case *actor.Stopping:
		l.closeNow(ctx, l.stoppedError())
		l.reportClosed()
	case *actor.Restarting: // after a panic; messages in the mailbox precede the end
		l.closeNow(ctx, l.stoppedError())
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.DeadLetterResponse:
	default:
		if p := pointerTo(m); p != nil {
			l.receiveMessage(ctx, p)
			return
		}
		l.refuseMessage(message{}, fmt.Errorf("%T is no message for a reconnecting actor: %w", m, unix.EINVAL))
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

// recordPanic records a panic for Closed: user code runs here, in Config.Permanent.
func (l *link) recordPanic() {
	if r := recover(); r != nil {
		l.panicked = r
		panic(r)
	}
}

// stoppedError returns the error when the actor was stopped from outside, or has panicked.
func (l *link) stoppedError() error {
	if l.panicked == nil {
		return rdma.ErrStopped
	}
	return fmt.Errorf("%w: it has panicked: %v", rdma.ErrStopped, l.panicked)
}

// isCurrent reports whether an event is of this generation. Late events of earlier identifiers are
// dropped.
func (l *link) isCurrent(ctx actor.Context) bool {
	from := ctx.Sender()
	return l.id != nil && (from == l.id || l.id.Equal(from))
}

func (l *link) startActor(ctx actor.Context) {
	if l.state == LinkEnded {
		return // after a panic; the end is in the mailbox
	}
	l.local, l.self = rdma.LocalOf(ctx), ctx.Self()
	l.left = l.local.OnShutdown(&shutdown{})
	l.relay, _ = l.local.Relay(l.owner) // the Props are OnLoop
	l.since = l.local.Now()
	l.publishInfo()
	rosterOf(l.rt).enter(l.status)
	l.local.Watch(ctx, l.owner)
	self, root := ctx.Self(), ctx.ActorSystem().Root
	if c := l.cfg.Context; c != nil {
		l.release = l.rt.Scheduler().OnDone(c, func() { root.Send(self, &canceled{context.Cause(c)}) })
	}
	l.recordLoss(ctx, nil)
	if err := l.joinPeers(); err != nil {
		l.closeNow(ctx, err)
		return
	}
	if l.cfg.Resolve == nil {
		l.home = parseHost(l.cfg.Dial.Addr)
	}
	l.beginAttempt(ctx)
}

// joinPeers enters the link in Peers' table, which may know its PID already, and checks the owner.
func (l *link) joinPeers() (err error) {
	if p := l.cfg.Peers; p != nil && !p.enterLink(l.cfg.Peer, l.self, l.cfg.Dial.Addr != "") {
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

// handleEvent handles an event of the generation's identifier.
func (l *link) handleEvent(ctx actor.Context, ev rdma.Event) {
	switch ev := ev.(type) {
	case *rdma.Established:
		l.handleEstablished(ctx, ev)
	case *rdma.Disconnected:
		l.failGeneration(ctx, ev.Err, nil)
	case *rdma.DeviceRemoval:
		l.failGeneration(ctx, &rdma.RemovedError{Device: ev.Device, Err: ev.Err}, nil)
	case rdma.Failure:
		switch l.state {
		case LinkDialling:
			l.failGeneration(ctx, ev, ev)
		case LinkAccepting: // the peer has gone
			l.failGeneration(ctx, ev, nil)
		}
	}
}

// startClose begins the end. First the accepted messages are sent: over the present connection, and
// with redial also over later ones.
func (l *link) startClose(ctx actor.Context, timeout time.Duration, redial bool) {
	if l.state == LinkEnded {
		return
	}
	setDefault(&timeout, defaultDrain)
	l.closing = true
	l.redial = l.redial || redial
	if due := l.local.Now().Add(timeout); l.deadline.IsZero() || due.Before(l.deadline) {
		l.deadline = due
		rdma.After(ctx, timeout, &overdue{})
	}
	switch {
	case l.state == LinkUp:
		l.sendQueued(ctx)
	case !l.redial || l.out.len() == 0:
		l.closeNow(ctx, nil)
	}
}

// acceptMessage queues a message of the owner, or refuses it.
func (l *link) acceptMessage(ctx actor.Context, m message, usable bool) {
	switch o := &l.out; {
	case !usable:
		l.refuseMessage(message{tag: m.tag}, fmt.Errorf("not made by NewSend, or sent before: %w", unix.EINVAL))
	case l.closing:
		l.refuseMessage(m, ErrClosing)
	case l.cfg.FailFast && o.line == nil:
		l.refuseMessage(m, ErrDown)
	case o.line != nil && m.send.Len() > o.maxSend:
		l.refuseMessage(m, tooLarge(m.send, o.maxSend))
	case o.waitingCount() >= l.cfg.Queue:
		o.full = true
		l.refuseMessage(m, errQueueFull)
	default:
		o.queue.Push(m)
		if o.waitingCount() == 1 {
			l.sendQueued(ctx)
		}
	}
}

// sendQueued sends as many messages as the connection has room for, and reports the known fates.
func (l *link) sendQueued(ctx actor.Context) {
	o := &l.out
	if l.state != LinkUp {
		return
	}
	if !l.closeSent {
		o.postWaiting()
	}
	l.reportFates()
	if o.full && o.waitingCount() <= l.cfg.Queue/2 {
		o.full = false
		l.notifyOwner(&rdma.Writable{})
	}
	l.closeLine(ctx)
}

// reportFates reports the fates that have become known.
func (l *link) reportFates() {
	o := &l.out
	if l.state != LinkUp {
		return
	}
	if fates := o.collectFates(); len(fates) > 0 {
		l.notifyOwner(&Settled{Generation: l.generation, Fates: fates})
	}
	if o.tagged > 0 {
		o.line.Awake()
	}
}

// closeLine closes the identifier in order when it was given all messages. The identifier then
// waits until the peer has consumed them.
func (l *link) closeLine(ctx actor.Context) {
	if l.closing && !l.closeSent && l.out.waitingCount() == 0 {
		l.closeSent = true
		ctx.Request(l.id, &rdma.Close{Timeout: max(l.deadline.Sub(l.local.Now()), 1)})
	}
}
