package secure

import (
	"crypto/sha256"
	"fmt"
	"io"
)

const (
	// KeyLen is the length of a pre-shared key, in bytes. Its bytes are random, never a password.
	KeyLen = 32
	// MaxIdentity is the longest identity, in bytes.
	MaxIdentity = 255

	keyIDLen = 8
	pskLen   = 32
)

// KeyID identifies, in a request, the identity and the one of its keys that is used. It is no
// secret, and the same in each request.
type KeyID [keyIDLen]byte

// Credential is an identity, and one key of it. It prints as the identity.
type Credential struct {
	Identity string
	Key      [KeyLen]byte
}

// Format writes the identity, whatever the verb: keys do not get into logs.
func (c Credential) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, c.Identity) // fmt's own writer
}

// MarshalText gives the identity, for JSON too.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.Identity), nil }

// deriveKey derives the id on the wire from a credential, and Noise's key. A key in use by two
// identities is two different keys there.
func (c *Credential) deriveKey() (id KeyID, psk [pskLen]byte, err error) {
	if c.Identity == "" || len(c.Identity) > MaxIdentity {
		return id, psk, &ConfigError{What: "an identity has 1 to 255 bytes"}
	}
	if c.Key == [KeyLen]byte{} {
		return id, psk, &ConfigError{What: "the key of " + c.Identity + " is zeros"}
	}
	for _, part := range []struct {
		label string
		to    []byte
	}{{"psk id", id[:]}, {"psk", psk[:]}} {
		b, err := expandLabel(sha256.New, c.Key[:], part.label, []byte(c.Identity), len(part.to))
		if err != nil {
			return id, psk, &ConfigError{What: "the key of " + c.Identity, Err: err}
		}
		copy(part.to, b)
		clear(b)
	}
	return id, psk, nil
}

// keysEach is how many keys an identity may have: the one in use, and the one that takes its place.
const keysEach = 2

// Keys is whom a listener knows. It is never changed: to rotate a key, make another Keys and use
// that for later requests.
type Keys struct{ byID map[KeyID]known }

type known struct {
	identity string
	psk      [pskLen]byte
}

// NewKeys takes identities and their keys, at most two of each identity. No two may have the same
// key.
func NewKeys(list ...Credential) (*Keys, error) {
	k := &Keys{byID: make(map[KeyID]known, len(list))}
	each, owners := map[string]int{}, make(map[[KeyLen]byte]string)
	defer clear(owners)
	for i := range list {
		c := &list[i]
		id, psk, err := c.deriveKey()
		if err != nil {
			return nil, err
		}
		if other, ok := k.byID[id]; ok {
			return nil, &ConfigError{What: "the same key id for " + other.identity + " and " + c.Identity}
		}
		if other, ok := owners[c.Key]; ok { // each could pass for the other
			return nil, &ConfigError{What: "the same key for " + other + " and " + c.Identity}
		}
		owners[c.Key] = c.Identity
		if each[c.Identity]++; each[c.Identity] > keysEach {
			return nil, &ConfigError{What: c.Identity + " has more than two keys"}
		}
		k.byID[id] = known{c.Identity, psk}
	}
	return k, nil
}

// Know returns an error if no key has the id that a request names, such as one that was removed.
func (k *Keys) Know(request []byte) error {
	_, err := k.findKey(request)
	return err
}

// findKey returns the peer whose key a request names.
func (k *Keys) findKey(request []byte) (known, error) {
	if len(request) != PSKRequestLen {
		return known{}, newHandshakeError("a request of %d bytes, want %d", len(request), PSKRequestLen)
	}
	id := KeyID(request[publicLen:])
	who, ok := k.byID[id]
	if !ok {
		return known{}, &HandshakeError{"a stranger", &UnknownKeyError{id}}
	}
	return who, nil
}
