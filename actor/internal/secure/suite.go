package secure

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/sys/cpu"
)

// Overhead is how many bytes longer a sealed message is: its tag.
const Overhead = 16

const nonceLen = 12

// Suite is the cipher of messages, and the hash that makes the keys for it.
type Suite uint8

// The suites. PSK mode has the first two.
const (
	AES256GCM        Suite = iota + 1 // SHA-256
	ChaCha20Poly1305                  // SHA-256
	TLSAES128GCM                      // SHA-256: TLS_AES_128_GCM_SHA256
	TLSAES256GCM                      // SHA-384: TLS_AES_256_GCM_SHA384
)

// PreferredSuite is the suite of PSK mode that a client asks for: AES where the processor has
// instructions for it, which take the same time whatever the key is, and for GCM.
func PreferredSuite() Suite { return preferredSuite(aesInstructions()) }

func preferredSuite(aes bool) Suite {
	if aes {
		return AES256GCM
	}
	return ChaCha20Poly1305
}

func aesInstructions() bool {
	return cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ || cpu.ARM64.HasAES && cpu.ARM64.HasPMULL || cpu.S390X.HasAESGCM
}

func (s Suite) String() string {
	switch s {
	case AES256GCM:
		return "AES-256-GCM, SHA-256"
	case ChaCha20Poly1305:
		return "ChaCha20-Poly1305, SHA-256"
	case TLSAES128GCM:
		return "AES-128-GCM, SHA-256"
	case TLSAES256GCM:
		return "AES-256-GCM, SHA-384"
	}
	return fmt.Sprintf("suite %d", uint8(s))
}

func (s Suite) hashFunc() func() hash.Hash {
	if s == TLSAES256GCM {
		return sha512.New384
	}
	return sha256.New
}

func (s Suite) keyLen() int {
	if s == TLSAES128GCM {
		return 16
	}
	return 32
}

// newAEAD returns the suite's AEAD with a key of keyLen bytes.
func (s Suite) newAEAD(key []byte) (cipher.AEAD, error) {
	if s == ChaCha20Poly1305 {
		return chacha20poly1305.New(key)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
