package mailbox

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
)

// Deliver is for events from devices. The actor receives the event within this call, after the
// events that already wait, because a queued event may occupy a receive buffer. An actor that is in
// the middle of an invocation, or suspended, or whose loop ends, gets it in its turn, through the
// event lane. Loop goroutine only.
func (m *Mailbox) Deliver(msg any) {
	r := m.retainedIn(msg)
	if r != nil {
		r.Retain()
	}
	m.DeliverOwned(msg, r)
}

// DeliverOwned is Deliver for a message of which the sender has taken a reference: r, which msg is
// or envelops. nil: it has no references.
func (m *Mailbox) DeliverOwned(msg any, r Retained) {
	if !m.beginOutOfTurn() {
		m.Post(Event, msg)
		return
	}
	m.handleUser(msg, r)
	m.endOutOfTurn()
}

// beginOutOfTurn begins an invocation out of turn, behind more urgent messages. False: the message
// has to wait for its turn.
func (m *Mailbox) beginOutOfTurn() bool {
	l := m.Loop()
	if m.busy || m.suspended || m.closed || l != nil && l.ending {
		return false
	}
	m.busy = true
	if l != nil {
		m.beginInvocation()
		l.el.Blame(&m.self)
	}
	if m.queues[Lifecycle].empty() && m.queues[Event].empty() {
		return true
	}
	m.catchUp()
	m.free.returnToPool()
	if m.suspended || m.closed {
		m.endOutOfTurn()
		return false
	}
	return true
}

// endOutOfTurn ends the invocation that beginOutOfTurn has begun.
func (m *Mailbox) endOutOfTurn() {
	m.endInvocation()
	m.busy = false
	m.exec.turnEnded()
}

// catchUp receives the messages that precede an event: lifecycle messages, and older events.
func (m *Mailbox) catchUp() {
	for {
		if msg, ok := m.popLane(Lifecycle); ok {
			m.handleSystem(msg)
			continue
		}
		if m.suspended || m.closed {
			return
		}
		msg, ok := m.popLane(Event)
		if !ok {
			return
		}
		m.other.Add(-1)
		m.handleUser(msg, m.retainedIn(msg))
	}
}

// Run is the mailbox's turn: at most budget messages. It is the consumer's only entrance beside
// Deliver and DeliverOwned.
func (m *Mailbox) Run(budget int) (more bool) {
	m.busy = true
	m.beginInvocation()
	over := m.last || m.exec.Over()
	m.handleMessages(budget, over)
	m.exec.turnEnded()
	m.endInvocation()
	m.busy = false
	return m.endTurn(over || m.last)
}

func (m *Mailbox) handleMessages(budget int, over bool) {
	for range budget {
		if !m.queues[Lifecycle].empty() {
			msg, _ := m.popLane(Lifecycle)
			m.handleSystem(msg)
			continue
		}
		if m.isPaused(over) {
			return
		}
		msg, ok := m.popUserMessage()
		switch {
		case !ok:
			return
		case msg == lastCall{}:
			m.last, over = true, true
			continue
		}
		switch msg, r := m.unpackMessage(msg); {
		case m.closed || actor.UnwrapEnvelopeMessage(msg) == nil || over && !asksToStop(msg):
			m.answerUnreceived(msg, r)
		default:
			m.handleUser(msg, r)
		}
	}
}

// isPaused reports whether the actor takes lifecycle messages only.
func (m *Mailbox) isPaused(over bool) bool { return m.suspended && !m.closed && !over }

// popLane takes the oldest message of a lane.
func (m *Mailbox) popLane(l Lane) (msg any, ok bool) { return m.queues[l].pop(&m.free) }

// popUserMessage pops the most urgent user message.
func (m *Mailbox) popUserMessage() (msg any, ok bool) {
	if m.other.Load() > 0 {
		if msg, ok = m.popLane(Event); !ok {
			msg, ok = m.popLane(Control)
		}
		if ok {
			m.other.Add(-1)
			return msg, true
		}
	}
	if msg, ok = m.popLane(Data); ok {
		m.data.Add(-1)
	}
	return msg, ok
}

// endTurn ends a turn: the mailbox is idle, or it has more. A message that was posted since the
// last look is either seen here, or its producer finds the mailbox idle and schedules it. Once the
// mailbox is idle it may have another consumer, so only fields that any goroutine may read are read
// then.
func (m *Mailbox) endTurn(over bool) (more bool) {
	m.free.returnToPool()
	lanes := m.queues[:]
	if m.isPaused(over) {
		lanes = lanes[:Lifecycle+1]
	}
	for i := range lanes {
		if lanes[i].out != nil {
			return true
		}
	}
	m.state.Store(idle)
	for i := range lanes {
		more = more || lanes[i].hasPushed()
	}
	return more && m.state.CompareAndSwap(idle, scheduled)
}

// handleSystem handles a lifecycle message, and notices when it was the actor's last.
func (m *Mailbox) handleSystem(msg any) {
	if m.closed {
		m.systemLate(msg)
		return
	}
	switch msg := msg.(type) {
	case *actor.SuspendMailbox:
		m.suspended = true
		return
	case *actor.ResumeMailbox:
		m.suspended = false
		return
	case *actor.Started:
		m.suspended = false
	case *actor.Watch:
		m.rareState().watchers.noteWatch(msg.Watcher, true)
	case *actor.Unwatch:
		m.rareState().watchers.noteWatch(msg.Watcher, false)
	case *actor.Restart:
		if m.isStopping() { // Proto.Actor would begin it again
			m.suspended = false
			return
		}
		if m.rareState().countRestart(m.exec.now()) > maxRestarts {
			m.terminateActor()
			return
		}
	case *actor.Stop:
		if at, ok := m.invoker.(Place); ok && !m.isStopping() {
			m.rareState().process, _ = at.ActorSystem().ProcessRegistry.GetLocal(at.Self().Id)
		}
	}
	m.invokeSystem(msg)
	m.closeIfGone()
}

// closeIfGone closes the mailbox when its actor has left the system's processes, which is how a
// stopped actor shows from outside. Its name may belong to a successor by now.
func (m *Mailbox) closeIfGone() {
	if !m.isStopping() || m.closed {
		return
	}
	at := m.invoker.(Place)
	if p, _ := at.ActorSystem().ProcessRegistry.GetLocal(at.Self().Id); p != m.rare.process {
		m.markClosed(at)
	}
}

// markClosed notes that the actor has stopped.
func (m *Mailbox) markClosed(at Place) {
	m.closed = true
	m.rare = nil
	RegistryOf(at.ActorSystem()).remove(at.Self().Id, m)
	if m.cfg.Last != nil {
		m.PostData(m.cfg.Last)
	}
}

func (m *Mailbox) invokeSystem(msg any) {
	defer m.receivedSystem(msg)
	m.noteMessage(msg)
	m.lifecycle = true
	m.invoker.InvokeSystemMessage(msg)
	m.lifecycle = false
}

// receivedSystem ends the invocation of a lifecycle message that has panicked.
func (m *Mailbox) receivedSystem(msg any) {
	if reason := recover(); reason != nil {
		m.actorFailed(reason, msg)
		m.brokenOff()
	}
}

// brokenOff follows a failure. Proto.Actor does not get over an actor that fails as it stops: then
// the rest is done here. At a user message the actor may still wait for its children.
func (m *Mailbox) brokenOff() {
	if m.lifecycle && m.isStopping() {
		m.terminateActor()
	}
	m.lifecycle = false
}

// handleUser passes a message to the actor, with the reference r, if it has one. A panic in Receive
// is its supervisor's business.
func (m *Mailbox) handleUser(msg any, r Retained) {
	if r != nil {
		r.Delivered()
	}
	defer m.finishReceive(msg, r)
	if m.rare != nil {
		m.rare.restarts = 0
	}
	m.noteMessage(msg)
	m.invoker.InvokeUserMessage(msg)
}

// finishReceive ends an invocation, however it has ended.
func (m *Mailbox) finishReceive(msg any, r Retained) {
	if reason := recover(); reason != nil {
		m.actorFailed(reason, msg)
	}
	if r != nil {
		m.releaseRef(msg, r)
	}
}

// releaseRef releases the reference r of msg.
func (m *Mailbox) releaseRef(msg any, r Retained) {
	if err := r.Release(m.Loop()); err != nil {
		m.escalateFailure(err, msg) // only the actor fails
	}
}

// actorFailed notes that the actor has panicked at msg.
func (m *Mailbox) actorFailed(reason, msg any) {
	if l := m.Loop(); l != nil && l.Failed != nil {
		l.Failed(m.LoopName())
	}
	m.escalateFailure(reason, msg)
}

// escalateFailure reports a failure to the actor's supervisor. One that fails itself decides
// nothing: then the actor is stopped.
func (m *Mailbox) escalateFailure(reason, msg any) {
	decided := m.callUser("supervisor of", func() { m.invoker.EscalateFailure(reason, msg) })
	if at, ok := m.invoker.(Place); ok && !decided {
		at.ActorSystem().Root.Stop(at.Self())
	}
}

// goroutineEnded handles a Goexit of an actor off the loops, in Receive or in other user code: the
// actor fails.
func (m *Mailbox) goroutineEnded() {
	m.endInvocation()
	m.busy = false
	m.actorFailed(ErrGoexit, nil)
	m.brokenOff()
	m.exec.scheduleMailbox(&m.self)
}

// ErrGoexit is the reason of the failure of an actor off the loops that has called runtime.Goexit,
// as testing's FailNow does.
var ErrGoexit = errors.New("runtime.Goexit was called")

// asksToStop reports whether msg asks the actor to stop, which it can do even when its loop has
// ended.
func asksToStop(msg any) bool {
	_, ok := actor.UnwrapEnvelopeMessage(msg).(*actor.PoisonPill)
	return ok
}

// answerUnreceived ends a message that will not be received, with the reference r, if it has one.
func (m *Mailbox) answerUnreceived(msg any, r Retained) {
	if r != nil {
		r.Delivered()
		defer func() { _ = r.Release(m.Loop()) }() // no failure: the actor has not had it
	}
	switch {
	case asksToStop(msg): // its request is fulfilled
	case msg == nil && r != nil: // a carrier that has nothing
	case m.policy != nil && actor.UnwrapEnvelopeMessage(msg) != nil:
		m.policy.Leftover(msg)
	default:
		m.Refuse(msg)
	}
}
