package actor

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// A connection has one end, whoever notices it first. Everything that ends a connection comes here:
//
//   - BreakOff (ending.go), when this side notices: the peer breaks the protocol, the queue pair
//     has failed.
//   - disconnected and removed, when the device reports it.
//
// The cause that is found first is the one that is reported: what follows is its consequence. When
// the device reports an end without a cause, the cause is the one that this side knows, which may
// be found in what the peer has sent last. endOf notifies the owner, once. With a Manual owner the
// identifier then stays. Otherwise it is disconnected and destroyed, and Closed has the same
// cause.

func (it *ident) brokenOff() {
	if it.ending() || it.endReported {
		return
	}
	if it.unheard() && it.lostUnheard(it.conn.BrokenBy()) {
		return
	}
	ev := &cmid.Disconnected{EventBase: it.base(), Err: it.conn.BrokenBy()}
	if it.cfg.Manual {
		it.endOf(ev, nil) // what waits is answered by the device
		return
	}
	it.sayGoodbye(func() {
		if !it.ending() && !it.endReported {
			it.conclude(ev, it.awaiting(it.id.Waiting()))
		}
	})
}

// disconnected is the end of a connection that the device reports. What the peer has sent before
// is delivered first.
func (it *ident) disconnected(ev *cmid.Disconnected, answers Command) {
	if c := it.conn; c != nil {
		c.CatchUp()
		ev.Err = c.Verdict(ev.Err)
		c.Stop()
		ev.Err = c.Cause(ev.Err, it.cause)
	}
	if it.unheard() && it.lostUnheard(ev.Err) {
		return
	}
	answers = it.awaiting(answers)
	if it.cfg.Manual || it.ending() {
		it.endOf(ev, answers)
		it.goodbyeDone()
		return
	}
	it.conclude(ev, answers)
}

// awaiting is the command that an end answers: the one that the device answers, or the Disconnect
// that waits for its goodbye.
func (it *ident) awaiting(device Command) Command {
	if device == nil && it.leaving != nil {
		return it.leaving
	}
	return device
}

// conclude reports the end, and does what the man pages demand after it.
func (it *ident) conclude(ev *cmid.Disconnected, answers Command) {
	it.endOf(ev, answers)
	if _, ours := answers.(*cmid.Disconnect); !ours {
		// rdma_get_cm_event(3): the answer is due, if the state machine says so
		it.do(&asked{cmd: &cmid.Disconnect{}, then: func(Event) {}})
	}
	it.destroy(ev.Err) // this answers a peer whose disconnect has crossed ours
}

// removed is the end of a connection whose device has gone.
func (it *ident) removed(ev *cmid.DeviceRemoval, answers Command) {
	dev := it.id.Device()
	if c := it.conn; c != nil {
		c.CatchUp()
		c.Stop()
		dev = c.Device.Verbs
	}
	it.l.Removed(dev)
	it.endOf(ev, answers)
	if !it.cfg.Manual {
		it.destroy(&RemovedError{ev.Device, ev.Err})
	}
	it.goodbyeDone()
}

// RemovedError is why an identifier was closed whose device has gone. Err is nil when the device
// was removed, otherwise it says what happened to it: see cmid.DeviceRemoval. errors.Is: ENODEV,
// and Err.
type RemovedError struct {
	Device string
	Err    error
}

func (e *RemovedError) Error() string {
	if e.Err != nil {
		return "the device " + e.Device + " cannot be used any more: " + e.Err.Error()
	}
	return "the device " + e.Device + " is gone"
}

// Unwrap gives ENODEV, and the reason where there is one.
func (e *RemovedError) Unwrap() []error {
	if e.Err != nil {
		return []error{unix.ENODEV, e.Err}
	}
	return []error{unix.ENODEV}
}

// endOf reports an end, once. It answers a Disconnect. Any other command that waited has failed,
// and its failure is reported before the end. A Manual owner is also notified of a removal that
// follows, because it has to destroy the identifier.
func (it *ident) endOf(ev Event, answers Command) {
	_, removal := ev.(*cmid.DeviceRemoval)
	silent := it.endReported && (!removal || !it.cfg.Manual)
	it.endReported = true
	_, asked := answers.(*cmid.Disconnect)
	switch {
	case asked && !removal && !silent:
		it.answer(answers, ev)
		it.answerOthers(ev)
		return
	case asked && !removal:
		if a := it.take(answers); a != nil && a.then == nil {
			it.reply(a.sender, ev)
		}
		it.answerOthers(ev)
		return
	case answers != nil:
		var err error = unix.ECONNRESET
		switch e := ev.(type) {
		case *cmid.Disconnected:
			if e.Err != nil {
				err = e.Err
			}
		case *cmid.DeviceRemoval:
			err = &RemovedError{e.Device, e.Err}
		}
		it.answer(answers, &cmid.CommandFailed{FailureBase: it.failure(answers, opName(answers), err)})
	}
	if !silent {
		it.notify(ev)
	}
}

// answerOthers answers every further Disconnect with the one event that there is.
func (it *ident) answerOthers(ev Event) {
	for _, a := range slices.Clone(it.asked) {
		if _, ok := a.cmd.(*cmid.Disconnect); ok && a.then == nil {
			it.take(a.cmd)
			it.reply(a.sender, ev)
		}
	}
}

// close ends a connection in order: drain, rdma_disconnect(3), rdma_destroy_id(3). An identifier
// that is not connected is destroyed at once.
func (it *ident) close(c *Close, sender *actor.PID, then func(Event)) {
	it.asked = append(it.asked, &asked{
		cmd: c, sender: sender, then: then,
		due: it.l.el.Now().Add(positive(c.Timeout, it.rt.cfg.Timeouts.Close)),
	})
	switch {
	case it.conn == nil || it.conn.Connecting() || it.id.State() != states.Connected:
		if it.id.State() != states.Disconnecting { // else Disconnected is on its way
			it.destroy(nil)
			return
		}
		it.rearm()
	case it.conn.Closing(): // because of another Close
		it.rearm()
	case it.conn.Over(): // broken off, and the owner is Manual
		it.rearm()
		it.disconnect()
	default:
		it.rearm()
		it.conn.Drain()
	}
}

// poisonPill ends an identifier as Close does.
func (it *ident) poisonPill() {
	if !it.ending() {
		it.close(&Close{}, nil, func(Event) {})
	}
}

// closeAwaits says what a Close waits for its peer to do.
func (it *ident) closeAwaits() string {
	switch c := it.conn; {
	case c == nil || c.Leaving() || it.id.State() != states.Connected:
		return "answered the disconnect" // all else is done
	case c.Acknowledged():
		return "consumed everything"
	}
	return "taken everything"
}

// leave is Disconnect: the goodbye goes first. A further Disconnect waits for the answer of the
// first.
func (it *ident) leave(c *cmid.Disconnect, sender *actor.PID) {
	a := &asked{cmd: c, sender: sender}
	if !it.legal(c) {
		it.do(a)
		return
	}
	it.asked = append(it.asked, a)
	if it.leaving != nil {
		a.with = it.leaving
		return
	}
	it.leaving = c
	it.sayGoodbye(func() {
		it.leaving = nil
		it.begin(a)
	})
}

// disconnect follows the drain. Disconnected then brings the end.
func (it *ident) disconnect() {
	if it.ending() || !it.legal(&cmid.Disconnect{}) {
		return
	}
	it.do(&asked{cmd: &cmid.Disconnect{}, then: func(ev Event) {
		var cause error
		if d, ok := ev.(*cmid.Disconnected); ok {
			it.notify(d)
			cause = d.Err
		}
		if _, ok := ev.(Failure); ok || it.cfg.Manual {
			it.destroy(cause)
		}
	}})
}

// shutDown ends an identifier in order.
func (it *ident) shutDown() {
	if it.ending() {
		return
	}
	if it.cause == nil {
		it.cause = ErrShutdown
	}
	it.close(&Close{}, nil, func(Event) {})
}
