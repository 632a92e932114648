package actor

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// same refuses a request for another mode than this listener's.
func (l *loop) same(in *incoming) (ok bool) {
	if in.cfg.Raw || in.id.Datagram() && !in.cfg.secured() {
		return true
	}
	h, behind, _ := wire.ParseHello(in.r.PrivateData, in.id.Limits().Padded)
	peer := secure.Features(h.Features)
	own := in.cfg.features(peer)
	if err := own.Same(peer, h.Version); err != nil {
		l.deny(in, own, wire.RefusedMode, err)
		return false
	}
	if !in.cfg.secured() {
		return true
	}
	if in.hint, in.behind, ok = secure.ParseHint(behind); !ok {
		l.deny(in, own, wire.RefusedOther, errNoHint)
	}
	return ok
}

var errNoHint = &HandshakeError{What: "a request without a hint"}

// deny rejects a request that has no actor, because of err.
func (l *loop) deny(in *incoming, own secure.Features, why wire.Refusal, err error) {
	l.rt.log.Warn("rdma: a peer that is not authenticated was rejected", "id", in.id.Handle(), "peer", in.r.Peer, "local", in.r.Local,
		"err", Brief(err))
	l.refused(in.id, in.via, fateUnauthenticated)
	l.neverShake(failureFrom(why), uint64(in.id.Handle()))
	in.id.Do(&cmid.Reject{PrivateData: in.cfg.refusal(own, why)}, nil)
	l.discard(in.id, nil)
}

// challenge answers a request: the handshake's reply is computed off the loop, and the device then
// accepts.
func (h *handshake) challenge(in *incoming) {
	peer, _, _ := wire.ParseHello(in.r.PrivateData, h.id.Limits().Padded)
	h.peer = peerTerms{datapath.ModeMessages, peer, in.r.Param}
	h.in, h.features = in, h.cfg.features(secure.Features(peer.Features))
	h.depths(nil, &h.peer.reads)
	own := h.hello(h.features)
	h.promised = own.Eager // also if memory becomes short before the queue pair is made
	in.stranger.Evict = func() { h.box.PostUserMessage(&evicted{}) }
	h.begin(&h.l.secured.Answered, "request received")
	h.computeReply(own)
}

// computeReply computes the reply to the request, off the loop.
func (h *handshake) computeReply(own wire.Hello) {
	request := secure.Hello(h.in.r.PrivateData)
	if h.cfg.Security.Mode == TLS {
		h.reply = own.Put(nil)
		h.tls = &handshakes.TLS{Request: request, Reply: secure.Hello(h.reply)}
		h.box.PostUserMessage(&computed{}) // there is nothing to compute
		return
	}
	h.request, h.reply = bytes.Clone(h.in.behind), own.Put(make([]byte, secure.PSKReplyLen))
	keys, suite, binding, reply := h.cfg.Security.Keys.known(), h.features.Suite(), h.binding(), secure.Hello(h.reply)
	rt := h.l.rt
	rt.running.Add(1)
	rt.computing.Do(h.in.r.Peer.Source(), func() {
		defer rt.running.Done()
		m := new(computed)
		m.server, m.answer, m.err = secure.NewPSKServer(keys, suite, binding, request, h.request, reply)
		h.box.PostUserMessage(m)
	})
}

// sendReply sends the computed reply.
func (h *handshake) sendReply(m *computed) {
	if h == nil || h.ending() {
		if m.server != nil {
			m.server.Forget()
		}
		return
	}
	if m.err != nil {
		h.deny(m.err)
		return
	}
	if h.tls == nil {
		copy(h.reply[wire.HelloLen:], m.answer[:])
		h.server = m.server
	}
	accept := &cmid.Accept{PrivateData: h.reply, Param: h.cfg.Transport.AcceptParam(nil)}
	asked := false
	h.doInner(accept, func(p *cmid.Pending) {
		asked = true
		if err := h.of.queuePair(datapath.ModeMessages); err != nil {
			h.deny(err)
			return
		}
		h.conn.Agree(h.peer.hello, true, h.id.Limits().MaxMessage)
		h.passed("reply sent")
		h.set(handshakeReplied)
		h.awaitPeer()
		p.Proceed(accept)
	}, func(ev Event) {
		f, failed := ev.(Failure)
		switch {
		case !asked: // the peer has gone
			h.of.destroy(unix.ECONNRESET)
		case failed:
			h.of.destroy(f)
		}
	})
}

// deny rejects the request because of err.
func (h *handshake) deny(err error) {
	h.warn(err)
	h.answered(fateUnauthenticated)
	h.doInner(&cmid.Reject{PrivateData: h.cfg.refusal(h.features, refusalOf(err))}, nil, func(Event) {})
	h.of.destroy(err)
}

// warn logs that the peer is rejected because of err.
func (h *handshake) warn(err error) {
	h.l.rt.log.Warn("rdma: a peer that is not authenticated was rejected", "id", h.id.Handle(), "peer", h.in.r.Peer,
		"local", h.in.r.Local, "err", Brief(err))
}

// Prove implements datapath.Handshake.
func (h *handshake) Prove(sealed []byte) ([]byte, *secure.Channel, error) {
	if h.server == nil || h.stage != handshakeReplied {
		return nil, nil, &ProtocolError{What: "a message before the handshake"}
	}
	first, identity, ch, err := h.server.Confirm(sealed[:0], sealed)
	if err == nil {
		if err = h.keyIsKnown(); err != nil {
			ch.Forget()
		}
	}
	if err != nil {
		h.answered(fateUnauthenticated)
		return nil, nil, err
	}
	h.passed("peer authenticated")
	h.set(handshakeProved)
	h.who = identity
	return first, ch, nil
}

// keyIsKnown returns an error if the peer's key was removed after its request arrived.
func (h *handshake) keyIsKnown() error {
	if h.cfg.Security.Mode != PSK {
		return nil
	}
	return h.cfg.Security.Keys.known().Know(h.request)
}

// crowd counts a peer that is not authenticated. Another one may have to give way, on any loop. Not
// ok: there are too many, or too many from its address or network.
func (l *loop) crowd(in *incoming) (ok bool) {
	in.stranger = &limits.Stranger{From: in.r.Peer.Source()}
	evicted, ok := l.rt.strangers.Enter(in.stranger, l.rt.cfg.Limits.Handshakes, l.el.Now())
	if evicted != nil {
		evicted.Evict()
	}
	return ok
}

// awaitPeer records that the handshake waits for the peer.
func (h *handshake) awaitPeer() { h.l.rt.strangers.Wait(h.in.stranger, h.l.el.Now()) }

// giveWay ends a handshake that has lost its place, unless the peer's first message has arrived by
// now.
func (h *handshake) giveWay() {
	if h == nil || h.stage >= handshakeHeard {
		return
	}
	h.warn(errCrowded)
	h.countFailed(FailedCrowded, errCrowded)
	h.of.destroy(errCrowded)
}

// silent counts and logs a peer that did not authenticate itself in time.
func (h *handshake) silent() {
	h.answered(fateUnauthenticated)
	h.l.rt.log.Warn("rdma: a peer did not authenticate itself in time", "id", h.id.Handle(), "peer", h.in.r.Peer, "local", h.in.r.Local)
}

// errCrowded is the error of a request that is refused because there are too many peers that are
// not authenticated.
var errCrowded = errors.New("too many peers that are not authenticated (Limits.Handshakes)")

// neverShake counts a request that is refused before a handshake.
func (l *loop) neverShake(why HandshakeFailure, id uint64) {
	l.secured.Answered.Begun++
	l.secured.Answered.Failed[why]++
	l.flight.Note(l.el.Now(), id, FlightHandshake, handshakeNotes[why], 0)
}
