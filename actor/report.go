package actor

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// moved reports a transition, if there was one. cause is a command (states.Op) or the device's
// event (states.Kind).
func (it *ident) moved(cause fmt.Stringer) {
	now := it.id.State()
	if now == it.state {
		return
	}
	from := it.state
	it.state = now
	it.l.flight.Transition(it.l.el.Now(), uint64(it.base().ID), from, now)
	it.publish()
	if it.log.Enabled(context.Background(), slog.LevelDebug) {
		it.log.Debug("rdma: "+now.String(), it.logKeys(cause, "from", from.String())...)
	}
	it.observe(func(o Observer) { o.Transition(it.pid, it.id.Handle(), from, now) })
}

func (it *ident) logKeys(op fmt.Stringer, more ...any) []any {
	in := it.id.Info()
	return append([]any{
		"id", uint64(it.id.Handle()), "state", it.id.State().String(), "op", op.String(),
		"local", in.Local.String(), "peer", in.Peer.String(), "device", in.Device,
	}, more...)
}

// answered records that the request was answered, and how, once.
func (it *ident) answered(how fate) {
	if in := it.asked; in != nil {
		it.asked = nil
		in.via.count(how)
		it.l.requests.Free(in.listener)
		it.rearm()
	}
}

// notify sends the owner an event.
func (it *ident) notify(ev Event) {
	switch ev.(type) {
	case *cmid.Disconnected, *cmid.DeviceRemoval:
		it.life.reported = ev
	}
	it.noteEvent(ev)
	defer it.send(it.owner, ev) // also if the Observer calls Goexit
	it.observeEvent(ev)
}

// send sends an event. While the identifier ends, no actor receives it inside.
func (it *ident) send(to owner, ev Event) {
	to.send(it.l, &actor.MessageEnvelope{Message: ev, Sender: it.pid}, !it.ending())
}

// reply sends an answer to the sender of a command, or to the owner when the command has none.
// Answers to the owner go through its FIFO.
func (it *ident) reply(sender *actor.PID, ev Event) {
	if sender == it.cmdSender {
		it.cmd = nil
	}
	if it.owns(sender) {
		it.notify(ev)
		return
	}
	it.noteEvent(ev)
	defer it.send(it.rt.newOwner(it.l, sender), ev) // likewise
	it.observeEvent(ev)
}

// owns reports whether messages to sender go to the owner.
func (it *ident) owns(sender *actor.PID) bool {
	return sender == nil || it.owner.pid != nil && it.rt.registry.Same(sender, it.owner.pid)
}

// lifecycle reports whether the owner gets ev also when another actor's command caused it.
func lifecycle(ev Event) bool {
	switch ev.(type) {
	case *cmid.Established, *cmid.Disconnected, *cmid.DeviceRemoval:
		return true
	}
	return false
}
