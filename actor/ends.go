package actor

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// A connection has one end, whoever finds it out, and everything that ends one comes here:
//
//   - BreakOff, when this side finds out: the peer breaks the protocol, the queue pair has failed.
//   - disconnected and removed, when the device tells.
//
// The cause that is found first is the one that is told: what follows is its consequence. An end
// that the device tells without a cause has the one that this side knows, also when that is found
// in what the peer has sent last. The owner is told once, by endOf; with a Manual owner the
// identifier then stays, else it is disconnected and destroyed, and Closed tells the same cause.

// BreakOff ends a connection from this side. Nothing is sent or told any more; the rest follows in
// a turn of its own, because the device may be in the middle of what it received. Loop goroutine,
// at any time; only the first call counts.
func (it *ident) BreakOff(err error) {
	c := it.conn
	if c == nil || c.Over() {
		return
	}
	it.log.Warn("rdma: connection broken off", it.logKeys(states.OpDisconnect, "err", Brief(err))...)
	c.BreakDown(err)
	it.box.PostUserMessage(&brokenOff{})
}

func (it *ident) brokenOff() {
	if it.ending() || it.endTold {
		return
	}
	ev := &cmid.Disconnected{EventBase: it.base(), Err: it.conn.BrokenBy()}
	if it.cfg.Manual {
		it.endOf(ev, nil) // what waits is answered by the device
		return
	}
	it.farewell(func() {
		if !it.ending() && !it.endTold {
			it.conclude(ev, it.awaiting(it.id.Waiting()))
		}
	})
}

// disconnected is the end of a connection that the device tells. What the peer has sent before is
// told first.
func (it *ident) disconnected(ev *cmid.Disconnected, answers Command) {
	if c := it.conn; c != nil {
		c.CatchUp()
		ev.Err = c.Verdict(ev.Err)
		c.Stop()
		ev.Err = c.Cause(ev.Err, it.cause)
	}
	answers = it.awaiting(answers)
	if it.cfg.Manual || it.ending() {
		it.endOf(ev, answers)
		it.part()
		return
	}
	it.conclude(ev, answers)
}

// awaiting is the command that an end answers: the device's, or the Disconnect that waits for its
// goodbye.
func (it *ident) awaiting(device Command) Command {
	if device == nil && it.leaving != nil {
		return it.leaving
	}
	return device
}

// conclude tells the end, and does what the man pages demand after it.
func (it *ident) conclude(ev *cmid.Disconnected, answers Command) {
	it.endOf(ev, answers)
	if _, ours := answers.(*cmid.Disconnect); !ours {
		// rdma_get_cm_event(3): the answer is due, if the state machine says so
		it.do(&asked{cmd: &cmid.Disconnect{}, then: func(Event) {}})
	}
	it.destroy(ev.Err) // this answers a peer whose disconnect has crossed ours
}

// removed is the end that comes with the device's.
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
	it.part()
}

// RemovedError is why an identifier was closed whose device has gone. Err is why it has, where that
// is not its removal: see cmid.DeviceRemoval. errors.Is: ENODEV, and Err.
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

// endOf tells of an end, once. A Disconnect is answered by it; any other command that waited has
// failed, and the owner is told of both. A Manual owner is told of a removal that follows, too: it
// has to destroy the identifier.
func (it *ident) endOf(ev Event, answers Command) {
	_, removal := ev.(*cmid.DeviceRemoval)
	silent := it.endTold && (!removal || !it.cfg.Manual)
	it.endTold = true
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
		it.tell(ev)
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

// partingTime is how long an end waits for its goodbye to leave.
const partingTime = 500 * time.Millisecond

// farewell says goodbye and has the end go on when it has left, behind what waits for that already.
func (it *ident) farewell(then func()) {
	if before := it.parting; before != nil {
		after := then
		then = func() { before(); after() }
	}
	it.parting = then
	switch c := it.conn; {
	case c == nil || !c.SayGoodbye():
		it.part()
	case it.partingTimer == nil:
		it.partingTimer = it.l.el.AfterFunc(partingTime, func() { it.box.Deliver(&parted{}) })
	}
}

// part goes on with what waits for the goodbye, if anything does.
func (it *ident) part() {
	then := it.parting
	if then == nil {
		return
	}
	it.parting = nil
	if it.partingTimer != nil {
		it.partingTimer.Stop()
		it.partingTimer = nil
	}
	if it.conn != nil {
		it.conn.ForgoGoodbye()
	}
	then()
}
