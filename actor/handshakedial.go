package actor

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// dialHandshake is the handshake of the side that connects. Its request has the hello and, in PSK
// mode, the client's key share; its first message is the request sealed.
type dialHandshake struct {
	handshake
	host    string            // the host that Dial names; "": none
	client  *secure.PSKClient // PSK mode
	user    []byte            // the content of the first message
	answers *cmid.Pending     // the Connect, after the device has connected
}

// requestData returns the private data of the request. user is for the first message.
func (d *dialHandshake) requestData(user []byte, limit int) ([]byte, error) {
	switch {
	case len(user) > wire.MaxUserData:
		return nil, fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(user), wire.MaxUserData, unix.EINVAL)
	case d.id.Device() == nil:
		return nil, fmt.Errorf("the identifier has no device: %w", unix.ENODEV)
	}
	name := ""
	d.user = bytes.Clone(user)
	if d.attempts != nil {
		name, d.host = d.attempts.name, d.attempts.host
	}
	if d.cfg.Security.Mode == TLS {
		d.features = secure.FeatureTLS
		return d.askTLS(d.newHello(d.features)), nil
	}
	key := d.cfg.Security.Keys.credentialFor(name)
	if key == nil {
		return nil, fmt.Errorf("Security.Keys has no key to connect with (Keyring.Use): %w", unix.EINVAL)
	}
	suite := secure.PreferredSuite()
	d.features = secure.PSKFeatures(suite)
	private, err := d.askPSK(d.newHello(d.features), key, suite, limit)
	if err == nil {
		d.who = key.Identity // valid only if the reply opens
	}
	return private, err
}

// askPSK returns the private data of a request in PSK mode.
func (d *dialHandshake) askPSK(own wire.Hello, key *Credential, suite secure.Suite, limit int) ([]byte, error) {
	b := own.Put(make([]byte, secure.HintLen+secure.PSKRequestLen))
	if len(b) > limit {
		return nil, fmt.Errorf("a handshake needs %d bytes of private data, the device has %d: %w", len(b), limit, unix.EINVAL)
	}
	client, data, err := secure.NewPSKClient(key, suite, d.newBinding(), secure.Hello(b))
	if err != nil {
		return nil, err
	}
	d.client = client
	secure.PutHint(b[wire.HelloLen:], d.hint)
	copy(b[wire.HelloLen+secure.HintLen:], data[:])
	return b, nil
}

// askTLS returns the private data of a request in TLS mode.
func (d *dialHandshake) askTLS(own wire.Hello) []byte {
	b := own.Put(make([]byte, secure.HintLen))
	secure.PutHint(b[secure.HelloLen:], d.hint)
	d.tls = &handshakes.TLS{Request: secure.Hello(b)}
	return b
}

// takeReply applies the reply.
func (d *dialHandshake) takeReply(data []byte) error {
	limits := d.id.Limits()
	hello, rest, _ := wire.ParseHello(data, limits.Padded)
	err := wire.CheckVersion(data)
	if err != nil {
		err = &HandshakeError{What: "the reply", Err: err}
	} else {
		err = d.features.Same(secure.Features(hello.Features))
	}
	if err != nil {
		d.countFailed(FailedMode, err)
		return err
	}
	d.notePassed("reply received")
	d.setStage(handshakeReplied)
	if d.tls != nil {
		d.conn.Agree(hello, true, limits.MaxMessage)
		d.tls.Reply = secure.Hello(data)
		d.stepTLS()
		return nil
	}
	ch, err := d.client.Finish(secure.Hello(data), rest)
	if err != nil {
		d.countFailed(FailedTampered, err)
		return err
	}
	d.setStage(handshakeProved)
	d.conn.Agree(hello, true, limits.MaxMessage)
	return d.startRecords(ch)
}

// deviceConnected applies the reply.
func (d *dialHandshake) deviceConnected(answers *cmid.Pending, data []byte) {
	d.answers = answers
	if err := d.takeReply(data); err != nil {
		d.of.destroyID(err) // this also answers the Connect
	}
}

func (d *dialHandshake) addresses() (client, server Addr) {
	in := d.id.Info()
	return in.Local, in.Peer
}

// Prove implements datapath.Handshake. The peer's proof is its reply, or its TLS handshake.
func (d *dialHandshake) Prove([]byte) ([]byte, *secure.Channel, error) { return nil, nil, errTooEarly }

// handleFirst handles the answer of the peer's owner, or a refusal.
func (d *dialHandshake) handleFirst(m firstMessage) {
	switch m.typ {
	case wire.TypeAccept:
		d.countCompleted("accepted by the peer")
		d.established.PrivateData = m.body
		d.of.reportEstablished(d.established, d.answers)
	case wire.TypeReject:
		d.countCompleted("rejected by the peer")
		d.rejectedBy(m.body, fmt.Errorf("rejected: by the application: %w", unix.ECONNREFUSED))
	case wire.TypeRefusal:
		d.countCompleted("refused by the peer")
		d.rejectedBy(nil, sealedRefusalError(m.body))
	}
}

// rejectedBy reports that the peer, which is authenticated, has rejected this side.
func (d *dialHandshake) rejectedBy(body []byte, err error) {
	reason := cmid.RejectConsumerDefined
	if d.id.Flavor()&states.IWARP != 0 {
		reason = cmid.RejectReset
	}
	c := d.answers.Command
	d.failConnect(&cmid.Rejected{FailureBase: d.failureBase(c, opName(c), err), Reason: reason, PrivateData: body})
}

// connectionLost fails the Connect.
func (d *dialHandshake) connectionLost(err error) {
	if d.answers == nil { // the device has not connected
		d.of.destroyID(err)
		return
	}
	c := d.answers.Command
	d.failConnect(&cmid.ConnectError{FailureBase: d.failureBase(c, opName(c), err)})
}

func (d *dialHandshake) failConnect(f Failure) {
	d.answerPending(d.answers, f)
	d.of.destroyUnrenewed(f)
}

func (d *dialHandshake) newTLS(peer secure.TLSPeer) func(context.Context) (*secure.TLS, error) {
	config := d.cfg.Security.TLS
	peer.ServerName = d.serverName()
	return func(ctx context.Context) (*secure.TLS, error) { return secure.NewTLSClient(ctx, config, peer) }
}

// serverName returns the name that the server's certificate must have if Security.TLS sets none.
func (d *dialHandshake) serverName() string {
	if d.host == "" {
		return d.id.Info().Peer.Addr().WithZone("").String()
	}
	if a, err := netip.ParseAddr(d.host); err == nil {
		return a.WithZone("").String()
	}
	return d.host
}

func (d *dialHandshake) awaitFrames() {
	if !d.tls.Heard() {
		d.conn.Sec.Nudge()
	}
}

func (d *dialHandshake) startRecords(channel *secure.Channel) error {
	return d.conn.Sec.Secure(channel, d.user)
}

// warnRefused leaves the report to the answer of Connect.
func (d *dialHandshake) warnRefused(error) {}
