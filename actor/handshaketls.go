package actor

import (
	"net/netip"

	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// In TLS mode request and reply have hellos only. When the device has connected, both sides send
// frames of the handshake, and then the first messages of PSK mode: the client its request, the
// server its accept or reject.

// Frame implements datapath.Handshake.
func (h *handshake) Frame(b []byte) {
	if h.tls == nil || h.stage >= handshakeProved {
		h.of.BreakOff(errTooEarly)
		return
	}
	if err := h.tls.Put(b); err != nil {
		h.requestAnswered(fateUnauthenticated)
		h.of.BreakOff(err)
		return
	}
	h.stepTLS()
}

// stepTLS handles the received frames, off the loop. The computation is charged to the peer if the
// peer connects, else to the zero address, which stands for this side.
func (h *handshake) stepTLS() {
	if h.established == nil {
		return
	}
	t, rt := h.tls, h.l.rt
	step := t.Next(h.stranger != nil)
	if step == nil {
		return
	}
	var charged netip.Addr
	if h.stranger != nil {
		charged = h.stranger.From
		rt.strangers.Compute(h.stranger)
	}
	if step.First() {
		step.Begin(h.side.newTLS(secure.TLSPeer{
			Request: t.Request, Reply: t.Reply, Receive: h.conn.FrameSize(), Place: handshakes.Place{Of: &rt.computing, From: charged},
			Authorities: h.cfg.Security.Authorities, Binding: h.newBinding(),
		}))
	}
	rt.running.Add(1)
	rt.computing.Do(charged, func() {
		defer rt.running.Done()
		h.box.PostUserMessage(&tlsStep{t, step.Compute()})
	})
}

// continueTLS continues after a step, unless the connection has ended: then the end closes the
// handshake. If the step has failed, the peer gets an alert.
func (h *handshake) continueTLS(m *tlsStep) {
	if h == nil || h.tls != m.of || h.conn.Over() {
		return
	}
	switch {
	case m.Err != nil:
		h.side.warnRefused(m.Err)
		h.conn.Sec.Alert(m.Frames[len(m.Frames)-1])
		h.of.destroyID(m.Err)
	case m.State == nil:
		h.conn.Sec.SendFrames(m.Frames)
		h.side.awaitFrames()
		h.stepTLS()
	default:
		h.conn.Sec.SendFrames(m.Frames)
		h.finishTLS(m)
	}
}

// finishTLS begins the records: the peer is authenticated, as far as Security.TLS requires.
func (h *handshake) finishTLS(m *tlsStep) {
	channel, records := m.of.Finish(m.Outcome)
	h.notePassed("TLS finished")
	h.setStage(handshakeProved)
	h.who = handshakes.IdentityOf(m.State)
	h.established.TLS = m.State
	if err := h.side.startRecords(channel); err != nil {
		h.of.destroyID(err)
		return
	}
	for _, b := range records {
		h.conn.Sec.Record(b)
	}
}
