package actor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
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
		l.deny(in, own, secure.RefusedMode, err)
		return false
	}
	if !in.cfg.secured() {
		return true
	}
	if in.hint, in.behind, ok = secure.ParseHint(behind); !ok {
		l.deny(in, own, secure.RefusedOther, errNoHint)
	}
	return ok
}

var errNoHint = &HandshakeError{What: "a request without a hint"}

// deny rejects a request that has no actor, because of err.
func (l *loop) deny(in *incoming, own secure.Features, why secure.Refusal, err error) {
	l.rt.log.Warn("rdma: a peer that is not authenticated was rejected", "id", in.id.Handle(), "peer", in.r.Peer, "local", in.r.Local,
		"err", Brief(err))
	l.refused(in.id, in.via, fateUnauthenticated)
	l.neverShake(failureFrom(why), uint64(in.id.Handle()))
	in.id.Do(&cmid.Reject{PrivateData: in.cfg.refusal(own, why)})
	l.discard(in.id, nil)
}

// crowd counts a peer that is not authenticated. Not ok: there are too many, or too many from its
// address.
func (rt *Runtime) crowd(a Addr) (ok bool) {
	return rt.strangers.Take(a.Source(), rt.cfg.Limits.Handshakes)
}

// uncrowd ends what crowd has begun.
func (it *ident) uncrowd() {
	if hand := it.hand; hand != nil && hand.counted {
		hand.counted = false
		it.rt.strangers.Free(hand.in.r.Peer.Source())
	}
}

// challenge answers a request: the handshake's reply is computed off the loop, and the device then
// accepts.
func (it *ident) challenge(in *incoming) {
	r := in.r
	h, _, _ := wire.ParseHello(r.PrivateData, it.id.Limits().Padded)
	request, data := secure.Hello(r.PrivateData), bytes.Clone(in.behind)
	it.peerMode, it.peerHello, it.peerReads = datapath.ModeMessages, h, r.Param
	it.features = it.cfg.features(secure.Features(h.Features))
	it.depths(nil, &it.peerReads)
	own := it.hello()
	it.promised = own.Eager // also if memory gets short meanwhile
	it.hand = &handshake{in: in, counted: true, reply: own.Put(make([]byte, secure.PSKReplyLen))}
	it.requestTimer()
	it.beginShake(&it.l.secured.Answered, "request received")
	if it.cfg.Security.Mode == TLS {
		it.hand.reply = own.Put(nil)
		it.hand.tls = &handshakes.TLS{Request: request, Reply: secure.Hello(it.hand.reply)}
		it.box.PostUserMessage(&computed{}) // there is nothing to compute
		return
	}
	keys := it.cfg.Security.Keys.peers.Load()
	if keys == nil {
		keys = new(secure.Keys)
	}
	suite, binding, reply := it.features.Suite(), it.binding(r.Peer, r.Local, in.hint), secure.Hello(it.hand.reply)
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
	if !it.legal(accept) { // the peer has gone
		it.destroy(unix.ECONNRESET)
		return
	}
	if err := it.queuePair(datapath.ModeMessages); err != nil {
		it.deny(err)
		return
	}
	it.conn.Agree(it.peerHello, true, it.id.Limits().MaxMessage)
	it.shakeStep("reply sent")
	it.do(&asked{cmd: accept, then: func(ev Event) {
		if f, ok := ev.(Failure); ok {
			it.destroy(f)
		}
	}})
}

// deny rejects the request because of err.
func (it *ident) deny(err error) {
	why := secure.RefusedOther
	var unknown *secure.UnknownKeyError
	if errors.As(err, &unknown) {
		why = secure.RefusedKey
	}
	it.log.Warn("rdma: a peer that is not authenticated was rejected", "id", it.id.Handle(), "peer", it.hand.in.r.Peer,
		"local", it.hand.in.r.Local, "err", Brief(err))
	it.answered(fateUnauthenticated)
	it.do(&asked{cmd: &cmid.Reject{PrivateData: it.cfg.refusal(it.features, why)}, then: func(Event) {}})
	it.destroy(err)
}

// admitted notes that the device has connected to a peer that is not authenticated.
func (it *ident) admitted(ev *cmid.Established, answers Command) {
	it.take(answers)
	ev.PrivateData = nil
	it.hand.established = ev
	if it.hand.tls != nil {
		it.stepTLS()
		return
	}
	it.introduce()
}

// introduce gives the request to whoever is to own it, once the peer is authenticated and the
// device has connected.
func (it *ident) introduce() {
	hand := it.hand
	if hand.established == nil || hand.first == nil || it.conn.Over() {
		return
	}
	it.uncrowd()
	r := *hand.in.r
	r.PrivateData, r.Identity, r.TLS = hand.first, it.who, hand.established.TLS
	reject, over, ok := it.authorize(&r)
	hand.decides = true
	it.judged(ok && reject == nil && over == 0)
	switch {
	case it.ending():
	case !ok:
		it.answered(fateFailed)
		it.conn.Reject(nil)
		it.destroy(errRouteFailed)
	case over != 0:
		it.refuseOver(over)
	case reject != nil && len(reject.PrivateData) <= wire.MaxUserData:
		it.answered(fateRejected)
		it.conn.Reject(reject.PrivateData)
		it.destroy(nil)
	case reject != nil:
		it.destroy(fmt.Errorf("a Reject with %d bytes of private data: %w", len(reject.PrivateData), unix.EINVAL))
	default:
		it.introduceTo(hand.in, &r)
	}
}

func (it *ident) introduceTo(in *incoming, r *cmid.ConnectRequest) {
	if in.handler != nil {
		it.setOwner(it.rt.newHandler(it.l, in.handler))
	} else {
		it.setOwner(it.rt.newOwner(it.l, in.owner))
	}
	it.watch()
	it.notify(r) // the deadline is that of the handshake: the peer's own goes on, too
}

// errRouteFailed is why a request has ended whose Authorize or Route has failed.
var errRouteFailed = errors.New("Security.Authorize or IDConfig.Route has failed")

// authorize asks Authorize and Route, which are the user's. Not ok: one of them has not returned,
// or has named an owner that nothing can be sent to.
func (it *ident) authorize(r *cmid.ConnectRequest) (reject *cmid.Reject, over limits.Exceeded, ok bool) {
	in, returned := it.hand.in, false
	defer func() {
		if returned {
			return
		}
		value := recover()
		if value == nil { // the goroutine ends, and the actor with it
			value = mailbox.ErrGoexit
			it.answered(fateFailed)
		}
		it.l.failed("Authorize or Route of " + in.name)
		it.rt.sys.EventStream.Publish(&Panicked{"Authorize or Route of a listener", in.name, value, debug.Stack()})
	}()
	var set PeerLimits
	if f := it.cfg.Security.Authorize; f != nil {
		seen := *r
		set, reject = f(&seen)
	}
	if reject == nil {
		over = it.limit(r, set)
	}
	var owner *actor.PID
	if in.route != nil && reject == nil && over == 0 {
		seen := *r
		owner, reject = in.route(&seen)
	}
	returned = true
	if owner != nil && reject == nil {
		if err := it.rt.CheckOwner(owner); err != nil {
			it.rt.log.Error("rdma: Route has named an owner that nothing can be sent to", "err", err)
			return nil, 0, false
		}
		in.owner, in.handler = owner, nil
	}
	return reject, over, true
}

// acceptSecured is Accept of an owner whose peer is authenticated.
func (it *ident) acceptSecured(c *cmid.Accept, sender *actor.PID) {
	a := &asked{cmd: c, sender: sender}
	if err := cmp.Or(it.canAnswer(c.PrivateData), it.meet()); err != nil {
		it.refuse(a, err)
		return
	}
	if err := it.conn.Accept(c.PrivateData); err != nil {
		it.refuse(a, err)
		it.destroy(err)
		return
	}
	it.answered(fateAccepted)
	ev := it.hand.established
	it.hand = nil
	it.asked = append(it.asked, a)
	it.opened(ev, c)
}

// rejectSecured is the same for Reject.
func (it *ident) rejectSecured(c *cmid.Reject, sender *actor.PID) {
	a := &asked{cmd: c, sender: sender}
	if err := it.canAnswer(c.PrivateData); err != nil {
		it.refuse(a, err)
		return
	}
	it.answered(fateRejected)
	it.conn.Reject(c.PrivateData)
	it.asked = append(it.asked, a) // answered by Closed
	it.destroy(nil)
}

func (it *ident) canAnswer(user []byte) error {
	switch {
	case len(user) > wire.MaxUserData:
		return fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(user), wire.MaxUserData, unix.EINVAL)
	case it.conn.Over():
		return datapath.Flushed()
	}
	return nil
}

// errCrowded is why a request is refused while there are too many of peers that are not
// authenticated.
var errCrowded = errors.New("too many peers that are not authenticated (Limits.Handshakes)")
