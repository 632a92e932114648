package actor

import (
	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/cmid"
)

// Overflow handles a message that has no room in the mailbox's data lane, on the posting goroutine.
func (it *ident) Overflow(msg any, over int32) (admit bool) {
	_, m, from := actor.UnwrapEnvelope(msg)
	m = asPointer(m)
	switch m := m.(type) {
	case *lastMessage, *refused, *cancelled:
		return true
	case *poisonPill: // one that finds no room has others before it
		return over <= 2*commandRoom
	case actor.MessageBatch, Event, *actor.DeadLetterResponse: // these are not answered
		return false
	case *Send:
		admit = !m.usable() && over <= commandRoom // it is then answered in turn, as misused
	case Command:
		admit = over <= commandRoom || ends(m) && over <= 2*commandRoom
	}
	if admit {
		return true
	}
	if !it.refusals.gate.TryRLock() {
		it.box.Refuse(msg) // Closed was sent, or is about to be
		return false
	}
	defer it.refusals.gate.RUnlock()
	if s, ok := m.(*Send); ok && s.usable() {
		s.out.Take()
		first := it.refusals.add(from, s.Len())
		s.out.Recycle()
		if first {
			it.box.PostUserMessage(&refused{})
		}
		return false
	}
	it.refuseCommand(m, from)
	return false
}

// Leftover answers a message that the actor will not receive. Messages that were queued before
// lastMessage are answered before Closed.
func (it *ident) Leftover(msg any) {
	_, m, sender := actor.UnwrapEnvelope(msg)
	switch m := asPointer(m).(type) {
	case *lastMessage:
		it.end()
	case *reported:
		it.l.orphanEvent(m.id, m.ev)
	case mailbox.Laned, *cancelled, *refused, actor.MessageBatch, Event:
	case *poisonPill:
		if !it.gone() { // a loop that has ended: the actor can still stop
			it.l.rt.sys.Root.Stop(it.pid)
		}
	case *Send:
		if it.life.stage == lifeClosed {
			it.box.Refuse(msg)
			return
		}
		if it.misused(m, sender) {
			return
		}
		it.unsent++
		m.sender = sender
		it.SendFailed(&m.out, datapath.Flushed())
	case Command:
		switch {
		case it.life.stage == lifeClosed:
			it.box.Refuse(msg)
		case missing(m):
			it.reply(sender, it.nothing(m))
		case ends(m):
			it.life.awaitClosed(m, sender)
		default:
			it.reply(sender, it.late(m))
		}
	default:
		it.box.Refuse(msg)
	}
}

// refuseCommand answers a command that finds no room, or a message that is not a command, on the
// posting goroutine. It touches nothing that belongs to the loop, so the answer lacks the
// identifier's state.
func (b *outbox) refuseCommand(m any, from *actor.PID) {
	f := cmid.FailureBase{Op: "receive", Err: errNoPlace}
	f.Status = -int32(unix.ENOBUFS)
	if cmd, ok := m.(Command); ok && !missing(cmd) {
		f.Op, f.Command = opName(cmd), cmd
	}
	var ev Event = &cmid.CommandFailed{FailureBase: f}
	if _, ok := f.Command.(oneSided); ok {
		ev = &AccessError{f}
	}
	env := &actor.MessageEnvelope{Message: ev, Sender: b.box.PID()}
	b.refusals.mu.Lock()
	to := b.owner
	b.refusals.mu.Unlock()
	if from != nil && (to.pid == nil || !b.l.rt.registry.Same(from, to.pid)) {
		to = owner{pid: from}
	}
	switch {
	case to.pid == nil:
	case to.near:
		to.box.Post(mailbox.Event, env) // the owner's one FIFO
	case to.box != nil:
		to.box.PostUserMessage(env)
	default:
		b.l.rt.sys.Root.Send(to.pid, env)
	}
}
