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

// introduce gives the request to its future owner, once the peer is authenticated and the device
// has connected.
func (h *handshake) introduce() {
	if h.established == nil || h.stage != handshakeKnown || h.conn.Over() {
		return
	}
	h.uncrowd()
	r := *h.in.r
	r.PrivateData, r.Identity, r.TLS = h.first.body, h.who, h.established.TLS
	reject, over, ok := h.authorize(&r)
	h.set(handshakeDeciding)
	h.judged(&r, ok && reject == nil && over == 0)
	switch {
	case h.ending():
	case !ok:
		h.refuseFailed()
	case over != 0:
		h.l.rt.log.Warn("rdma: a peer has reached the limits of its identity: rejected", "id", h.id.Handle(), "peer", r.Peer,
			"local", r.Local, "identity", h.who, "err", over.String())
		h.refuse(fateIdentity, over, nil)
	case reject != nil:
		private := reject.PrivateData
		if len(private) > wire.MaxUserData {
			h.l.rt.log.Error("rdma: Authorize or Route has rejected a request with too much private data: it is rejected without",
				"id", h.id.Handle(), "peer", r.Peer, "bytes", len(private))
			private = nil
		}
		h.answered(fateRejected)
		h.conn.Sec.Reject(private)
		h.of.destroy(nil)
	default:
		h.introduceTo(h.in, &r)
	}
}

func (h *handshake) introduceTo(in *incoming, r *cmid.ConnectRequest) {
	if in.handler == nil {
		h.setOwner(h.l.rt.newOwner(h.l, in.owner))
	} else if to, ok := h.l.askHandler(in, func(*incoming) { h.refuseFailed() }); ok {
		h.setOwner(to)
	} else {
		return
	}
	h.watch()
	h.notify(r) // the deadline is that of the handshake: the peer's own goes on, too
}

// errRouteFailed is the error of a request whose Authorize, Route or Handler has failed.
var errRouteFailed = errors.New("Security.Authorize, IDConfig.Route or IDConfig.Handler has failed")

// refuseFailed ends a request because of the listener's code.
func (h *handshake) refuseFailed() {
	h.refuse(fateFailed, wire.RefusedFailed, errRouteFailed)
}

// refuse ends a connection whose peer is authenticated, and reports the reason to the peer.
func (h *handshake) refuse(how fate, why wire.Refusal, cause error) {
	h.answered(how)
	h.conn.Sec.Refuse(why)
	h.of.destroy(cause)
}

// authorize calls Authorize and Route, which are user code. Not ok: one of them has panicked, or
// has chosen an owner that cannot receive messages.
func (h *handshake) authorize(r *cmid.ConnectRequest) (reject *cmid.Reject, over wire.Refusal, ok bool) {
	in, l := h.in, h.l
	var owner *actor.PID
	ok = l.callUser("Authorize or Route of a listener", in.name, func() { reject, over, owner = h.judge(r) })
	if !ok {
		h.answered(fateFailed)
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

// judge calls Authorize and Route.
func (h *handshake) judge(r *cmid.ConnectRequest) (reject *cmid.Reject, over wire.Refusal, owner *actor.PID) {
	var set PeerLimits
	if f := h.cfg.Security.Authorize; f != nil {
		seen := *r
		set, reject = f(&seen)
	}
	if reject == nil {
		over = h.of.limit(r, set)
	}
	if route := h.in.route; route != nil && reject == nil && over == 0 {
		seen := *r
		owner, reject = route(&seen)
	}
	return reject, over, owner
}

// judged records the decision of Authorize and Route on a peer that is authenticated.
func (h *handshake) judged(r *cmid.ConnectRequest, welcome bool) {
	if welcome {
		h.completed("authorized")
		return
	}
	h.countFailed(FailedNotAuthorized, nil)
	h.l.rt.log.Warn("rdma: a peer that is authenticated was rejected", "id", h.id.Handle(), "peer", r.Peer, "local", r.Local,
		"identity", r.Identity)
}

// errHandshaking is the error of an Accept or a Reject of a request that the owner does not have
// yet. The device would answer the request without the handshake.
var errHandshaking = fmt.Errorf("the handshake is under way: %w", unix.EINVAL)

// accept carries out Accept for an owner whose peer is authenticated.
func (h *handshake) accept(c *cmid.Accept, sender *actor.PID) {
	if err := cmp.Or(canAnswer(h.conn, c.PrivateData), h.tenancy.meet()); err != nil {
		h.fail(c, sender, err)
		return
	}
	err := h.keyIsKnown()
	if err == nil {
		err = h.conn.Sec.Accept(c.PrivateData)
	}
	if err != nil {
		h.fail(c, sender, err)
		h.of.destroy(err)
		return
	}
	h.answered(fateAccepted)
	h.of.opened(h.established, h.expect(c, sender))
}

// reject carries out Reject in the same way.
func (h *handshake) reject(c *cmid.Reject, sender *actor.PID) {
	if err := canAnswer(h.conn, c.PrivateData); err != nil {
		h.fail(c, sender, err)
		return
	}
	h.answered(fateRejected)
	h.conn.Sec.Reject(c.PrivateData)
	h.awaitClosed(c, sender)
	h.of.destroy(nil)
}

// canAnswer returns an error if c cannot carry an answer with user in it.
func canAnswer(c *datapath.Conn, user []byte) error {
	switch {
	case len(user) > wire.MaxUserData:
		return fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(user), wire.MaxUserData, unix.EINVAL)
	case c.Over():
		return datapath.Flushed()
	}
	return nil
}
