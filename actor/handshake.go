package actor

import (
	"bytes"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/mailbox"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// A secured connection is made in two steps. In the first, the device connects: request and reply
// have the hellos and the handshake as private data (docs/security-wire.md), and the owners hear of
// nothing. In the second, what Connect, Accept and Reject say travels in the first messages of both
// sides, sealed. So for the state machine the identifier is connected before its owner has decided:
// in this phase, Accept and Reject are not the device's commands.

// handshake is what an identifier has of a secured connection until it is established for its
// owner.
type handshake struct {
	established *cmid.Established // the device's
	came        *firstMessage     // the peer's; nil: it has not come, or was handled

	// Of the side that connects.
	client  *secure.PSKClient
	user    []byte  // what its request says
	answers Command // its Connect

	// Of the other side.
	in      *incoming         // nil: this is not the other side
	reply   []byte            // the private data of the reply
	server  *secure.PSKServer // nil: not computed, or the peer is authenticated
	first   []byte            // what the peer's request says
	counted bool              // among the runtime's unauthenticated
	decides bool              // the owner has the request

	tls *handshakes.TLS // in TLS mode, until it is done; nil otherwise
}

// Messages of an identifier to itself.
type (
	// computed is the reply to a request: it is made off the loop.
	computed struct {
		server *secure.PSKServer
		answer [secure.PSKReplyLen]byte
		err    error
	}
	// firstMessage is what the peer says first. It has a turn of its own, because the device may be
	// in the middle of the read that has brought it.
	firstMessage struct {
		typ  wire.Type
		body []byte
	}
)

func (*computed) Lane() mailbox.Lane     { return mailbox.Event }
func (*firstMessage) Lane() mailbox.Lane { return mailbox.Event }

// unheard reports whether the owner knows nothing of the connection that the device has.
func (it *ident) unheard() bool { return it.hand != nil && !it.hand.decides }

// deciding reports whether an authenticated peer waits for the owner's decision.
func (it *ident) deciding() bool { return it.hand != nil && it.hand.decides }

// hello is what this side says of itself.
func (it *ident) hello() wire.Hello {
	t := it.terms(datapath.ModeMessages)
	return it.l.Hello(&t, it.id.Device().Attr())
}

// binding is what both sides have to see alike.
func (it *ident) binding(client, server Addr, hint uint32) secure.Binding {
	b := secure.Binding{Device: secure.DeviceInfiniBand, Hint: hint}
	if it.id.Flavor()&states.IWARP != 0 {
		b.Device = secure.DeviceIWARP
	}
	if !it.cfg.Security.NoAddresses {
		b.Client, b.Server = client.Addr(), netip.AddrPortFrom(server.Addr(), server.Port())
	}
	return b
}

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
	if it.cfg.Security.Mode == TLS {
		return it.beginTLS(private)
	}
	own := it.cfg.Security.Keys.toward(it.dialled)
	if own == nil {
		return fmt.Errorf("Security.Keys has no key to connect with (Keyring.Use): %w", unix.EINVAL)
	}
	suite := secure.PreferredSuite()
	it.features, it.who = secure.PSKFeatures(suite), own.Identity
	b := it.hello().Put(make([]byte, secure.HintLen+secure.PSKRequestLen))
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
	*private = b
	it.hand = &handshake{client: client, user: bytes.Clone(user)}
	it.beginShake(&it.l.secured.Dialled, "request sent")
	return it.queuePair(datapath.ModeMessages)
}

// replied takes the reply to this side's request: the device has connected.
func (it *ident) replied(ev *cmid.Established, answers Command) {
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
	if err := it.features.Same(secure.Features(h.Features), h.Version); err != nil {
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

// First is datapath.Identifier's.
func (it *ident) First(t wire.Type, body []byte) {
	if it.hand != nil {
		it.hand.came = &firstMessage{t, bytes.Clone(body)}
		it.box.PostUserMessage(it.hand.came)
	}
}

// Prove is datapath.Identifier's.
func (it *ident) Prove(sealed []byte) ([]byte, *secure.Channel, error) {
	hand := it.hand
	if hand == nil || hand.server == nil {
		return nil, nil, &ProtocolError{What: "a message before the handshake"}
	}
	server := hand.server
	hand.server = nil
	first, identity, ch, err := server.Confirm(sealed[:0], sealed)
	if err != nil {
		it.answered(fateUnauthenticated)
		return nil, nil, err
	}
	it.shakeStep("peer authenticated")
	it.who = identity
	return first, ch, nil
}

// heardFirst handles the peer's first message.
func (it *ident) heardFirst() {
	hand := it.hand
	if hand == nil || hand.came == nil || it.ending() {
		return
	}
	m := hand.came
	hand.came = nil
	switch m.typ {
	case wire.TypeAccept:
		it.completeShake("accepted by the peer")
		ev := hand.established
		ev.PrivateData = m.body
		it.hand = nil
		it.opened(ev, hand.answers)
	case wire.TypeReject:
		it.completeShake("rejected by the peer")
		it.rejectedBy(m.body, fmt.Errorf("rejected: by the application: %w", unix.ECONNREFUSED))
	case wire.TypeRefusal:
		it.completeShake("refused by the peer")
		it.rejectedBy(nil, overLimitError(m.body))
	case wire.TypeRequest:
		hand.first = m.body
		it.introduce()
	}
}

// rejectedBy reports that the peer, which is authenticated, has rejected this side.
func (it *ident) rejectedBy(body []byte, err error) {
	reason := cmid.RejectConsumerDefined
	if it.id.Flavor()&states.IWARP != 0 {
		reason = cmid.RejectReset
	}
	cmd := it.hand.answers
	f := it.failure(cmd, opName(cmd), err)
	ev := &cmid.Rejected{FailureBase: f, Reason: reason, PrivateData: body}
	it.answer(cmd, ev)
	it.failed(ev)
}

// lostUnheard ends an identifier whose connection has ended, or was broken off, before its owner
// knows of it. Not so if what has come last is the news of it.
func (it *ident) lostUnheard(cause error) (ended bool) {
	it.heardFirst()
	if !it.unheard() {
		return false
	}
	if it.ending() {
		it.goodbyeDone()
		return true
	}
	it.do(&asked{cmd: &cmid.Disconnect{}, then: func(Event) {}})
	if it.conn.BrokenBy() != nil {
		it.destroy(&HandshakeError{What: "the connection has ended before it was established", Err: cause})
	} else {
		it.reset(cause)
	}
	it.goodbyeDone()
	return true
}

// reset ends an identifier whose connection the device or the peer has ended before it was
// established. That says nothing about keys: who connects may try again.
func (it *ident) reset(cause error) {
	err := fmt.Errorf("the connection has ended before it was established: %w", unix.ECONNRESET)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	cmd := it.hand.answers
	if cmd == nil { // nobody waits: the other side connects
		it.destroy(err)
		return
	}
	ev := &cmid.ConnectError{FailureBase: it.failure(cmd, opName(cmd), err)}
	it.answer(cmd, ev)
	it.failed(ev)
}

// refusedBy is what is known of a request that was rejected before the peer was authenticated, or
// because it never can be: anybody on the path may have sent that.
func (it *ident) refusedBy(ev *cmid.Rejected) {
	h, rest, ok := wire.ParseHello(ev.PrivateData, it.id.Limits().Padded)
	switch {
	case !it.cfg.secured() && h.Features == 0:
		ev.PrivateData = rest
		return
	case ok:
		ev.Err = secure.PeerRefusal(rest)
		it.failShake(failureOf(ev.Err), ev.Err)
		ev.Remedy = "both sides need the same Security.Mode, and in PSK mode keys of one identity"
	}
	ev.PrivateData = nil
}
