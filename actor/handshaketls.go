package actor

import (
	"context"
	"net/netip"

	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// In TLS mode request and reply have hellos only. When the device has connected, both sides send
// frames of the handshake, and then the first messages of PSK mode: the client its request, the
// server its accept or reject.

// serverName returns the name that the server's certificate must have if Security.TLS sets none.
func (h *handshake) serverName() string {
	if h.host == "" {
		return h.id.Info().Peer.Addr().WithZone("").String()
	}
	if a, err := netip.ParseAddr(h.host); err == nil {
		return a.WithZone("").String()
	}
	return h.host
}

// Frame implements datapath.Handshake.
func (h *handshake) Frame(b []byte) {
	if h.tls == nil || h.stage >= handshakeProved {
		h.of.BreakOff(&ProtocolError{What: "a message before the handshake"})
		return
	}
	if err := h.tls.Put(b); err != nil {
		h.answered(fateUnauthenticated)
		h.of.BreakOff(err)
		return
	}
	h.stepTLS()
}

// stepTLS handles the received frames, off the loop.
func (h *handshake) stepTLS() {
	if h.established == nil {
		return
	}
	t, rt := h.tls, h.l.rt
	step := t.Next(h.in != nil)
	if step == nil {
		return
	}
	if h.in != nil {
		rt.strangers.Compute(h.in.stranger)
	}
	if step.First() {
		step.Begin(h.beginTLS())
	}
	rt.running.Add(1)
	rt.computing.Do(h.computesFor(), func() {
		defer rt.running.Done()
		h.box.PostUserMessage(&tlsStep{t, step.Compute()})
	})
}

// computesFor returns the address that this handshake's computations are charged to: the peer's if
// the peer connects, else the zero address, which stands for this side.
func (h *handshake) computesFor() (a netip.Addr) {
	if h.in != nil {
		a = h.in.r.Peer.Source()
	}
	return a
}

// beginTLS returns the function that begins the first step. Only beginTLS runs on the loop.
func (h *handshake) beginTLS() func(context.Context) (*secure.TLS, error) {
	config, begin := h.cfg.Security.TLS, secure.NewTLSServer
	peer := secure.TLSPeer{
		Request: h.tls.Request, Reply: h.tls.Reply, Receive: h.conn.FrameSize(), Place: handshakes.Place{Of: &h.l.rt.computing, From: h.computesFor()},
		Authorities: h.cfg.Security.Authorities, Binding: h.binding(),
	}
	if h.in == nil {
		begin, peer.ServerName = secure.NewTLSClient, h.serverName()
	}
	return func(ctx context.Context) (*secure.TLS, error) { return begin(ctx, config, peer) }
}

// stepped continues after a step, unless the connection has ended: then the end closes the
// handshake.
func (h *handshake) stepped(m *tlsStep) {
	if h == nil || h.tls != m.of || h.conn.Over() {
		return
	}
	switch {
	case m.Err != nil:
		h.refuseTLS(m)
	case m.State == nil:
		h.conn.Sec.SendFrames(m.Frames)
		if h.in == nil && !m.of.Heard() {
			h.conn.Sec.Nudge()
		}
		if h.in != nil {
			h.awaitPeer()
		}
		h.stepTLS()
	default:
		h.conn.Sec.SendFrames(m.Frames)
		h.finishTLS(m)
	}
}

// refuseTLS ends a handshake that has failed on this side. The peer gets an alert.
func (h *handshake) refuseTLS(m *tlsStep) {
	if h.in != nil {
		h.warn(m.Err)
	}
	h.conn.Sec.Alert(m.Frames[len(m.Frames)-1])
	h.of.destroy(m.Err)
}

// finishTLS begins the records: the peer is authenticated, as far as Security.TLS requires.
func (h *handshake) finishTLS(m *tlsStep) {
	channel, records := m.of.Finish(m.Outcome)
	h.passed("TLS finished")
	h.set(handshakeProved)
	h.who = handshakes.IdentityOf(m.State)
	h.established.TLS = m.State
	if h.in != nil {
		h.conn.Sec.Await(channel)
		h.awaitPeer()
	} else if err := h.conn.Sec.Secure(channel, h.user); err != nil {
		h.of.destroy(err)
		return
	}
	for _, b := range records {
		h.conn.Sec.Record(b)
	}
}
