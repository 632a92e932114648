package secure

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/subtle"
)

const (
	// PSKRequestLen is what PSK mode has behind hello and hint of a request: a public key and a key
	// id.
	PSKRequestLen = publicLen + keyIDLen
	// PSKReplyLen is the length of its part of a reply, behind the hello: a public key, and the
	// hello sealed.
	PSKReplyLen = publicLen + HelloLen + Overhead
)

// PSKClient is the connecting side's handshake: NewPSKClient, then Finish with the reply.
type PSKClient struct{ noise *noise }

// NewPSKClient begins a handshake and returns the bytes behind the request's hello and hint.
func NewPSKClient(c *Credential, s Suite, b Binding, request Hello) (*PSKClient, [PSKRequestLen]byte, error) {
	e, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, [PSKRequestLen]byte{}, &ConfigError{What: "no key for one connection", Err: err}
	}
	return newPSKClient(c, s, b, request, e)
}

func newPSKClient(c *Credential, s Suite, b Binding, request Hello, e *ecdh.PrivateKey,
) (_ *PSKClient, data [PSKRequestLen]byte, err error) {
	if noiseName(s) == "" {
		return nil, data, &ConfigError{What: s.String() + " is not for PSK mode"}
	}
	id, psk, err := c.deriveKey()
	if err != nil {
		return nil, data, err
	}
	n := newNoise(s, b.pskPrologue(request, id), psk, e)
	clear(psk[:])
	public := e.PublicKey().Bytes()
	if _, err := n.makeFirst(public, nil); err != nil {
		return nil, data, &ConfigError{What: s.String(), Err: err}
	}
	copy(data[:], public)
	copy(data[publicLen:], id[:])
	return &PSKClient{n}, data, nil
}

// Finish takes the reply: its hello, and the bytes behind it. Without an error the peer has the
// key, and has sent that hello to this request. It is called once.
func (c *PSKClient) Finish(reply Hello, data []byte) (*Channel, error) {
	n := c.noise
	if n == nil {
		return nil, newHandshakeError("a second reply")
	}
	c.noise = nil
	defer n.forget()
	if len(data) != PSKReplyLen {
		return nil, newHandshakeError("a reply of %d bytes, want %d", len(data), PSKReplyLen)
	}
	sealed, err := n.readSecond(data[:publicLen], data[publicLen:])
	if err != nil {
		return nil, &HandshakeError{"the reply is of nobody who has the key, or was changed", err}
	}
	if subtle.ConstantTimeCompare(sealed, reply[:]) != 1 {
		return nil, newHandshakeError("the reply's hello was changed")
	}
	client, server, err := n.trafficSecrets()
	if err != nil {
		return nil, &ConfigError{What: n.suite.String(), Err: err}
	}
	defer clear(client)
	defer clear(server)
	return newChannel(n.suite, client, server)
}
