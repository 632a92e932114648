package actor

import (
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// In TLS mode request and reply have hellos only. When the device has connected, both sides send
// frames of the handshake, and then what PSK mode sends first: the client its request, the server
// its accept or reject.

// errNoCertificate is why a listener in TLS mode is refused.
var errNoCertificate = fmt.Errorf("Security.TLS has no certificate to listen with: %w", unix.EINVAL)

// canListen returns an error if peers could not connect to this listener in its mode.
func (it *ident) canListen() error {
	if !it.cfg.secured() || it.cfg.Security.Mode != TLS {
		return nil
	}
	if c := it.cfg.Security.TLS; len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil {
		return errNoCertificate
	}
	return nil
}

// beginTLS begins the handshake of the side that connects: private becomes what goes on the wire.
func (it *ident) beginTLS(hand *handshake, private *[]byte) error {
	hand.features = secure.FeatureTLS
	b := it.hello(hand.features).Put(make([]byte, secure.HintLen))
	secure.PutHint(b[secure.HelloLen:], it.cfg.Hint)
	hand.tls = &handshakes.TLS{Request: secure.Hello(b)}
	*private = b
	it.beginShake(hand, &it.l.secured.Dialled, "request sent")
	return it.queuePair(datapath.ModeMessages)
}

// serverName is the name that the server's certificate has to have if Security.TLS names none.
func (it *ident) serverName() string {
	host := it.hand.host
	if host == "" {
		return it.id.Info().Peer.Addr().WithZone("").String()
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.WithZone("").String()
	}
	return host
}

// Frame is datapath.Identifier's.
func (it *ident) Frame(b []byte) {
	hand := it.hand
	if hand == nil || hand.tls == nil {
		it.BreakOff(&ProtocolError{What: "a message before the handshake"})
		return
	}
	if err := hand.tls.Put(b); err != nil {
		it.answered(fateUnauthenticated)
		it.BreakOff(err)
		return
	}
	it.stepTLS()
}

// stepTLS takes what has come, off the loop.
func (it *ident) stepTLS() {
	hand := it.hand
	if hand.established == nil {
		return
	}
	h := hand.tls
	step := h.Next(hand.in != nil)
	if step == nil {
		return
	}
	if hand.in != nil {
		it.rt.strangers.Compute(hand.in.stranger)
	}
	if step.First() {
		step.Begin(it.tlsBeginning())
	}
	it.rt.running.Add(1)
	it.rt.computing.Do(it.computesFor(), func() {
		defer it.rt.running.Done()
		it.box.PostUserMessage(&tlsStep{h, step.Compute()})
	})
}

// computesFor is the address on whose account this handshake is computed: the peer's if it has
// connected, else this side's own.
func (it *ident) computesFor() (a netip.Addr) {
	if in := it.hand.in; in != nil {
		a = in.r.Peer.Source()
	}
	return a
}

// tlsBeginning is what the first step begins with. It is called on the loop, what it returns is
// not.
func (it *ident) tlsBeginning() func(context.Context) (*secure.TLS, error) {
	h, in, config := it.hand.tls, it.id.Info(), it.cfg.Security.TLS
	peer := secure.TLSPeer{
		Request: h.Request, Reply: h.Reply, Receive: it.conn.FrameSize(), Place: handshakes.Place{Of: &it.rt.computing, From: it.computesFor()},
		Authorities: it.cfg.Security.Authorities,
	}
	begin := secure.NewTLSServer
	if came := it.hand.in; came != nil {
		peer.Binding = it.binding(came.r.Peer, came.r.Local, came.hint)
	} else {
		begin, peer.ServerName, peer.Binding = secure.NewTLSClient, it.serverName(), it.binding(in.Local, in.Peer, it.cfg.Hint)
	}
	return func(ctx context.Context) (*secure.TLS, error) { return begin(ctx, config, peer) }
}

// stepped goes on when a step is done.
func (it *ident) stepped(m *tlsStep) {
	m.of.Done()
	hand := it.hand
	if hand == nil || hand.tls != m.of || it.ending() || it.conn.Over() {
		return // the end closes what there is
	}
	switch {
	case m.Err != nil:
		it.refuseTLS(m)
	case m.State == nil:
		it.conn.SendFrames(m.Frames)
		if hand.in == nil && !m.of.Heard() {
			it.conn.Nudge()
		}
		if hand.in != nil {
			it.awaitPeer()
		}
		it.stepTLS()
	default:
		it.conn.SendFrames(m.Frames)
		it.finishTLS(m)
	}
}

// refuseTLS ends a handshake that has failed here. The peer gets an alert.
func (it *ident) refuseTLS(m *tlsStep) {
	if in := it.hand.in; in != nil {
		it.log.Warn("rdma: a peer that is not authenticated was rejected", "id", it.id.Handle(), "peer", in.r.Peer, "local", in.r.Local,
			"err", Brief(m.Err))
	}
	it.conn.Alert(m.Frames[len(m.Frames)-1])
	it.destroy(m.Err)
}

// finishTLS begins the records: the peer is authenticated, as far as Security.TLS wants it to be.
func (it *ident) finishTLS(m *tlsStep) {
	hand := it.hand
	channel, records := m.of.Finish(m.Outcome)
	hand.tls = nil
	it.shakeStep("TLS finished")
	it.who, hand.established.TLS = handshakes.IdentityOf(m.State), m.State
	if hand.in != nil {
		it.conn.Await(channel)
		it.awaitPeer()
	} else if err := it.conn.Secure(channel, hand.user); err != nil {
		it.destroy(err)
		return
	}
	for _, b := range records {
		it.conn.Record(b)
	}
}
