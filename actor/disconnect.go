package actor

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// A connection has one end, whichever side notices it first. All ends of connections come here:
//
//   - BreakOff, when this side notices: the peer breaks the protocol, the queue pair has failed.
//   - handleDisconnected and handleRemoval, when the device reports it.
//
// The first cause that is found is reported: later ones are its consequences. When the device
// reports an end without a cause, the cause is the one that this side knows, which may be found in
// the peer's last messages. reportEnd notifies the owner, once. With a Manual owner the identifier
// then stays. Otherwise it is disconnected and destroyed, and Closed has the same cause.

func (it *ident) handleBrokenOff(m *brokenOff) {
	if m.conn != it.conn { // of an earlier address of Dial
		return
	}
	if it.isEnding() || it.reportedEnd != nil {
		return
	}
	if it.destroyUnreported(it.conn.BrokenBy()) {
		return
	}
	ev := &cmid.Disconnected{EventBase: it.eventBase(), Err: it.conn.BrokenBy()}
	if it.outlivesConnection() {
		it.reportEnd(ev, nil) // the device answers the waiting command
		return
	}
	it.sayGoodbye(func() {
		if !it.isEnding() && it.reportedEnd == nil {
			it.disconnectAndDestroy(ev, it.id.TakeWaiting())
		}
	})
}

// handleDisconnected handles the end of a connection that the device reports. Messages that the
// peer sent before are delivered first.
func (it *ident) handleDisconnected(ev *cmid.Disconnected, answers *cmid.Pending) {
	if c := it.conn; c != nil {
		c.CatchUp()
		ev.Err = c.Verdict(ev.Err)
		c.Stop()
		ev.Err = c.Cause(ev.Err, it.life.cause)
	}
	if it.destroyUnreported(ev.Err) {
		return
	}
	if it.outlivesConnection() || it.isEnding() {
		it.reportEnd(ev, answers)
		it.goodbyeDone()
		return
	}
	it.disconnectAndDestroy(ev, answers)
}

// destroyUnreported takes the peer's first message, if it waits. Unless the owner knows of the
// connection by then, destroyUnreported ends the identifier, because its connection has ended or
// was broken off.
func (it *ident) destroyUnreported(cause error) (ended bool) {
	it.handshake.handleHeard()
	if !it.handshake.isUnreported() {
		return false
	}
	if !it.isEnding() {
		it.handshake.destroyLost(cause)
	}
	it.goodbyeDone()
	return true
}

// disconnectAndDestroy reports the end, and does what the man pages demand after it.
func (it *ident) disconnectAndDestroy(ev *cmid.Disconnected, answers *cmid.Pending) {
	it.reportEnd(ev, answers)
	if !isDisconnect(answers) {
		// rdma_get_cm_event(3): the answer is due, if the state machine requires it
		it.executeStep(&cmid.Disconnect{}, nil, func(Event) {})
	}
	it.destroyID(ev.Err) // this answers a peer whose disconnect has crossed this side's
}

// handleRemoval handles the end of a connection whose device is gone.
func (it *ident) handleRemoval(ev *cmid.DeviceRemoval, answers *cmid.Pending) {
	dev := it.id.Device()
	if c := it.conn; c != nil {
		c.CatchUp()
		c.Stop()
		dev = c.Device.Verbs
	}
	it.l.Removed(dev)
	it.reportEnd(ev, answers)
	if !it.outlivesConnection() {
		it.destroyID(&RemovedError{ev.Device, ev.Err})
	}
	it.goodbyeDone()
}

// startClose closes a connection in order: drain, rdma_disconnect(3), rdma_destroy_id(3). An
// identifier that is not connected is destroyed immediately.
func (it *ident) startClose(c *Close, sender *actor.PID, silent bool) {
	it.closers = append(it.closers, closer{
		cmd: c, sender: sender, silent: silent,
		due: it.l.el.Now().Add(positiveOr(c.Timeout, it.l.rt.cfg.Timeouts.Close)),
	})
	switch {
	case it.conn == nil || it.conn.Connecting() || it.id.State() != states.Connected:
		if it.id.State() != states.Disconnecting { // else Disconnected is on its way
			it.destroyID(nil)
			return
		}
		it.resetTimer()
	case it.conn.Closing(): // because of another Close
		it.resetTimer()
	case it.conn.Over(): // broken off, and the owner is Manual
		it.resetTimer()
		it.disconnectDrained()
	default:
		it.resetTimer()
		it.conn.Drain()
	}
}

// disconnectDrained disconnects after the drain. Disconnected then brings the end.
func (it *ident) disconnectDrained() {
	if it.isEnding() || !it.isLegal(states.OpDisconnect) {
		return // it is ended already
	}
	it.executeStep(&cmid.Disconnect{}, nil, func(ev Event) {
		var cause error
		if d, ok := ev.(*cmid.Disconnected); ok {
			if it.reportedEnd != ev {
				it.notifyOwner(d)
			}
			cause = d.Err
		}
		if _, ok := ev.(Failure); ok || it.cfg.Manual {
			it.destroyID(cause)
		}
	})
}

// closeSilently ends an identifier in order, because of cause; nil: a PoisonPill.
func (it *ident) closeSilently(cause error) {
	if !it.isEnding() {
		it.life.setCause(cause)
		it.startClose(&Close{}, nil, true)
	}
}

// BreakOff ends a connection from this side. Nothing is sent or delivered afterwards. The rest
// follows in a separate turn, because the caller may be the connection, which the rest releases.
// Loop goroutine, at any time. Only the first call counts.
func (it *ident) BreakOff(err error) {
	c := it.conn
	if c == nil || c.Over() {
		return
	}
	it.l.rt.log.Warn("rdma: connection broken off", it.logKeys(states.OpDisconnect, "err", Brief(err))...)
	c.BreakDown(err)
	it.recordFlight(FlightEnd, "broken off", errnoOf(err))
	var (
		wrong    *ProtocolError
		tampered *TamperedError
		overused *secure.LimitError
	)
	switch {
	case it.handshake.countFailedBy(err): // it has counted that
	case errors.As(err, &tampered):
		it.l.secured.Tampered++
	case errors.As(err, &overused):
		it.l.secured.Overused++
	}
	if errors.As(err, &wrong) {
		it.l.dumpFlight(FlightEnd, "protocol violation of "+it.pid.Id+"'s peer: "+Brief(err))
	}
	it.box.PostUserMessage(&brokenOff{c})
}

func (it *ident) Drained() { it.box.PostUserMessage(&drained{}) }

func (it *ident) GoodbyeLeft() { it.box.PostUserMessage(&goodbyeLeft{}) }

func (it *ident) RenewFailed(value any) {
	it.BreakOff(&PanicError{value})
	it.l.reportEscaped("Renew of a Send to", it.pid.Id, value)
}
