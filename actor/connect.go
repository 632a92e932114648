package actor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// connect creates the queue pair and sends the request to the peer.
func (it *ident) connect(p *cmid.Pending) {
	c := p.Command.(*cmid.Connect)
	if it.id.Datagram() {
		if it.cfg.secured() {
			p.Answer(it.commandFailed(c, fmt.Errorf("a datagram identifier cannot be secured: %w", unix.EINVAL)))
			return
		}
		p.Proceed(c)
		return
	}
	own, limit := *c, it.id.Limits().ConnectData
	own.Param = it.cfg.Transport.ConnectParam(c.Param)
	it.depths(c.Param, nil)
	var err error
	switch {
	case it.cfg.secured():
		own.PrivateData, err = it.beginHandshake(c.PrivateData, limit)
	case it.cfg.Raw:
		own.PrivateData, err = it.prepare(datapath.ModeRaw, c.PrivateData, limit)
	default:
		own.PrivateData, err = it.prepare(datapath.ModeMessages, c.PrivateData, limit)
	}
	if err != nil {
		p.Answer(it.commandFailed(c, err))
		return
	}
	p.Proceed(&own)
}

// accept is connect's counterpart on the passive side.
func (it *ident) accept(p *cmid.Pending) {
	c := p.Command.(*cmid.Accept)
	own := *c
	own.Param = it.cfg.Transport.AcceptParam(c.Param)
	it.depths(c.Param, &it.peer.reads)
	var err error
	if own.PrivateData, err = it.prepare(it.peer.mode, c.PrivateData, it.id.Limits().AcceptData); err != nil {
		p.Answer(it.commandFailed(c, err)) // a device that refuses it rejects the request
		return
	}
	if it.conn != nil {
		it.conn.Agree(it.peer.hello, it.peer.mode == datapath.ModeMessages, it.id.Limits().MaxMessage)
	}
	it.answered(fateAccepted)
	p.Proceed(&own)
}

// replyOrDestroy is replyTo for Connect and Accept. A failure may cost the identifier, as that of
// an Accept whose peer has gone: after Unreachable.
func (it *ident) replyOrDestroy(sender *actor.PID) func(Event) {
	reply := it.replyTo(sender)
	return func(ev Event) {
		reply(ev)
		if f, ok := ev.(*cmid.CommandFailed); ok && it.id.State() == states.Failed && !it.cfg.Manual {
			it.destroy(f)
		}
	}
}

// reject rejects a request. Unless the owner is Manual this ends the identifier, and the answer is
// Closed.
func (it *ident) reject(c *cmid.Reject, sender *actor.PID) {
	asked, reply := false, it.replyTo(sender)
	it.do(c, func(p *cmid.Pending) {
		own := *c
		var err error
		if own.PrivateData, err = it.privateData(it.peer.mode, c.PrivateData, it.id.Limits().RejectData); err != nil {
			p.Answer(it.commandFailed(c, err))
			return
		}
		it.answered(fateRejected)
		asked = true
		p.Proceed(&own)
	}, func(ev Event) {
		if !asked || it.cfg.Manual {
			reply(ev)
			return
		}
		// if the device has failed to reject the peer, destroying the identifier does that
		it.life.awaitClosed(c, sender)
		it.destroy(nil)
	})
}

// beginHandshake is prepare for the side that connects a secured connection.
func (it *ident) beginHandshake(user []byte, limit int) (private []byte, err error) {
	h := it.newHandshake(it.cfg.Hint)
	if private, err = h.ask(user, limit); err != nil {
		return nil, err
	}
	it.handshake.countFailed(FailedLost, nil) // an earlier one has led to no connection
	it.handshake = h
	h.begin(&it.l.secured.Dialled, "request sent")
	return private, it.queuePair(datapath.ModeMessages)
}

// newHandshake returns a handshake that has not begun.
func (it *ident) newHandshake(hint uint32) *handshake {
	return &handshake{commandTable: &it.commandTable, of: it, tenancy: &it.tenancy, hint: hint}
}

// deviceEvent handles an event of the device.
func (it *ident) deviceEvent(m *reported) {
	if m.id != it.id || it.gone() { // of an earlier address of Dial, or left to the device
		it.l.orphanEvent(m.id, m.ev)
		return
	}
	if _, ok := m.ev.(*cmid.Closed); ok {
		m.answers.Answer(m.ev)
		it.moved(m.cause())
		return
	}
	it.moved(m.cause())
	switch ev := m.ev.(type) {
	case *cmid.Established:
		if h := it.handshake; h == nil {
			it.opened(ev, m.answers)
		} else if !it.ending() {
			h.connected(ev, m.answers)
		}
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
	it.answer(m.answers, m.ev)
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
	if _, ok := f.(*cmid.ListenFailed); ok { // rdma_cm has no state for this
		it.l.rt.log.Warn("rdma: listener ended", it.logKeys(states.OpListen, "err", Brief(f))...)
		it.failed(f)
	} else if id.State() == states.Failed {
		it.failed(f)
	}
}
