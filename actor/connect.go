package actor

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// connect makes the queue pair and asks the peer. then is nil for a command of the user's.
func (it *ident) connect(c *cmid.Connect, sender *actor.PID, then func(Event)) {
	a := &asked{cmd: c, sender: sender, then: then}
	switch {
	case it.id.Datagram() && it.cfg.secured():
		it.refuse(a, fmt.Errorf("a datagram identifier cannot be secured: %w", unix.EINVAL))
		return
	case it.legal(c) && !it.id.Datagram():
		own, mode := *c, datapath.ModeMessages
		own.Param = it.cfg.Transport.ConnectParam(c.Param)
		if it.cfg.Raw {
			mode = datapath.ModeRaw
		}
		a.wire = &own
		it.depths(c.Param, nil)
		if err := it.prepareConnect(mode, &own.PrivateData); err != nil {
			it.refuse(a, err)
			return
		}
	}
	it.do(a)
}

// accept is connect's counterpart on the passive side.
func (it *ident) accept(c *cmid.Accept, sender *actor.PID) {
	if it.deciding() {
		it.acceptSecured(c, sender)
		return
	}
	a := &asked{cmd: c, sender: sender}
	if it.legal(c) {
		own := *c
		own.Param = it.cfg.Transport.AcceptParam(c.Param)
		a.wire = &own
		it.depths(c.Param, &it.peerReads)
		if err := it.prepare(it.peerMode, &own.PrivateData, it.id.Limits().AcceptData); err != nil {
			it.refuse(a, err) // a device that refuses it rejects the request
			return
		}
		if it.conn != nil {
			it.conn.Agree(it.peerHello, it.peerMode == datapath.ModeMessages, it.id.Limits().MaxMessage)
		}
		it.answered(fateAccepted)
	}
	it.do(a)
}

// reject ends a request. Unless the owner is Manual the identifier goes with it, and the answer is
// Closed.
func (it *ident) reject(c *cmid.Reject, sender *actor.PID) {
	if it.deciding() {
		it.rejectSecured(c, sender)
		return
	}
	a := &asked{cmd: c, sender: sender}
	if !it.legal(c) {
		it.do(a)
		return
	}
	own := *c
	var err error
	if own.PrivateData, err = it.privateData(it.peerMode, c.PrivateData, it.id.Limits().RejectData); err != nil {
		it.refuse(a, err)
		return
	}
	it.answered(fateRejected)
	if it.cfg.Manual {
		a.wire = &own
		it.do(a)
		return
	}
	it.asked = append(it.asked, a) // answered by Closed
	it.do(&asked{cmd: &own, then: func(ev Event) {
		if f, ok := ev.(Failure); ok && errors.Is(f, unix.EBUSY) {
			// something else is in progress. After other failures destroying it rejects the peer
			// as well
			restore(f, c)
			it.answer(c, f)
			return
		}
		it.destroy(nil)
	}})
}

// prepareConnect is prepare for the side that connects.
func (it *ident) prepareConnect(mode datapath.Mode, private *[]byte) error {
	limit := it.id.Limits().ConnectData
	if it.cfg.secured() {
		return it.beginHandshake(private, limit)
	}
	return it.prepare(mode, private, limit)
}

// reported handles what the device reports.
func (it *ident) reported(m *reported) {
	if m.id != it.id || it.gone() {
		return // from an address that Dial has tried before this one
	}
	if ev, ok := m.ev.(*cmid.Closed); ok {
		it.returned(ev)
		it.moved(m.cause())
		return
	}
	it.moved(m.cause())
	switch ev := m.ev.(type) {
	case *cmid.Established:
		it.established(ev, m.answers)
		return
	case *cmid.Rejected:
		if !it.cfg.Raw {
			it.refusedBy(ev)
		}
	case *cmid.Disconnected:
		it.disconnected(ev, m.answers)
		return
	case *cmid.DeviceRemoval:
		it.removed(ev, m.answers)
		return
	case *cmid.QPFailed:
		if it.conn != nil {
			it.conn.FailedByItself()
			return
		}
		// the queue pair is the owner's
	}
	if m.answers != nil {
		it.answer(m.answers, m.ev)
	} else {
		it.notify(m.ev)
	}
	if f, ok := m.ev.(Failure); ok {
		it.destroyFailed(m.id, f)
	}
}

// destroyFailed does what the manual pages demand after f. The state machine decides whether f has
// failed the identifier.
func (it *ident) destroyFailed(id *cmid.ID, f Failure) {
	if it.cfg.Manual || it.ending() {
		return
	}
	if _, ok := f.(*cmid.ListenFailed); ok { // which rdma_cm has no state for
		it.log.Warn("rdma: listener ended", it.logKeys(states.OpListen, "err", Brief(f))...)
		it.failed(f)
	} else if id.State() == states.Failed {
		it.failed(f)
	}
}
