package secure

import (
	"crypto/ecdh"
	"crypto/rand"
)

// PSKServer is the listening side's handshake: NewPSKServer with the request, then Confirm with
// the first message. Until then the peer is unauthenticated: a request can be a copy of an earlier
// one.
type PSKServer struct {
	identity string
	channel  *Channel
}

// NewPSKServer takes a request, its hello and the bytes behind the hint, and returns the bytes
// behind the reply's hello.
func NewPSKServer(k *Keys, s Suite, b Binding, request Hello, data []byte, reply Hello,
) (*PSKServer, [PSKReplyLen]byte, error) {
	// A key that is not known shall not cost the key for one connection.
	if _, err := k.findKey(data); err != nil && noiseName(s) != "" {
		return nil, [PSKReplyLen]byte{}, err
	}
	e, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, [PSKReplyLen]byte{}, &ConfigError{What: "no key for one connection", Err: err}
	}
	return newPSKServer(k, s, b, request, data, reply, e)
}

func newPSKServer(k *Keys, s Suite, b Binding, request Hello, data []byte, reply Hello, e *ecdh.PrivateKey,
) (_ *PSKServer, answer [PSKReplyLen]byte, err error) {
	if noiseName(s) == "" {
		return nil, answer, &ConfigError{What: s.String() + " is not for PSK mode"}
	}
	who, err := k.findKey(data)
	if err != nil {
		return nil, answer, err
	}
	n := newNoise(s, b.pskPrologue(request, KeyID(data[publicLen:])), who.psk, e)
	defer n.forget()
	if n.re, err = ecdh.X25519().NewPublicKey(data[:publicLen]); err != nil {
		return nil, answer, &HandshakeError{"the request's public key", err}
	}
	if _, err := n.makeFirst(data[:publicLen], nil); err != nil {
		return nil, answer, &ConfigError{What: s.String(), Err: err}
	}
	sealed, err := n.writeSecond(reply[:])
	if err != nil {
		return nil, answer, &HandshakeError{"the request's public key", err}
	}
	copy(answer[:], e.PublicKey().Bytes())
	copy(answer[publicLen:], sealed)
	client, server, err := n.trafficSecrets()
	if err != nil {
		return nil, answer, &ConfigError{What: s.String(), Err: err}
	}
	defer clear(client)
	defer clear(server)
	c, err := newChannel(s, server, client)
	return &PSKServer{who.identity, c}, answer, err
}

// Confirm takes the first message of the peer, and appends its plaintext to dst, as Open does.
// Without an error the peer has the key of identity. It is called once.
func (p *PSKServer) Confirm(dst, sealed []byte) (first []byte, identity string, _ *Channel, _ error) {
	c := p.channel
	if c == nil {
		return nil, "", nil, newHandshakeError("a second first message")
	}
	p.channel = nil
	first, err := c.Open.Open(dst, sealed)
	if err != nil {
		c.Forget()
		return nil, "", nil, &HandshakeError{"the first message is of nobody who has the key, or was changed", err}
	}
	return first, p.identity, c, nil
}

// Forget overwrites the secrets of a handshake that was given up.
func (p *PSKServer) Forget() {
	if p.channel != nil {
		p.channel.Forget()
		p.channel = nil
	}
}
