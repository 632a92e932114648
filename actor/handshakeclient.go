package actor

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// beginHandshake begins the handshake of the side that connects: private becomes what goes on the
// wire.
func (it *ident) beginHandshake(private *[]byte, limit int) error {
	user := *private
	if len(user) > wire.MaxUserData {
		return fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(user), wire.MaxUserData, unix.EINVAL)
	}
	if it.id.Device() == nil {
		return fmt.Errorf("the identifier has no device: %w", unix.ENODEV)
	}
	hand := &handshake{user: bytes.Clone(user)}
	name := ""
	if it.attempts != nil {
		name, hand.host = it.attempts.name, it.attempts.host
	}
	if it.cfg.Security.Mode == TLS {
		return it.beginTLS(hand, private)
	}
	own := it.cfg.Security.Keys.toward(name)
	if own == nil {
		return fmt.Errorf("Security.Keys has no key to connect with (Keyring.Use): %w", unix.EINVAL)
	}
	suite := secure.PreferredSuite()
	hand.features, it.who = secure.PSKFeatures(suite), own.Identity
	b := it.hello(hand.features).Put(make([]byte, secure.HintLen+secure.PSKRequestLen))
	if len(b) > limit {
		return fmt.Errorf("a handshake needs %d bytes of private data, the device has %d: %w", len(b), limit, unix.EINVAL)
	}
	in := it.id.Info()
	client, data, err := secure.NewPSKClient(own, suite, it.binding(in.Local, in.Peer, it.cfg.Hint), secure.Hello(b))
	if err != nil {
		return err
	}
	secure.PutHint(b[wire.HelloLen:], it.cfg.Hint)
	copy(b[wire.HelloLen+secure.HintLen:], data[:])
	*private, hand.client = b, client
	it.beginShake(hand, &it.l.secured.Dialled, "request sent")
	return it.queuePair(datapath.ModeMessages)
}

// replied takes the reply to this side's request: the device has connected.
func (it *ident) replied(ev *cmid.Established, answers *cmid.Pending) {
	hand := it.hand
	hand.established, hand.answers = ev, answers
	data := ev.PrivateData
	ev.PrivateData = nil
	if err := it.finish(data); err != nil {
		it.destroy(err) // this answers whoever waits for the Connect
	}
}

func (it *ident) finish(data []byte) error {
	h, rest, _ := wire.ParseHello(data, it.id.Limits().Padded)
	if err := it.hand.features.Same(secure.Features(h.Features), h.Version); err != nil {
		it.failShake(FailedMode, err)
		return err
	}
	it.shakeStep("reply received")
	if it.hand.tls != nil {
		it.conn.Agree(h, true, it.id.Limits().MaxMessage)
		it.hand.tls.Reply = secure.Hello(data)
		it.stepTLS()
		return nil
	}
	ch, err := it.hand.client.Finish(secure.Hello(data), rest)
	if err != nil {
		it.failShake(FailedTampered, err)
		return err
	}
	it.conn.Agree(h, true, it.id.Limits().MaxMessage)
	return it.conn.Secure(ch, it.hand.user)
}

// rejectedBy reports that the peer, which is authenticated, has rejected this side.
func (it *ident) rejectedBy(body []byte, err error) {
	reason := cmid.RejectConsumerDefined
	if it.id.Flavor()&states.IWARP != 0 {
		reason = cmid.RejectReset
	}
	p := it.hand.answers
	f := it.failure(p.Command, opName(p.Command), err)
	ev := &cmid.Rejected{FailureBase: f, Reason: reason, PrivateData: body}
	it.answer(p, ev)
	it.failed(ev)
}

// refusedBy is what is known of a request that was rejected before the peer was authenticated, or
// because it never can be: anybody on the path may have sent that.
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
		it.failShake(failureOf(ev.Err), ev.Err)
		ev.Remedy = "both sides need the same Security.Mode, and in PSK mode keys of one identity"
		if errors.Is(ev.Err, unix.EAGAIN) { // it has looked at neither
			ev.Remedy = tryAgain
		}
	}
	ev.PrivateData = nil
}
