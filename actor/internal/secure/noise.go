package secure

import (
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
)

// publicLen is the length of an X25519 public key.
const publicLen = 32

// noise is the handshake Noise_NNpsk2_25519 with SHA-256, revision 34 of the specification:
//
//	-> e
//	<- e, ee, psk
//
// noise uses the names of the specification.
type noise struct {
	suite Suite
	ck, h [sha256.Size]byte
	aead  cipher.AEAD // for the key k, after the first MixKey
	n     uint64
	psk   [pskLen]byte
	e     *ecdh.PrivateKey
	re    *ecdh.PublicKey // the initiator's on the responder
}

// noiseName returns Noise's name for the handshake with a suite; empty for those of TLS.
func noiseName(s Suite) string {
	switch s {
	case AES256GCM:
		return "Noise_NNpsk2_25519_AESGCM_SHA256"
	case ChaCha20Poly1305:
		return "Noise_NNpsk2_25519_ChaChaPoly_SHA256"
	}
	return ""
}

func newNoise(s Suite, prologue []byte, psk [pskLen]byte, e *ecdh.PrivateKey) *noise {
	n := &noise{suite: s, psk: psk, e: e}
	name := noiseName(s)
	if len(name) <= len(n.h) {
		copy(n.h[:], name)
	} else {
		n.h = sha256.Sum256([]byte(name))
	}
	n.ck = n.h
	n.mixHash(prologue)
	return n
}

func (n *noise) mixHash(data []byte) {
	hash := sha256.New()
	hash.Write(n.h[:])
	hash.Write(data)
	hash.Sum(n.h[:0])
}

// mixKey replaces the chaining key, and makes a key for the payloads that follow.
func (n *noise) mixKey(material []byte) error {
	out, err := hkdf.Key(sha256.New, material, n.ck[:], "", 2*sha256.Size)
	if err != nil {
		return err
	}
	defer clear(out)
	copy(n.ck[:], out)
	return n.setKey(out[sha256.Size:])
}

func (n *noise) mixKeyAndHash(material []byte) error {
	out, err := hkdf.Key(sha256.New, material, n.ck[:], "", 3*sha256.Size)
	if err != nil {
		return err
	}
	defer clear(out)
	copy(n.ck[:], out)
	n.mixHash(out[sha256.Size : 2*sha256.Size])
	return n.setKey(out[2*sha256.Size:])
}

func (n *noise) setKey(k []byte) (err error) {
	n.n = 0
	n.aead, err = n.suite.newAEAD(k)
	return err
}

// nextNonce returns the specification's nonce: its byte order depends on the cipher.
func (n *noise) nextNonce() []byte {
	b := make([]byte, nonceLen)
	if n.suite == ChaCha20Poly1305 {
		binary.LittleEndian.PutUint64(b[nonceLen-8:], n.n)
	} else {
		binary.BigEndian.PutUint64(b[nonceLen-8:], n.n)
	}
	n.n++
	return b
}

func (n *noise) encryptAndHash(payload []byte) []byte {
	sealed := n.aead.Seal(nil, n.nextNonce(), payload, n.h[:])
	n.mixHash(sealed)
	return sealed
}

func (n *noise) decryptAndHash(sealed []byte) ([]byte, error) {
	payload, err := n.aead.Open(nil, n.nextNonce(), sealed, n.h[:])
	if err != nil {
		return nil, err
	}
	n.mixHash(sealed)
	return payload, nil
}

// mixEphemeral processes the token e of a handshake with a psk.
func (n *noise) mixEphemeral(public []byte) error {
	n.mixHash(public)
	return n.mixKey(public)
}

// makeFirst makes message 1 on both sides: its part behind e follows from the clear part. public is
// the initiator's.
func (n *noise) makeFirst(public, payload []byte) (sealed []byte, err error) {
	if err := n.mixEphemeral(public); err != nil {
		return nil, err
	}
	return n.encryptAndHash(payload), nil
}

// mixExchange processes the tokens ee and psk. It refuses keys of a peer that make a secret of
// zeros.
func (n *noise) mixExchange(peer *ecdh.PublicKey) error {
	shared, err := n.e.ECDH(peer)
	if err != nil {
		return err
	}
	defer clear(shared)
	if err := n.mixKey(shared); err != nil {
		return err
	}
	return n.mixKeyAndHash(n.psk[:])
}

// writeSecond writes message 2, on the responder. The result goes behind its public key.
func (n *noise) writeSecond(payload []byte) (sealed []byte, err error) {
	if err := n.mixEphemeral(n.e.PublicKey().Bytes()); err != nil {
		return nil, err
	}
	if err := n.mixExchange(n.re); err != nil {
		return nil, err
	}
	return n.encryptAndHash(payload), nil
}

// readSecond reads message 2, on the initiator: the responder's public key, and the bytes behind.
func (n *noise) readSecond(public, sealed []byte) (payload []byte, err error) {
	re, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	if err := n.mixEphemeral(public); err != nil {
		return nil, err
	}
	if err := n.mixExchange(re); err != nil {
		return nil, err
	}
	return n.decryptAndHash(sealed)
}

// split returns the two secrets of what follows: the initiator's, and the responder's.
func (n *noise) split() (initiator, responder []byte, err error) {
	out, err := hkdf.Key(sha256.New, nil, n.ck[:], "", 2*sha256.Size)
	if err != nil {
		return nil, nil, err
	}
	n.forget()
	return out[:sha256.Size:sha256.Size], out[sha256.Size:], nil
}

// trafficSecrets derives the two traffic secrets: the client's (the initiator's) and the server's.
// They are made of Noise's secrets and its hash. Noise's secrets alone do not depend on the
// prologue: a server whose client has seen another one would not notice by the first message.
func (n *noise) trafficSecrets() (client, server []byte, err error) {
	initiator, responder, err := n.split()
	if err != nil {
		return nil, nil, err
	}
	defer clear(initiator)
	defer clear(responder)
	if client, err = expandLabel(sha256.New, initiator, "traffic", n.h[:], sha256.Size); err != nil {
		return nil, nil, err
	}
	server, err = expandLabel(sha256.New, responder, "traffic", n.h[:], sha256.Size)
	return client, server, err
}

func (n *noise) forget() {
	clear(n.ck[:])
	clear(n.psk[:])
	n.e, n.re, n.aead = nil, nil, nil
}
