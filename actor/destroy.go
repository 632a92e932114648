package actor

import (
	"cmp"
	"errors"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// destroyID starts to destroy the identifier, as rdma_destroy_id(3) does. cause is the error for
// Closed, unless an earlier cause is known.
func (it *ident) destroyID(cause error) {
	if it.isEnding() {
		return
	}
	if why := cmp.Or(it.life.cause, cause); why != nil {
		it.refuseUnanswered(refusalOf(why))
	} else if it.asked != nil && it.handshake.asDeciding() != nil {
		it.conn.Sec.Reject(nil)
	}
	it.setLife(lifeEnding)
	if it.conn != nil {
		if broken := it.conn.BrokenBy(); broken != nil && !errors.Is(cause, broken) {
			cause = broken
		}
	}
	it.life.setCause(cause)
	it.handshake.failUnfinished(it.life.cause)
	if it.handshake.isUnreported() {
		it.requestAnswered(fateUnauthenticated)
	}
	it.requestAnswered(fateDropped)
	if it.conn != nil {
		it.conn.Stop()
	}
	if it.timer != nil {
		it.timer.Stop()
	}
	it.life.goodbye.then = nil // this is the end of everything that waited
	it.sayGoodbye(func() {
		it.id.Do(&cmid.DestroyID{}, it.handleDestroyed)
		it.reportTransition(states.OpDestroyID)
	})
	if !it.isGone() {
		// the goodbye or the device takes its time, but other commands need not wait for that
		it.answerLate()
	}
}

// handleDestroyed handles the device's answer to destroyID: nothing is left there. The queue pair's
// remaining work is flushed, and reported before Closed.
func (it *ident) handleDestroyed(ev Event) {
	if closed, ok := ev.(*cmid.Closed); ok && closed.Err != nil {
		it.life.cause = errors.Join(it.life.cause, ErrHeld, closed.Err)
	}
	if it.isGone() {
		return
	}
	it.setLife(lifeGone)
	if it.conn != nil {
		it.conn.Release()
	}
	it.tenancy.moveOut()
	it.l.rt.sys.Root.Stop(it.pid)
}

// ErrHeld is the cause in Closed.Err if the device refused to return the identifier, or had not
// returned it when Shutdown ran out of time.
var ErrHeld = errors.New("the device has not returned the identifier")

// closeHeld ends an identifier that the device keeps beyond the runtime's end.
func (it *ident) closeHeld() {
	if it.destroyWithoutWait(ErrShutdown) {
		it.life.cause = errors.Join(it.life.cause, ErrHeld)
		it.l.rt.sys.Root.Stop(it.pid)
	}
}

// handleStopping handles the actor's end: after handleDestroyed, or because of a panic, or because
// it was stopped from elsewhere.
func (it *ident) handleStopping() {
	switch {
	case it.isGone():
	case it.id == nil:
		it.setLife(lifeGone)
	default:
		it.destroyWithoutWait(ErrStopped)
	}
}

// destroyWithoutWait destroys the identifier for an actor that does not wait for it. It reports
// whether the device takes its time, so that the identifier outlives its actor.
func (it *ident) destroyWithoutWait(cause error) (late bool) {
	it.destroyID(cause)
	it.goodbyeDone()
	if it.isGone() {
		return false
	}
	it.setLife(lifeGone)
	if it.id.State() == states.Destroying {
		it.l.keepOrphan(it.id, it.conn)
	} else { // a panic has kept destroy from getting there
		it.l.destroyOrphan(it.id, it.conn)
	}
	it.tenancy.moveOut()
	return true
}

// reportClosed answers all waiting commands, and reports Closed last of all.
func (it *ident) reportClosed() {
	if it.life.stage == lifeClosed {
		return
	}
	if !it.refusals.seal() {
		// a sender is being refused at this moment: its answer comes first
		it.box.PostUserMessage(&lastMessage{})
		return
	}
	it.reportRefused()
	if it.conn != nil {
		it.conn.Abandon()
	}
	it.answerLate()
	ev := it.releaseResources()
	for len(it.closers) > 0 {
		c := it.takeCloser()
		if !c.silent && !it.isOwner(c.sender) {
			it.answerSender(c.sender, ev)
		}
	}
	it.unwatchOwner()
	it.setLife(lifeClosed)
	it.l.removeIdent(it)    // Shutdown goes on then
	defer it.finishClosed() // also if the Observer calls Goexit: no later call would find it
	it.notifyOwner(ev)
}

// releaseResources releases the identifier's counted resources, and returns its last event.
func (it *ident) releaseResources() *cmid.Closed {
	ev := &cmid.Closed{EventBase: it.eventBase(), Err: it.life.cause, Unsent: it.unsent}
	if it.conn != nil {
		it.conn.Fates(ev)
	}
	it.handshake.uncountStranger()
	it.handshake.failUnfinished(it.life.cause) // if a panic has kept destroy from it
	if it.person != nil {
		it.l.rt.identities.Free(*it.person)
		it.person = nil
	}
	if it.counted { // first: the receiver of Closed may want another identifier in its place
		it.l.rt.count.Add(-1)
		it.counted = false
	}
	if it.release != nil {
		it.release()
	}
	return ev
}

// finishClosed does the work that follows Closed.
func (it *ident) finishClosed() {
	if it.closed != nil {
		it.closed(it.life.cause)
	}
	if it.owner.handler {
		it.l.tellUser("message to", it.owner.pid.Id, func() { it.l.rt.sys.Root.Poison(it.owner.pid) })
	}
}

// removeIdent drops an identifier whose actor has ended.
func (l *loop) removeIdent(it *ident) {
	l.keepCounts(it)
	delete(l.ids, it)
	l.known.remove(it.box)
	l.assigned.Add(-1)
	l.checkEmptied()
}

// refuseUnanswered rejects a request that has no answer, with the reason, if the identifier's state
// allows it.
func (it *ident) refuseUnanswered(why wire.Refusal) {
	reject := &cmid.Reject{}
	switch {
	case it.asked == nil:
		return
	case it.handshake.asDeciding() != nil:
		it.conn.Sec.Refuse(why)
		return
	case it.cfg.isSecured():
		reject.PrivateData = it.cfg.refusalData(it.handshake.features, why)
	case it.peer.mode == datapath.ModeMessages:
		reject.PrivateData = why.Reject()
	}
	// illegal if the device has accepted a peer that is not authenticated
	it.executeStep(reject, nil, func(Event) {})
}
