package actor

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// beginHandshake begins the handshake of the side that connects. It replaces private by the private
// data of the request.
func (it *ident) beginHandshake(private *[]byte, limit int) error {
	user := *private
	if len(user) > wire.MaxUserData {
		return fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(user), wire.MaxUserData, unix.EINVAL)
	}
	if it.id.Device() == nil {
		return fmt.Errorf("the identifier has no device: %w", unix.ENODEV)
	}
	h, name := it.newHandshake(it.cfg.Hint), ""
	h.user = bytes.Clone(user)
	if it.attempts != nil {
		name, h.host = it.attempts.name, it.attempts.host
	}
	if h.sec.Mode == TLS {
		h.features = secure.FeatureTLS
		*private = h.askTLS(it.hello(h.features))
	} else {
		key := h.sec.Keys.toward(name)
		if key == nil {
			return fmt.Errorf("Security.Keys has no key to connect with (Keyring.Use): %w", unix.EINVAL)
		}
		suite := secure.PreferredSuite()
		h.features = secure.PSKFeatures(suite)
		b, err := h.askPSK(it.hello(h.features), key, suite, limit)
		if err != nil {
			return err
		}
		*private = b
		it.authenticated(key.Identity) // valid only if the reply opens
	}
	it.handshake.failed(FailedLost, nil) // an earlier one has led to no connection
	it.handshake = h
	h.begin(&it.l.secured.Dialled, "request sent")
	err := it.queuePair(datapath.ModeMessages)
	h.conn = it.conn
	return err
}

// askPSK returns the private data of a request in PSK mode.
func (h *handshake) askPSK(own wire.Hello, key *Credential, suite secure.Suite, limit int) ([]byte, error) {
	b := own.Put(make([]byte, secure.HintLen+secure.PSKRequestLen))
	if len(b) > limit {
		return nil, fmt.Errorf("a handshake needs %d bytes of private data, the device has %d: %w", len(b), limit, unix.EINVAL)
	}
	client, data, err := secure.NewPSKClient(key, suite, h.binding(), secure.Hello(b))
	if err != nil {
		return nil, err
	}
	h.client = client
	secure.PutHint(b[wire.HelloLen:], h.hint)
	copy(b[wire.HelloLen+secure.HintLen:], data[:])
	return b, nil
}

// askTLS returns the private data of a request in TLS mode.
func (h *handshake) askTLS(own wire.Hello) []byte {
	b := own.Put(make([]byte, secure.HintLen))
	secure.PutHint(b[secure.HelloLen:], h.hint)
	h.tls = &handshakes.TLS{Request: secure.Hello(b)}
	return b
}

// replied handles the reply to this side's request: the device has connected.
func (it *ident) replied(ev *cmid.Established, answers *cmid.Pending) {
	h := it.handshake
	h.established, h.answers = ev, answers
	data := ev.PrivateData
	ev.PrivateData = nil
	if err := h.takeReply(data); err != nil {
		it.destroy(err) // this also answers the Connect
	}
}

// takeReply applies the reply.
func (h *handshake) takeReply(data []byte) error {
	limits := h.id.Limits()
	hello, rest, _ := wire.ParseHello(data, limits.Padded)
	if err := h.features.Same(secure.Features(hello.Features), hello.Version); err != nil {
		h.failed(FailedMode, err)
		return err
	}
	h.passed("reply received")
	h.set(handshakeReplied)
	if h.tls != nil {
		h.conn.Agree(hello, true, limits.MaxMessage)
		h.tls.Reply = secure.Hello(data)
		h.stepTLS()
		return nil
	}
	ch, err := h.client.Finish(secure.Hello(data), rest)
	if err != nil {
		h.failed(FailedTampered, err)
		return err
	}
	h.set(handshakeProved)
	h.conn.Agree(hello, true, limits.MaxMessage)
	return h.conn.Secure(ch, h.user)
}

// rejectedBy reports that the peer, which is authenticated, has rejected this side.
func (it *ident) rejectedBy(body []byte, err error) {
	reason := cmid.RejectConsumerDefined
	if it.id.Flavor()&states.IWARP != 0 {
		reason = cmid.RejectReset
	}
	p := it.handshake.answers
	f := it.failure(p.Command, opName(p.Command), err)
	ev := &cmid.Rejected{FailureBase: f, Reason: reason, PrivateData: body}
	it.answer(p, ev)
	it.failed(ev)
}

// refusedBy completes the report of a rejection by a peer that was not authenticated before, or
// never can be: anyone on the path may have sent it.
func (it *ident) refusedBy(ev *cmid.Rejected) {
	h, rest, ok := wire.ParseHello(ev.PrivateData, it.id.Limits().Padded)
	switch {
	case !it.cfg.secured() && h.Features == 0:
		ev.PrivateData = rest
		if why := h.Refusal(); ok && why != 0 {
			ev.Remedy = "the peer refuses it: " + why.String() + ": " + tryAgain
		}
		return
	case ok:
		ev.Err = refusalError(rest)
		it.handshake.failedBy(ev.Err)
		ev.Remedy = "both sides need the same Security.Mode, and in PSK mode keys of one identity"
		if errors.Is(ev.Err, unix.EAGAIN) { // the peer has looked at neither
			ev.Remedy = tryAgain
		}
	}
	ev.PrivateData = nil
}
