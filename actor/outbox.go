package actor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
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

// notify sends the owner an event.
func (b *outbox) notify(ev Event) {
	switch ev.(type) {
	case *cmid.Disconnected, *cmid.DeviceRemoval:
		b.reportedEnd = ev
	}
	b.noteEvent(ev)
	defer b.send(b.owner, ev) // also if the Observer calls Goexit
	b.observeEvent(ev)
}

// send sends an event. While the identifier ends, no actor receives it inside.
func (b *outbox) send(to owner, ev Event) {
	to.send(b.l, &actor.MessageEnvelope{Message: ev, Sender: b.pid}, !b.ending())
}

// reply sends an answer to the sender of a command, or to the owner when the command has none.
// Answers to the owner go through its FIFO.
func (b *outbox) reply(sender *actor.PID, ev Event) {
	if sender == b.cmdSender {
		b.cmd = nil
	}
	if b.owns(sender) {
		b.notify(ev)
		return
	}
	b.noteEvent(ev)
	defer b.send(b.l.rt.newOwner(b.l, sender), ev) // likewise
	b.observeEvent(ev)
}

// owns reports whether messages to sender go to the owner.
func (b *outbox) owns(sender *actor.PID) bool {
	return sender == nil || b.owner.pid != nil && b.l.rt.registry.Same(sender, b.owner.pid)
}

// fail answers a command that did not reach the device.
func (b *outbox) fail(cmd Command, sender *actor.PID, err error) {
	b.reply(sender, b.commandFailed(cmd, err))
}

// answer passes an event to the command that it answers, or to the owner.
func (b *outbox) answer(p *cmid.Pending, ev Event) {
	if !p.Answer(ev) {
		b.notify(ev)
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
	b.publish()
}

func (b *outbox) watch() {
	if b.ctx != nil && b.owner.pid != nil {
		b.l.callUser("watch of", b.owner.pid.Id, func() { b.ctx.Watch(b.owner.pid) })
	}
}

func (b *outbox) unwatch() {
	if b.ctx != nil && b.owner.pid != nil {
		b.l.callUser("watch of", b.owner.pid.Id, func() { b.ctx.Unwatch(b.owner.pid) })
	}
}

// moved reports a transition, if there was one. cause is a command (states.Op) or the device's
// event (states.Kind).
func (b *outbox) moved(cause fmt.Stringer) {
	now := b.id.State()
	if now == b.lastState {
		return
	}
	from := b.lastState
	b.lastState = now
	b.l.flight.Transition(b.l.el.Now(), uint64(b.base().ID), from, now)
	b.publish()
	if b.l.rt.log.Enabled(context.Background(), slog.LevelDebug) {
		b.l.rt.log.Debug("rdma: "+now.String(), b.logKeys(cause, "from", from.String())...)
	}
	b.observe(func(o Observer) { o.Transition(b.pid, b.id.Handle(), from, now) })
}

// lifecycle reports whether the owner gets ev also when another actor's command caused it.
func lifecycle(ev Event) bool {
	switch ev.(type) {
	case *cmid.Established, *cmid.Disconnected, *cmid.DeviceRemoval:
		return true
	}
	return false
}

func (b *outbox) handover(c *Handover, sender *actor.PID) {
	if c.To == nil {
		b.fail(c, sender, fmt.Errorf("Handover.To is nil: %w", unix.EINVAL))
		return
	}
	if err := b.l.rt.CheckOwner(c.To); err != nil {
		b.fail(c, sender, err)
		return
	}
	was := b.owner
	to := sender
	if to == nil {
		to = was.pid
	}
	b.unwatch()
	b.setOwner(b.l.rt.newOwner(b.l, c.To))
	b.watch()
	done := &cmid.Done{EventBase: b.base(), Command: c}
	switch {
	case to == nil:
	case was.pid != nil && b.l.rt.registry.Same(to, was.pid):
		b.send(was, done)
	default:
		b.reply(to, done)
	}
}

// call runs a Call's function with the plain identifier.
func (b *outbox) call(c *Call, sender *actor.PID) {
	if c.Fn == nil {
		b.fail(c, sender, fmt.Errorf("Call.Fn is nil: %w", unix.EINVAL))
		return
	}
	if err := c.Fn(b.id); err != nil {
		b.fail(c, sender, err)
		return
	}
	b.reply(sender, &cmid.Done{EventBase: b.base(), Command: c})
}
