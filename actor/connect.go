package actor

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// prepareConnect makes the queue pair and the private data of a Connect, and lets it proceed.
func (it *ident) prepareConnect(p *cmid.Pending) {
	c := p.Command.(*cmid.Connect)
	if it.id.Datagram() {
		if it.cfg.isSecured() {
			p.Answer(it.commandFailed(c, fmt.Errorf("a datagram identifier cannot be secured: %w", unix.EINVAL)))
			return
		}
		p.Proceed(c)
		return
	}
	own, limit := *c, it.id.Limits().ConnectData
	own.Param = it.cfg.Transport.ConnectParam(c.Param)
	it.setReadLimits(c.Param, nil)
	var err error
	switch {
	case it.cfg.isSecured():
		own.PrivateData, err = it.beginHandshake(c.PrivateData, limit)
	case it.cfg.Raw:
		own.PrivateData, err = it.setUpConnection(datapath.ModeRaw, c.PrivateData, limit)
	default:
		own.PrivateData, err = it.setUpConnection(datapath.ModeMessages, c.PrivateData, limit)
	}
	if err != nil {
		p.Answer(it.commandFailed(c, err))
		return
	}
	p.Proceed(&own)
}

// prepareAccept makes the queue pair and the private data of an Accept, and lets it proceed.
func (it *ident) prepareAccept(p *cmid.Pending) {
	c := p.Command.(*cmid.Accept)
	own := *c
	own.Param = it.cfg.Transport.AcceptParam(c.Param)
	it.setReadLimits(c.Param, &it.peer.reads)
	var err error
	if own.PrivateData, err = it.setUpConnection(it.peer.mode, c.PrivateData, it.id.Limits().AcceptData); err != nil {
		p.Answer(it.commandFailed(c, err)) // a device that refuses it rejects the request
		return
	}
	if it.conn != nil {
		it.conn.Agree(it.peer.hello, it.peer.mode == datapath.ModeMessages, it.id.Limits().MaxMessage)
	}
	it.requestAnswered(fateAccepted)
	p.Proceed(&own)
}

// replyOrDestroy is replyTo for Connect and Accept. A failure may cost the identifier, as that of
// an Accept whose peer has gone: after Unreachable.
func (it *ident) replyOrDestroy(sender *actor.PID) func(Event) {
	reply := it.replyTo(sender)
	return func(ev Event) {
		reply(ev)
		if f, ok := ev.(*cmid.CommandFailed); ok && it.id.State() == states.Failed && !it.cfg.Manual {
			it.destroyID(f)
		}
	}
}

// rejectRequest rejects a request. Unless the owner is Manual this ends the identifier, and the
// answer is Closed.
func (it *ident) rejectRequest(c *cmid.Reject, sender *actor.PID) {
	asked, reply := false, it.replyTo(sender)
	it.executeOnDevice(c, func(p *cmid.Pending) {
		own := *c
		var err error
		if own.PrivateData, err = it.privateData(it.peer.mode, c.PrivateData, it.id.Limits().RejectData); err != nil {
			p.Answer(it.commandFailed(c, err))
			return
		}
		it.requestAnswered(fateRejected)
		asked = true
		p.Proceed(&own)
	}, func(ev Event) {
		if !asked || it.cfg.Manual {
			reply(ev)
			return
		}
		// if the device has failed to reject the peer, destroying the identifier does that
		it.awaitClosed(c, sender)
		it.destroyID(nil)
	})
}

// beginHandshake prepares the side that connects a secured connection.
func (it *ident) beginHandshake(user []byte, limit int) (private []byte, err error) {
	d := &dialHandshake{handshake: handshake{commandTable: &it.commandTable, of: it, hint: it.cfg.Hint}}
	d.side = d
	if private, err = d.requestData(user, limit); err != nil {
		return nil, err
	}
	it.handshake.countFailed(FailedLost, nil) // an earlier one has led to no connection
	it.handshake = &d.handshake
	d.countBegun(&it.l.secured.Dialled, "request sent")
	return private, it.makeDataPath(datapath.ModeMessages)
}

// handleDeviceEvent handles an event of the device.
func (it *ident) handleDeviceEvent(m *reported) {
	if m.id != it.id || it.isGone() { // of an earlier address of Dial, or left to the device
		it.l.orphanEvent(m.id, m.ev)
		return
	}
	if _, ok := m.ev.(*cmid.Closed); ok {
		m.answers.Answer(m.ev)
		it.reportTransition(m.transitionCause())
		return
	}
	it.reportTransition(m.transitionCause())
	switch ev := m.ev.(type) {
	case *cmid.Established:
		if h := it.handshake; h == nil {
			it.reportEstablished(ev, m.answers)
		} else if !it.isEnding() {
			h.handleConnected(ev, m.answers)
		}
		return
	case *cmid.Rejected:
		if !it.cfg.Raw {
			it.completeRejection(ev)
		}
	case *cmid.Disconnected:
		it.handleDisconnected(ev, m.answers)
		return
	case *cmid.DeviceRemoval:
		it.handleRemoval(ev, m.answers)
		return
	case *cmid.QPFailed:
		if it.conn != nil {
			it.conn.FailedByItself()
			return
		}
		// the queue pair is the owner's
	}
	it.answerPending(m.answers, m.ev)
	if f, ok := m.ev.(Failure); ok {
		it.destroyFailed(m.id, f)
	}
}

// destroyFailed does what the manual pages demand after f. The state machine decides whether f has
// failed the identifier.
func (it *ident) destroyFailed(id *cmid.ID, f Failure) {
	if it.cfg.Manual || it.isEnding() {
		return
	}
	if _, ok := f.(*cmid.ListenFailed); ok { // rdma_cm has no state for this
		it.l.rt.log.Warn("rdma: listener ended", it.logKeys(states.OpListen, "err", Brief(f))...)
		it.destroyUnrenewed(f)
	} else if id.State() == states.Failed {
		it.destroyUnrenewed(f)
	}
}

// setUpConnection makes the data path with its queue pair. It returns the private data for the
// wire, with the user's in it.
func (it *ident) setUpConnection(mode datapath.Mode, user []byte, limit int) (private []byte, err error) {
	if private, err = it.privateData(mode, user, limit); err == nil {
		err = it.makeDataPath(mode)
	}
	return private, err
}

// makeDataPath makes the data path, once.
func (it *ident) makeDataPath(mode datapath.Mode) error {
	t := it.newTerms(mode)
	handshake := it.handshake.addTo(&t)
	switch {
	case it.conn != nil:
		it.conn.Want(t, handshake)
		return nil
	case it.leavesQueuePair():
		return nil
	}
	var area *datapath.Area
	if it.cfg.Memory > 0 || it.cfg.Domain != nil {
		h, err := it.tenancy.moveIn()
		if err != nil {
			return err
		}
		area = h.area
	}
	c, err := datapath.New(&it.l.Loop, it.id, it, t, area, handshake)
	it.conn = c
	if err == nil && it.notifiable {
		c.Granted()
	}
	return err
}

// completeRejection completes the report of a rejection by a peer that was not authenticated
// before, or never can be: anyone on the path may have sent it.
func (it *ident) completeRejection(ev *cmid.Rejected) {
	h, rest, ok := wire.ParseHello(ev.PrivateData, it.id.Limits().Padded)
	switch err := versionError(ev.PrivateData, h, rest); {
	case err != nil:
		ev.Err = fmt.Errorf("%w: %w", ev.Err, err)
		ev.Remedy = "both sides need versions of this package that differ by one at most"
		if it.handshake != nil {
			ev.Err = &HandshakeError{What: "rejected", Err: err}
			it.handshake.countFailedBy(ev.Err)
		}
	case !it.cfg.isSecured() && h.Features == 0:
		ev.PrivateData = rest
		if why := h.Refusal(); ok && why != 0 {
			ev.Remedy = "the peer refuses it: " + why.String() + ": " + tryAgain
		}
		return
	case ok:
		ev.Err = refusalError(rest)
		it.handshake.countFailedBy(ev.Err)
		ev.Remedy = "both sides need the same Security.Mode, and in PSK mode keys of one identity"
		if errors.Is(ev.Err, unix.EAGAIN) { // the peer has looked at neither
			ev.Remedy = tryAgain
		}
	}
	ev.PrivateData = nil
}

// versionError returns a *VersionError if a reject's private data b gives the version as the
// reason, or has the hello of a peer that is too old. h and rest are the result of parsing b.
func versionError(b []byte, h wire.Hello, rest []byte) error {
	why := h.Refusal()
	if h.Features != 0 && len(rest) > 0 {
		why = wire.Refusal(rest[0])
	}
	if why == wire.RefusedVersion {
		return wire.NewVersionError(b)
	}
	return wire.CheckVersion(b)
}
