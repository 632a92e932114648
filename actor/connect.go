package actor

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
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

// refuse answers a command that did not reach the device.
func (it *ident) refuse(a *asked, err error) {
	ev := &cmid.CommandFailed{FailureBase: it.failure(a.cmd, opName(a.cmd), err)}
	if a.then != nil {
		a.then(ev)
		return
	}
	it.reply(a.sender, ev)
}

// prepareConnect is prepare for the side that connects.
func (it *ident) prepareConnect(mode datapath.Mode, private *[]byte) error {
	limit := it.id.Limits().ConnectData
	if it.cfg.secured() {
		return it.beginHandshake(private, limit)
	}
	return it.prepare(mode, private, limit)
}

// prepare makes the private data that goes on the wire, in place of the user's, and the queue pair.
func (it *ident) prepare(mode datapath.Mode, private *[]byte, limit int) (err error) {
	if *private, err = it.privateData(mode, *private, limit); err != nil {
		return err
	}
	return it.queuePair(mode)
}

// privateData puts the hello before the user's private data.
func (it *ident) privateData(mode datapath.Mode, user []byte, limit int) ([]byte, error) {
	hello := mode == datapath.ModeMessages && !it.id.Datagram()
	if hello {
		limit = min(limit-wire.HelloLen, wire.MaxUserData)
	}
	switch {
	case len(user) > limit:
		return nil, fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(user), limit, unix.EINVAL)
	case !hello:
		return user, nil
	}
	var attr verbs.DeviceAttr
	if dev := it.id.Device(); dev != nil {
		attr = dev.Attr()
	}
	t := it.terms(mode)
	return it.l.Hello(&t, attr).Put(user), nil
}

// depths notes what a user's Connect or Accept says about Reads, and what the peer's request says
// about them, if there is one. nil leaves them to the device, which has some.
func (it *ident) depths(p, request *cmid.ConnParam) {
	it.served, it.reading = true, true
	for _, p := range [...]*cmid.ConnParam{p, request} {
		if p != nil {
			it.served = it.served && p.ResponderResources > 0
			it.reading = it.reading && p.InitiatorDepth > 0
		}
	}
}

// terms is what the connection is asked to be.
func (it *ident) terms(m datapath.Mode) datapath.Terms {
	return datapath.Terms{
		Mode: m, Credits: it.cfg.Credits, Messages: it.cfg.MaxMessage, SendMost: it.cfg.MaxSend, Sends: it.cfg.Sends, Eager: it.cfg.eager,
		Reads: it.reading, Serves: it.served, Keepalive: datapath.NewKeepalive(it.cfg.Keepalive.Idle, it.cfg.Keepalive.Gone), Peer: it.peerHello,
		Features: uint8(it.features), Rekey: it.cfg.rekey, Promised: it.promised,
	}
}

// queuePair makes the data path, once.
func (it *ident) queuePair(mode datapath.Mode) error {
	if it.conn != nil {
		it.conn.Want(it.terms(mode))
		return nil
	}
	if it.leavesQueuePair() {
		return nil
	}
	t := it.terms(mode)
	if it.cfg.Memory > 0 || it.cfg.Domain != nil {
		h, err := it.moveIn()
		if err != nil {
			return err
		}
		t.Area = h.area
	}
	c, err := datapath.New(&it.l.Loop, it.id, it, t)
	it.conn = c
	if err == nil {
		it.promised = c.Promised() // also if it is said once more, after a refusal
	}
	if err == nil && it.notifiable {
		c.Granted()
	}
	return err
}

// greet takes a request. It finds out who the peer is, and sets the deadline of the answer.
func (it *ident) greet(r *cmid.ConnectRequest) {
	it.peerMode, it.peerReads = datapath.ModeRaw, r.Param
	if !it.cfg.Raw {
		var ok bool
		it.peerHello, r.PrivateData, ok = wire.ParseHello(r.PrivateData, it.id.Limits().Padded)
		it.peerMode = datapath.ModeForeign
		if ok {
			it.peerMode = datapath.ModeMessages
		}
		r.Foreign = !ok
	}
	it.requestTimer()
	it.notify(r)
}

// reported handles what the device reports.
func (it *ident) reported(m *reported) {
	if m.id != it.id || it.gone() {
		return // from an address that Dial has tried before this one
	}
	it.moved(m.cause())
	switch ev := m.ev.(type) {
	case *cmid.Closed:
		it.returned(ev)
		return
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
	it.oblige(m.ev)
}

// oblige does what the man pages demand after ev.
func (it *ident) oblige(ev Event) {
	if it.cfg.Manual || it.ending() {
		return
	}
	switch ev := ev.(type) {
	case *cmid.Rejected:
		it.failed(ev)
	case *cmid.Unreachable:
		it.failed(ev)
	case *cmid.ConnectError:
		it.failed(ev)
	case *cmid.ListenFailed:
		it.log.Warn("rdma: listener ended", it.logKeys(states.OpListen, "err", Brief(ev))...)
		it.failed(ev)
	}
}

// failed destroys an identifier that is of no more use, unless Dial has gone on to another address.
func (it *ident) failed(f Failure) {
	if it.id.Handle() == f.Ident() {
		it.destroy(f)
	}
}

func (it *ident) established(ev *cmid.Established, answers Command) {
	switch hand := it.hand; {
	case it.ending() && hand != nil:
		return
	case hand != nil && hand.in != nil:
		it.admitted(ev, answers)
		return
	case hand != nil:
		it.replied(ev, answers)
		return
	}
	it.opened(ev, answers)
}

// opened reports that there is a connection, and begins it.
func (it *ident) opened(ev *cmid.Established, answers Command) {
	if c := it.conn; c != nil && !c.Opened() {
		_, active := answers.(*cmid.Connect)
		if it.features != 0 {
			ev.Identity = it.who
		} else if active && c.Acknowledged() {
			h, user, ok := wire.ParseHello(ev.PrivateData, it.id.Limits().Padded)
			ev.PrivateData = user
			if err := secure.Features(0).Same(secure.Features(h.Features), h.Version); err != nil {
				it.destroy(err)
				return
			}
			c.Agree(h, ok, it.id.Limits().MaxMessage)
		} else if active {
			c.Agree(wire.Hello{}, false, it.id.Limits().MaxMessage)
		}
		if active && min(ev.Param.ResponderResources, ev.Param.InitiatorDepth) > 0 {
			c.Offered() // devices differ in which of them says what the peer serves
		}
		ev.MaxMessage = c.MaxMessage()
		ev.Foreign = c.Kind() == datapath.ModeForeign
		if ev.Fallback != nil {
			it.log.Info("rdma: connected after a fallback", it.logKeys(states.OpConnect, "err", Brief(ev.Fallback))...)
		}
		if ev.Foreign && it.cfg.RefuseForeign {
			// destroy answers whoever waits for the Connect
			it.destroy(fmt.Errorf("connect: %w (%w)", ErrForeignPeer, unix.EPROTO))
			return
		}
	}
	if answers != nil {
		it.answer(answers, ev)
	} else {
		it.notify(ev)
	}
	if it.conn != nil && !it.ending() {
		it.conn.Establish()
	}
}
