package actor

import (
	"bytes"
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// answerHandshake is the handshake of the side that the peer connects to. It computes the reply to
// the request, and asks the owner once the peer is authenticated (introduce.go).
type answerHandshake struct {
	handshake
	tenancy *tenancy // joins its Domain when the owner accepts
	in      *incoming
	request []byte            // PSK mode: the part behind the hint, with the id of a key
	reply   []byte            // the private data of the reply
	server  *secure.PSKServer // PSK mode; nil: not computed
}

// checkMode refuses a request for another mode than this listener's.
func (l *loop) checkMode(in *incoming) (ok bool) {
	if in.cfg.Raw || in.id.Datagram() && !in.cfg.isSecured() {
		return true
	}
	h, behind, _ := wire.ParseHello(in.r.PrivateData, in.id.Limits().Padded)
	peer := secure.Features(h.Features)
	own := in.cfg.helloFeatures(peer)
	if err := own.Same(peer); err != nil {
		l.rejectUnauthenticated(in, own, wire.RefusedMode, err)
		return false
	}
	if !in.cfg.isSecured() {
		return true
	}
	if in.hint, in.behind, ok = secure.ParseHint(behind); !ok {
		l.rejectUnauthenticated(in, own, wire.RefusedOther, errNoHint)
	}
	return ok
}

var errNoHint = &HandshakeError{What: "a request without a hint"}

// rejectUnauthenticated rejects a request that has no actor, because of err.
func (l *loop) rejectUnauthenticated(in *incoming, own secure.Features, why wire.Refusal, err error) {
	l.rt.log.Warn("rdma: a peer that is not authenticated was rejected", "id", in.id.Handle(), "peer", in.r.Peer, "local", in.r.Local,
		"err", Brief(err))
	l.countRefused(in.id, in.via, fateUnauthenticated)
	failure := failureFrom(why) // of a handshake that never begins
	l.secured.Answered.Begun++
	l.secured.Answered.Failed[failure]++
	l.flight.Note(l.el.Now(), uint64(in.id.Handle()), FlightHandshake, handshakeNotes[failure], 0)
	in.id.Do(&cmid.Reject{PrivateData: in.cfg.refusalData(own, why)}, nil)
	l.destroyOrphan(in.id, nil)
}

// challenge answers a request: the handshake's reply is computed off the loop, and the device then
// accepts.
func (it *ident) challenge(in *incoming) {
	a := &answerHandshake{
		handshake: handshake{commandTable: &it.commandTable, of: it, hint: in.hint, stranger: in.stranger}, tenancy: &it.tenancy, in: in,
	}
	a.side, it.handshake = a, &a.handshake
	peer, _, _ := wire.ParseHello(in.r.PrivateData, a.id.Limits().Padded)
	a.peer = peerTerms{datapath.ModeMessages, peer, in.r.Param}
	a.features = a.cfg.helloFeatures(secure.Features(peer.Features))
	a.setReadLimits(nil, &a.peer.reads)
	own := a.newHello(a.features)
	a.promised = own.Eager // also if memory becomes short before the queue pair is made
	in.stranger.Evict = func() { a.box.PostUserMessage(&evicted{a}) }
	a.countBegun(&a.l.secured.Answered, "request received")
	a.computeReply(own)
}

// computeReply computes the reply to the request, off the loop.
func (a *answerHandshake) computeReply(own wire.Hello) {
	request := secure.Hello(a.in.r.PrivateData)
	if a.cfg.Security.Mode == TLS {
		a.reply = own.Put(nil)
		a.tls = &handshakes.TLS{Request: request, Reply: secure.Hello(a.reply)}
		a.box.PostUserMessage(&computed{of: a}) // there is nothing to compute
		return
	}
	a.request, a.reply = bytes.Clone(a.in.behind), own.Put(make([]byte, secure.PSKReplyLen))
	keys, suite, binding, reply := a.cfg.Security.Keys.peerKeys(), a.features.Suite(), a.newBinding(), secure.Hello(a.reply)
	rt := a.l.rt
	rt.running.Add(1)
	rt.computing.Do(a.stranger.From, func() {
		defer rt.running.Done()
		m := &computed{of: a}
		m.server, m.answer, m.err = secure.NewPSKServer(keys, suite, binding, request, a.request, reply)
		a.box.PostUserMessage(m)
	})
}

// sendReply sends the computed reply.
func (a *answerHandshake) sendReply(m *computed) {
	if a.isEnding() {
		if m.server != nil {
			m.server.Forget()
		}
		return
	}
	if m.err != nil {
		a.rejectUnauthenticated(m.err)
		return
	}
	if a.tls == nil {
		copy(a.reply[wire.HelloLen:], m.answer[:])
		a.server = m.server
	}
	accept := &cmid.Accept{PrivateData: a.reply, Param: a.cfg.Transport.AcceptParam(nil)}
	asked := false
	a.executeStep(accept, func(p *cmid.Pending) {
		asked = true
		if err := a.of.makeDataPath(datapath.ModeMessages); err != nil {
			a.rejectUnauthenticated(err)
			return
		}
		a.conn.Agree(a.peer.hello, true, a.id.Limits().MaxMessage)
		a.notePassed("reply sent")
		a.setStage(handshakeReplied)
		a.awaitPeer()
		p.Proceed(accept)
	}, func(ev Event) {
		f, failed := ev.(Failure)
		switch {
		case !asked: // the peer has gone
			a.of.destroyID(unix.ECONNRESET)
		case failed:
			a.of.destroyID(f)
		}
	})
}

// rejectUnauthenticated rejects the request because of err.
func (a *answerHandshake) rejectUnauthenticated(err error) {
	a.warnRefused(err)
	a.requestAnswered(fateUnauthenticated)
	a.executeStep(&cmid.Reject{PrivateData: a.cfg.refusalData(a.features, refusalOf(err))}, nil, func(Event) {})
	a.of.destroyID(err)
}

// warnRefused logs that the peer is rejected because of err.
func (a *answerHandshake) warnRefused(err error) {
	a.l.rt.log.Warn("rdma: a peer that is not authenticated was rejected", "id", a.id.Handle(), "peer", a.in.r.Peer,
		"local", a.in.r.Local, "err", Brief(err))
}

// Prove implements datapath.Handshake.
func (a *answerHandshake) Prove(sealed []byte) ([]byte, *secure.Channel, error) {
	if a.server == nil || a.stage != handshakeReplied {
		return nil, nil, errTooEarly
	}
	first, identity, ch, err := a.server.Confirm(sealed[:0], sealed)
	if err == nil {
		if err = a.checkKey(); err != nil {
			ch.Forget()
		}
	}
	if err != nil {
		a.requestAnswered(fateUnauthenticated)
		return nil, nil, err
	}
	a.notePassed("peer authenticated")
	a.setStage(handshakeProved)
	a.who = identity
	return first, ch, nil
}

// checkKey returns an error if the peer's key was removed after its request arrived.
func (a *answerHandshake) checkKey() error {
	if a.cfg.Security.Mode != PSK {
		return nil
	}
	return a.cfg.Security.Keys.peerKeys().Know(a.request)
}

// deviceConnected continues with TLS frames, or with the first message, which may have arrived.
func (a *answerHandshake) deviceConnected(answers *cmid.Pending, _ []byte) {
	answers.Answer(a.established)
	if a.tls != nil {
		a.stepTLS()
		return
	}
	a.introduceRequest()
}

func (a *answerHandshake) addresses() (client, server Addr) { return a.in.r.Peer, a.in.r.Local }

// handleFirst handles the peer's request.
func (a *answerHandshake) handleFirst(firstMessage) { a.introduceRequest() }

func (a *answerHandshake) connectionLost(err error) { a.of.destroyID(err) }

func (a *answerHandshake) newTLS(peer secure.TLSPeer) func(context.Context) (*secure.TLS, error) {
	config := a.cfg.Security.TLS
	return func(ctx context.Context) (*secure.TLS, error) { return secure.NewTLSServer(ctx, config, peer) }
}

func (a *answerHandshake) awaitFrames() { a.awaitPeer() }

func (a *answerHandshake) startRecords(channel *secure.Channel) error {
	a.conn.Sec.Await(channel)
	a.awaitPeer()
	return nil
}

// countStranger counts a peer that is not authenticated. Another one may have to give way, on any
// loop. Not ok: there are too many, or too many from its address or network.
func (l *loop) countStranger(in *incoming) (ok bool) {
	in.stranger = &limits.Stranger{From: in.r.Peer.Source()}
	evicted, ok := l.rt.strangers.Enter(in.stranger, l.rt.cfg.Limits.Handshakes, l.el.Now())
	if evicted != nil {
		evicted.Evict()
	}
	return ok
}

// awaitPeer records that the handshake waits for the peer.
func (a *answerHandshake) awaitPeer() { a.l.rt.strangers.Wait(a.stranger, a.l.el.Now()) }

// giveWay ends a handshake that has lost its place, unless the peer's first message has arrived by
// now.
func (a *answerHandshake) giveWay() {
	if a.stage >= handshakeHeard {
		return
	}
	a.warnRefused(errCrowded)
	a.countFailed(FailedCrowded, errCrowded)
	a.of.destroyID(errCrowded)
}

// errCrowded is the error of a request that is refused because there are too many peers that are
// not authenticated.
var errCrowded = errors.New("too many peers that are not authenticated (Limits.Handshakes)")
