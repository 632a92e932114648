package actor

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// ask returns the private data of the request: this side connects. user is for the first message.
func (h *handshake) ask(user []byte, limit int) ([]byte, error) {
	switch {
	case len(user) > wire.MaxUserData:
		return nil, fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(user), wire.MaxUserData, unix.EINVAL)
	case h.id.Device() == nil:
		return nil, fmt.Errorf("the identifier has no device: %w", unix.ENODEV)
	}
	name := ""
	h.user = bytes.Clone(user)
	if h.attempts != nil {
		name, h.host = h.attempts.name, h.attempts.host
	}
	if h.cfg.Security.Mode == TLS {
		h.features = secure.FeatureTLS
		return h.askTLS(h.hello(h.features)), nil
	}
	key := h.cfg.Security.Keys.toward(name)
	if key == nil {
		return nil, fmt.Errorf("Security.Keys has no key to connect with (Keyring.Use): %w", unix.EINVAL)
	}
	suite := secure.PreferredSuite()
	h.features = secure.PSKFeatures(suite)
	private, err := h.askPSK(h.hello(h.features), key, suite, limit)
	if err == nil {
		h.who = key.Identity // valid only if the reply opens
	}
	return private, err
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

// takeReply applies the reply.
func (h *handshake) takeReply(data []byte) error {
	limits := h.id.Limits()
	hello, rest, _ := wire.ParseHello(data, limits.Padded)
	if err := h.features.Same(secure.Features(hello.Features), hello.Version); err != nil {
		h.countFailed(FailedMode, err)
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
		h.countFailed(FailedTampered, err)
		return err
	}
	h.set(handshakeProved)
	h.conn.Agree(hello, true, limits.MaxMessage)
	return h.conn.Sec.Secure(ch, h.user)
}

// rejectedBy reports that the peer, which is authenticated, has rejected this side.
func (h *handshake) rejectedBy(body []byte, err error) {
	reason := cmid.RejectConsumerDefined
	if h.id.Flavor()&states.IWARP != 0 {
		reason = cmid.RejectReset
	}
	p := h.answers
	f := h.failure(p.Command, opName(p.Command), err)
	ev := &cmid.Rejected{FailureBase: f, Reason: reason, PrivateData: body}
	h.answer(p, ev)
	h.of.failed(ev)
}
