package actor

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// same refuses a request whose peer does not want this listener's mode.
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
func (it *ident) challenge(in *incoming) {
	r := in.r
	h, _, _ := wire.ParseHello(r.PrivateData, it.id.Limits().Padded)
	request, data := secure.Hello(r.PrivateData), bytes.Clone(in.behind)
	it.peerMode, it.peerHello, it.peerReads = datapath.ModeMessages, h, r.Param
	hand := &handshake{in: in, features: it.cfg.features(secure.Features(h.Features))}
	it.depths(nil, &it.peerReads)
	own := it.hello(hand.features)
	hand.promised = own.Eager // also if memory gets short meanwhile
	hand.reply = own.Put(make([]byte, secure.PSKReplyLen))
	in.stranger.Evict = func() { it.box.PostUserMessage(&evicted{}) }
	it.requestTimer()
	it.beginShake(hand, &it.l.secured.Answered, "request received")
	if it.cfg.Security.Mode == TLS {
		hand.reply = own.Put(nil)
		hand.tls = &handshakes.TLS{Request: request, Reply: secure.Hello(hand.reply)}
		it.box.PostUserMessage(&computed{}) // there is nothing to compute
		return
	}
	hand.request = data
	keys := it.cfg.Security.Keys.known()
	suite, binding, reply := hand.features.Suite(), it.binding(r.Peer, r.Local, in.hint), secure.Hello(hand.reply)
	it.rt.running.Add(1)
	it.rt.computing.Do(r.Peer.Source(), func() {
		defer it.rt.running.Done()
		m := new(computed)
		m.server, m.answer, m.err = secure.NewPSKServer(keys, suite, binding, request, data, reply)
		it.box.PostUserMessage(m)
	})
}

// sendReply sends what was computed.
func (it *ident) sendReply(m *computed) {
	hand := it.hand
	if hand == nil || it.ending() {
		if m.server != nil {
			m.server.Forget()
		}
		return
	}
	if m.err != nil {
		it.deny(m.err)
		return
	}
	if hand.tls == nil {
		copy(hand.reply[wire.HelloLen:], m.answer[:])
		hand.server = m.server
	}
	accept := &cmid.Accept{PrivateData: hand.reply, Param: it.cfg.Transport.AcceptParam(nil)}
	asked := false
	it.doInner(accept, func(p *cmid.Pending) {
		asked = true
		if err := it.queuePair(datapath.ModeMessages); err != nil {
			it.deny(err)
			return
		}
		it.conn.Agree(it.peerHello, true, it.id.Limits().MaxMessage)
		it.shakeStep("reply sent")
		it.awaitPeer()
		p.Proceed(accept)
	}, func(ev Event) {
		f, failed := ev.(Failure)
		switch {
		case !asked: // the peer has gone
			it.destroy(unix.ECONNRESET)
		case failed:
			it.destroy(f)
		}
	})
}

// deny rejects the request because of err.
func (it *ident) deny(err error) {
	why := refusalOf(err)
	it.log.Warn("rdma: a peer that is not authenticated was rejected", "id", it.id.Handle(), "peer", it.hand.in.r.Peer,
		"local", it.hand.in.r.Local, "err", Brief(err))
	it.answered(fateUnauthenticated)
	it.doInner(&cmid.Reject{PrivateData: it.cfg.refusal(it.hand.features, why)}, nil, func(Event) {})
	it.destroy(err)
}

// admitted notes that the device has connected to a peer that is not authenticated.
func (it *ident) admitted(ev *cmid.Established, answers *cmid.Pending) {
	answers.Answer(ev)
	ev.PrivateData = nil
	it.hand.established = ev
	if it.hand.tls != nil {
		it.stepTLS()
		return
	}
	it.introduce()
}

// errCrowded is why a request is refused while there are too many of peers that are not
// authenticated.
var errCrowded = errors.New("too many peers that are not authenticated (Limits.Handshakes)")

// Prove is datapath.Identifier's.
func (it *ident) Prove(sealed []byte) ([]byte, *secure.Channel, error) {
	hand := it.hand
	if hand == nil || hand.server == nil {
		return nil, nil, &ProtocolError{What: "a message before the handshake"}
	}
	server := hand.server
	hand.server = nil
	first, identity, ch, err := server.Confirm(sealed[:0], sealed)
	if err == nil {
		if err = it.keyIsKnown(); err != nil {
			ch.Forget()
		}
	}
	if err != nil {
		it.answered(fateUnauthenticated)
		return nil, nil, err
	}
	it.shakeStep("peer authenticated")
	it.who = identity
	return first, ch, nil
}

// keyIsKnown returns an error if the peer's key was removed after its request came.
func (it *ident) keyIsKnown() error {
	if it.cfg.Security.Mode != PSK {
		return nil
	}
	return it.cfg.Security.Keys.known().Know(it.hand.request)
}
