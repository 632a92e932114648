package secure

import (
	"crypto/cipher"
	"crypto/hkdf"
	"encoding/binary"
	"hash"
)

// labelPrefix sets our keys apart from those of TLS and QUIC that are made of the same secrets.
const labelPrefix = "rdmactor "

// expandLabel is HKDF-Expand-Label of RFC 8446, section 7.1, with another prefix. Labels are ours
// and short; context is at most 255 bytes.
func expandLabel(newHash func() hash.Hash, secret []byte, label string, context []byte, length int) ([]byte, error) {
	info := make([]byte, 0, 2+1+len(labelPrefix)+len(label)+1+len(context))
	info = binary.BigEndian.AppendUint16(info, uint16(length))
	info = append(info, byte(len(labelPrefix)+len(label)))
	info = append(info, labelPrefix...)
	info = append(info, label...)
	info = append(info, byte(len(context)))
	info = append(info, context...)
	return hkdf.Expand(newHash, secret, string(info), length)
}

// deriveAEAD derives from a secret an AEAD with its key, and the first nonce.
func deriveAEAD(s Suite, secret []byte) (aead cipher.AEAD, iv [nonceLen]byte, err error) {
	key, err := expandLabel(s.hashFunc(), secret, "key", nil, s.keyLen())
	if err != nil {
		return nil, iv, err
	}
	defer clear(key)
	if aead, err = s.newAEAD(key); err != nil {
		return nil, iv, err
	}
	first, err := expandLabel(s.hashFunc(), secret, "iv", nil, nonceLen)
	if err != nil {
		return nil, iv, err
	}
	copy(iv[:], first)
	return aead, iv, nil
}

// updateSecret replaces secret by the one after it, in place.
func updateSecret(s Suite, secret []byte) error {
	next, err := expandLabel(s.hashFunc(), secret, "update", nil, len(secret))
	if err != nil {
		return err
	}
	copy(secret, next)
	clear(next)
	return nil
}
