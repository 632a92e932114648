package actor

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// introduceRequest gives the request to its future owner, once the peer is authenticated and the
// device has connected.
func (a *answerHandshake) introduceRequest() {
	if a.established == nil || a.stage != handshakeKnown || a.conn.Over() {
		return
	}
	a.uncountStranger()
	r := *a.in.r
	r.PrivateData, r.Identity, r.TLS = a.first.body, a.who, a.established.TLS
	reject, over, ok := a.authorizePeer(&r)
	a.setStage(handshakeDeciding)
	a.recordDecision(&r, ok && reject == nil && over == 0)
	switch {
	case a.isEnding():
	case !ok:
		a.refuseFailed()
	case over != 0:
		a.l.rt.log.Warn("rdma: a peer has reached the limits of its identity: rejected", "id", a.id.Handle(), "peer", r.Peer,
			"local", r.Local, "identity", a.who, "err", over.String())
		a.refuseAuthenticated(fateIdentity, over, nil)
	case reject != nil:
		private := reject.PrivateData
		if len(private) > wire.MaxUserData {
			a.l.rt.log.Error("rdma: Authorize or Route has rejected a request with too much private data: it is rejected without",
				"id", a.id.Handle(), "peer", r.Peer, "bytes", len(private))
			private = nil
		}
		a.requestAnswered(fateRejected)
		a.conn.Sec.Reject(private)
		a.of.destroyID(nil)
	default:
		a.introduceTo(a.in, &r)
	}
}

func (a *answerHandshake) introduceTo(in *incoming, r *cmid.ConnectRequest) {
	if in.handler == nil {
		a.setOwner(a.l.rt.newOwner(a.l, in.owner))
	} else if to, ok := a.l.askHandler(in, func(*incoming) { a.refuseFailed() }); ok {
		a.setOwner(to)
	} else {
		return
	}
	a.watchOwner()
	a.notifyOwner(r) // the deadline is that of the handshake: the peer's own goes on, too
}

// errRouteFailed is the error of a request whose Authorize, Route or Handler has failed.
var errRouteFailed = errors.New("Security.Authorize, IDConfig.Route or IDConfig.Handler has failed")

// refuseFailed ends a request because of the listener's code.
func (a *answerHandshake) refuseFailed() {
	a.refuseAuthenticated(fateFailed, wire.RefusedFailed, errRouteFailed)
}

// refuseAuthenticated ends a connection whose peer is authenticated, and reports the reason to the
// peer.
func (a *answerHandshake) refuseAuthenticated(how fate, why wire.Refusal, cause error) {
	a.requestAnswered(how)
	a.conn.Sec.Refuse(why)
	a.of.destroyID(cause)
}

// authorizePeer calls Authorize and Route, which are user code. Not ok: one of them has panicked,
// or has chosen an owner that cannot receive messages.
func (a *answerHandshake) authorizePeer(r *cmid.ConnectRequest) (reject *cmid.Reject, over wire.Refusal, ok bool) {
	in, l := a.in, a.l
	var owner *actor.PID
	ok = l.callUser("Authorize or Route of a listener", in.name, func() { reject, over, owner = a.callAuthorize(r) })
	if !ok {
		a.requestAnswered(fateFailed)
		return nil, 0, false
	}
	if owner != nil && reject == nil {
		if err := l.rt.CheckOwner(owner); err != nil {
			l.rt.log.Error("rdma: Route has chosen an owner that cannot receive messages", "err", err)
			return nil, 0, false
		}
		in.owner, in.handler = owner, nil
	}
	return reject, over, true
}

// callAuthorize calls Authorize and Route.
func (a *answerHandshake) callAuthorize(r *cmid.ConnectRequest) (reject *cmid.Reject, over wire.Refusal, owner *actor.PID) {
	var set PeerLimits
	if f := a.cfg.Security.Authorize; f != nil {
		seen := *r
		set, reject = f(&seen)
	}
	if reject == nil {
		over = a.of.countPeer(r, set)
	}
	if route := a.in.route; route != nil && reject == nil && over == 0 {
		seen := *r
		owner, reject = route(&seen)
	}
	return reject, over, owner
}

// recordDecision records the decision of Authorize and Route on a peer that is authenticated.
func (a *answerHandshake) recordDecision(r *cmid.ConnectRequest, welcome bool) {
	if welcome {
		a.countCompleted("authorized")
		return
	}
	a.countFailed(FailedNotAuthorized, nil)
	a.l.rt.log.Warn("rdma: a peer that is authenticated was rejected", "id", a.id.Handle(), "peer", r.Peer, "local", r.Local,
		"identity", r.Identity)
}

// errHandshaking is the error of an Accept or a Reject of a request that the owner does not have
// yet. The device would answer the request without the handshake.
var errHandshaking = fmt.Errorf("the handshake is under way: %w", unix.EINVAL)

// acceptPeer carries out Accept for an owner whose peer is authenticated.
func (a *answerHandshake) acceptPeer(c *cmid.Accept, sender *actor.PID) {
	if err := cmp.Or(checkAnswer(a.conn, c.PrivateData), a.tenancy.joinDomain()); err != nil {
		a.answerFailed(c, sender, err)
		return
	}
	err := a.checkKey()
	if err == nil {
		err = a.conn.Sec.Accept(c.PrivateData)
	}
	if err != nil {
		a.answerFailed(c, sender, err)
		a.of.destroyID(err)
		return
	}
	a.requestAnswered(fateAccepted)
	a.of.reportEstablished(a.established, a.expectCommand(c, sender))
}

// rejectPeer carries out Reject for an owner whose peer is authenticated.
func (a *answerHandshake) rejectPeer(c *cmid.Reject, sender *actor.PID) {
	if err := checkAnswer(a.conn, c.PrivateData); err != nil {
		a.answerFailed(c, sender, err)
		return
	}
	a.requestAnswered(fateRejected)
	a.conn.Sec.Reject(c.PrivateData)
	a.awaitClosed(c, sender)
	a.of.destroyID(nil)
}

// checkAnswer returns an error if c cannot carry an answer with user in it.
func checkAnswer(c *datapath.Conn, user []byte) error {
	switch {
	case len(user) > wire.MaxUserData:
		return fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(user), wire.MaxUserData, unix.EINVAL)
	case c.Over():
		return datapath.Flushed()
	}
	return nil
}
