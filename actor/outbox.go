package actor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// outbox sends an identifier's events to its owner, and answers to the senders of commands.
type outbox struct {
	endpoint
	ctx   actor.Context // from Started on
	owner owner         // changes under mu
	mu    sync.Mutex    // for goroutines that read owner off the loop
	// the actor to which the owner has last forwarded a message; nil: none
	onward *mailbox.Mailbox
	// the connection's end that the owner was notified of last; nil: none
	reportedEnd Event

	cmd       Command    // the command being executed, if it is not answered
	cmdSender *actor.PID // its sender
}

// notifyOwner sends the owner an event.
func (b *outbox) notifyOwner(ev Event) {
	switch ev.(type) {
	case *cmid.Disconnected, *cmid.DeviceRemoval:
		b.reportedEnd = ev
	}
	b.noteEvent(ev)
	defer b.sendEvent(b.owner, ev) // also if the Observer calls Goexit: ev may be Closed
	b.observeEvent(ev)
}

// sendEvent sends an event. While the identifier ends, no actor receives it inside.
func (b *outbox) sendEvent(to owner, ev Event) {
	to.sendEnvelope(b.l, &actor.MessageEnvelope{Message: ev, Sender: b.pid}, !b.isEnding())
}

// answerSender sends an answer to the sender of a command, or to the owner when the command has
// none. Answers to the owner go through its FIFO.
func (b *outbox) answerSender(sender *actor.PID, ev Event) {
	if sender == b.cmdSender {
		b.cmd = nil
	}
	if b.isOwner(sender) {
		b.notifyOwner(ev)
		return
	}
	b.noteEvent(ev)
	defer b.sendEvent(b.l.rt.newOwner(b.l, sender), ev) // likewise
	b.observeEvent(ev)
}

// isOwner reports whether messages to sender go to the owner.
func (b *outbox) isOwner(sender *actor.PID) bool {
	return sender == nil || b.owner.pid != nil && b.l.rt.registry.Same(sender, b.owner.pid)
}

// answerFailed answers a command that did not reach the device.
func (b *outbox) answerFailed(cmd Command, sender *actor.PID, err error) {
	b.answerSender(sender, b.commandFailed(cmd, err))
}

// answerPending passes an event to the command that it answers, or to the owner.
func (b *outbox) answerPending(p *cmid.Pending, ev Event) {
	if !p.Answer(ev) {
		b.notifyOwner(ev)
	}
}

func (b *outbox) failPending(p *cmid.Pending, err error) {
	p.Answer(b.commandFailed(p.Command, err))
}

// setOwner changes the owner, also for messages that are being refused on other goroutines.
func (b *outbox) setOwner(o owner) {
	b.mu.Lock()
	b.owner, b.onward = o, nil
	b.mu.Unlock()
	b.publishState()
}

// publishState stores the identifier's present state for other goroutines. Loop goroutine.
func (b *outbox) publishState() {
	if b.known != nil {
		b.l.known.update(b.known, b.describeID())
	}
}

// describeID returns the identifier's present state.
func (b *outbox) describeID() knownID {
	k := knownID{pid: b.pid, owner: b.owner.pid, listened: b.listened}
	if b.id == nil {
		return k
	}
	in, age := b.id.Info(), b.id.Age()
	k.id, k.state, k.local, k.peer, k.device = b.id.Handle(), b.id.State(), in.Local, in.Peer, in.Device
	k.born, k.entered = b.l.el.Now().Add(-age), age-b.id.InState()
	if b.isEnding() {
		k.state = states.Destroying // it waits for the goodbye
	}
	if k.state == states.Listening {
		k.listened = b.listenerCounts()
	}
	return k
}

func (b *outbox) watchOwner() {
	if b.ctx != nil && b.owner.pid != nil {
		b.l.callUser("watch of", b.owner.pid.Id, func() { b.ctx.Watch(b.owner.pid) })
	}
}

func (b *outbox) unwatchOwner() {
	if b.ctx != nil && b.owner.pid != nil {
		b.l.callUser("watch of", b.owner.pid.Id, func() { b.ctx.Unwatch(b.owner.pid) })
	}
}

// reportTransition reports a transition, if there was one. cause is a command (states.Op) or the
// device's event (states.Kind).
func (b *outbox) reportTransition(cause fmt.Stringer) {
	now := b.id.State()
	if now == b.lastState {
		return
	}
	from := b.lastState
	b.lastState = now
	b.l.flight.Transition(b.l.el.Now(), uint64(b.eventBase().ID), from, now)
	b.publishState()
	if b.l.rt.log.Enabled(context.Background(), slog.LevelDebug) {
		b.l.rt.log.Debug("rdma: "+now.String(), b.logKeys(cause, "from", from.String())...)
	}
	b.callObserver(func(o Observer) { o.Transition(b.pid, b.id.Handle(), from, now) })
}

// isLifecycle reports whether the owner gets ev also when another actor's command caused it.
func isLifecycle(ev Event) bool {
	switch ev.(type) {
	case *cmid.Established, *cmid.Disconnected, *cmid.DeviceRemoval:
		return true
	}
	return false
}

// reportEnd reports an end, once. It answers every Disconnect. Any other command that waited has
// failed, and its failure is reported before the end. A Manual owner is also notified of a removal
// that follows, because it has to destroy the identifier.
func (b *outbox) reportEnd(ev Event, answers *cmid.Pending) {
	removal, removed := ev.(*cmid.DeviceRemoval)
	if b.reportedEnd != nil && (!removed || !b.cfg.Manual) {
		b.reportedEnd = ev // the owner was notified already
	}
	switch {
	case answers == nil:
	case removed:
		b.failPending(answers, &RemovedError{removal.Device, removal.Err})
	case isDisconnect(answers):
		answers.Answer(ev)
	default:
		b.failPending(answers, cmp.Or(ev.(*cmid.Disconnected).Err, error(unix.ECONNRESET)))
	}
	if b.reportedEnd != ev {
		b.notifyOwner(ev)
	}
}

func isDisconnect(p *cmid.Pending) bool {
	if p == nil {
		return false
	}
	_, ok := p.Command.(*cmid.Disconnect)
	return ok
}

// setLife advances to a later stage. In builds that look for misuse a step back panics.
func (b *outbox) setLife(to lifeStage) {
	if overwrite.On && to <= b.life.stage {
		panic("rdma: an identifier that is " + b.life.stage.String() + " cannot become " + to.String())
	}
	b.life.stage = to
	b.publishState()
}
