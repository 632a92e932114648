package actor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// In TLS mode request and reply have hellos only. When the device has connected, both sides send
// frames of the handshake, and then what PSK mode sends first: the client its request, the server
// its accept or reject.
//
// Certificates are checked, and the user's code runs, so nothing of it is done on the loop. What
// has come is taken in a step, which has a goroutine of its own. There is one step at a time, and
// between two of them the handshake has no goroutine but that of crypto/tls. Until its peer sends
// something, a server has not even that.

// tlsHandshake is a handshake in TLS mode.
type tlsHandshake struct {
	request, reply secure.Hello

	// The loop's.
	waiting     [][]byte // what has come for the next step: frames, and perhaps records behind them
	came, bytes int      // in all
	begun       bool     // there was a step
	under       bool     // there is one, or its outcome was not handled

	mu      sync.Mutex
	busy    bool                    // a step is under way, and has what is below
	over    bool                    // the identifier needs it no more
	cancel  context.CancelCauseFunc // ends what takes too long in a step
	tls     *secure.TLS             // nil: not begun, or closed
	channel *secure.Channel         // nil: it is not done, or the connection has it
}

// tlsStep is the outcome of a step: a message of an identifier to itself.
type tlsStep struct {
	of     *tlsHandshake
	frames [][]byte             // to send; after an error, an alert
	rest   [][]byte             // records of the peer's
	state  *tls.ConnectionState // nil: it is not done
	err    error
}

func (*tlsStep) Lane() mailbox.Lane { return mailbox.Event }

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
func (it *ident) beginTLS(private *[]byte) error {
	it.features = secure.FeatureTLS
	b := it.hello().Put(make([]byte, secure.HintLen))
	secure.PutHint(b[secure.HelloLen:], it.cfg.Hint)
	it.hand = &handshake{user: bytes.Clone(*private), tls: &tlsHandshake{request: secure.Hello(b)}}
	*private = b
	it.beginShake(&it.l.secured.Dialled, "request sent")
	return it.queuePair(datapath.ModeMessages)
}

// serverName is the name that the server's certificate has to have if Security.TLS names none.
func (it *ident) serverName() string {
	if it.host == "" {
		return it.id.Info().Peer.Addr().WithZone("").String()
	}
	if a, err := netip.ParseAddr(it.host); err == nil {
		return a.WithZone("").String()
	}
	return it.host
}

// Frame is datapath.Identifier's.
func (it *ident) Frame(b []byte) {
	hand := it.hand
	if hand == nil || hand.tls == nil {
		it.BreakOff(&ProtocolError{What: "a message before the handshake"})
		return
	}
	h := hand.tls
	h.came++
	h.bytes += len(b)
	err := secure.PeerAlert(b) // at once: the end of the connection is behind it
	if h.came > maxFramesCome || h.bytes > maxFrameBytes {
		err = &HandshakeError{What: fmt.Sprintf("more than %d bytes or %d frames", secure.MaxTLSBytes, secure.MaxTLSFrames)}
	}
	if err != nil {
		it.answered(fateUnauthenticated)
		it.BreakOff(err)
		return
	}
	h.waiting = append(h.waiting, bytes.Clone(b))
	it.stepTLS()
}

// What comes at most before the handshake is done here: frames, the request and a probe.
const (
	maxFramesCome = secure.MaxTLSFrames + 2
	maxFrameBytes = secure.MaxTLSBytes + maxFramesCome*secure.TLSFrameOverhead + firstRecords
	firstRecords  = 1 << 10
)

// stepTLS takes what has come, off the loop.
func (it *ident) stepTLS() {
	hand := it.hand
	h, server := hand.tls, hand.in != nil
	if hand.established == nil || h.under || len(h.waiting) == 0 && (server || h.begun) || !h.take() {
		return
	}
	frames := h.waiting
	h.waiting, h.begun, h.under = nil, true, true
	begin := it.tlsBeginning()
	it.rt.running.Add(1)
	it.rt.computing.do(it.computesFor(), func() {
		defer it.rt.running.Done()
		m := h.step(frames, begin)
		h.giveBack()
		it.box.PostUserMessage(m)
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

// tlsBeginning is what the first step does first. It is called on the loop, what it returns is not.
func (it *ident) tlsBeginning() func() error {
	h := it.hand.tls
	if h.cancel != nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	h.cancel = cancel
	in, config := it.id.Info(), it.cfg.Security.TLS
	peer := secure.TLSPeer{
		Request: h.request, Reply: h.reply, Receive: it.conn.FrameSize(), Place: place{&it.rt.computing, it.computesFor()},
	}
	begin := secure.NewTLSServer
	if came := it.hand.in; came != nil {
		peer.Binding = it.binding(came.r.Peer, came.r.Local, came.hint)
	} else {
		begin, peer.ServerName, peer.Binding = secure.NewTLSClient, it.serverName(), it.binding(in.Local, in.Peer, it.cfg.Hint)
	}
	return func() (err error) {
		h.tls, err = begin(ctx, config, peer)
		return err
	}
}

// take begins a step. Not ok: there are to be no more.
func (h *tlsHandshake) take() (ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy = !h.over
	return h.busy
}

// giveBack ends a step.
func (h *tlsHandshake) giveBack() {
	h.mu.Lock()
	h.busy = false
	over := h.over
	h.mu.Unlock()
	if over {
		h.close()
	}
}

// step takes frames, and says what has come of that. Any goroutine.
func (h *tlsHandshake) step(frames [][]byte, begin func() error) *tlsStep {
	m := &tlsStep{of: h}
	if m.err = begin(); m.err != nil {
		m.frames = [][]byte{secure.InternalAlert()}
		return m
	}
	t := h.tls
	for len(frames) > 0 && m.err == nil && !t.Done() {
		m.err = t.Take(frames[0])
		frames = frames[1:]
	}
	for f := t.Next(); f != nil; f = t.Next() {
		m.frames = append(m.frames, f)
	}
	if m.err == nil && t.Done() {
		var state tls.ConnectionState
		if h.channel, state, m.err = t.Finish(); m.err == nil {
			m.rest, m.state = frames, &state
		}
	}
	if m.err != nil || m.state != nil {
		h.tls = nil
		t.Close()
	}
	return m
}

// end ends a handshake that the identifier needs no more. It reports whether close is still to be
// called: otherwise the step under way does that.
func (h *tlsHandshake) end(cause error) (unclosed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.over = true
	if h.cancel != nil {
		h.cancel(cause)
	}
	return !h.busy && (h.tls != nil || h.channel != nil)
}

// close frees what a handshake has. It may wait for crypto/tls.
func (h *tlsHandshake) close() {
	if h.tls != nil {
		h.tls.Close()
		h.tls = nil
	}
	if h.channel != nil {
		h.channel.Forget()
		h.channel = nil
	}
}

// endTLS ends the handshake, if there is one.
func (it *ident) endTLS() {
	if it.hand == nil || it.hand.tls == nil {
		return
	}
	h, cause := it.hand.tls, it.cause
	if cause == nil {
		cause = errEnded
	}
	if !h.end(cause) {
		return
	}
	it.rt.running.Add(1)
	it.rt.Scheduler().Go(func() {
		defer it.rt.running.Done()
		h.close()
	})
}

// errEnded is why a handshake is given up whose identifier ends in order.
var errEnded = errors.New("the identifier was closed")

// stepped goes on when a step is done.
func (it *ident) stepped(m *tlsStep) {
	m.of.under = false
	hand := it.hand
	if hand == nil || hand.tls != m.of || it.ending() || it.conn.Over() {
		return // the end closes what there is
	}
	switch {
	case m.err != nil:
		it.refuseTLS(m)
	case m.state == nil:
		it.conn.SendFrames(m.frames)
		if hand.in == nil && m.of.came == 0 {
			it.conn.Nudge()
		}
		it.stepTLS()
	default:
		it.conn.SendFrames(m.frames)
		it.finishTLS(m)
	}
}

// refuseTLS ends a handshake that has failed here. The peer gets an alert.
func (it *ident) refuseTLS(m *tlsStep) {
	if in := it.hand.in; in != nil {
		it.log.Warn("rdma: a peer that is not authenticated was rejected", "id", it.id.Handle(), "peer", in.r.Peer, "local", in.r.Local,
			"err", Brief(m.err))
	}
	it.conn.Alert(m.frames[len(m.frames)-1])
	it.destroy(m.err)
}

// finishTLS begins the records: the peer is authenticated, as far as Security.TLS wants it to be.
func (it *ident) finishTLS(m *tlsStep) {
	hand, h := it.hand, m.of
	channel, records := h.channel, append(m.rest, h.waiting...)
	h.channel, h.waiting, hand.tls = nil, nil, nil
	h.cancel(nil)
	it.shakeStep("TLS finished")
	it.who, hand.established.TLS = identityOf(m.state), m.state
	if hand.in != nil {
		it.conn.Await(channel)
	} else if err := it.conn.Secure(channel, hand.user); err != nil {
		it.destroy(err)
		return
	}
	for _, b := range records {
		it.conn.Record(b)
	}
}

// identityOf is the identity of a peer whose certificate was verified: its first URI (as SPIFFE has
// it), else its first DNS name, else its subject's common name. The last two do not count if they
// could pass for a URI. One that is too long, or is not plain text, is nobody's.
func identityOf(s *tls.ConnectionState) string {
	if len(s.VerifiedChains) == 0 {
		return ""
	}
	leaf := s.VerifiedChains[0][0]
	name := leaf.Subject.CommonName
	switch {
	case len(leaf.URIs) > 0:
		name = leaf.URIs[0].String()
	case len(leaf.DNSNames) > 0:
		name = leaf.DNSNames[0]
	}
	if len(name) > maxIdentity || !utf8.ValidString(name) || strings.ContainsFunc(name, unprintable) ||
		len(leaf.URIs) == 0 && strings.ContainsAny(name, ":/") {
		return ""
	}
	return name
}

// maxIdentity is how many bytes a peer's name has at most, which are as many as SPIFFE's ids have.
// Names are remembered beyond their connections.
const maxIdentity = 2048

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
