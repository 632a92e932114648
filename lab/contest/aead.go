package contest

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/lab/measure"
)

// aeadKeys are the lengths of the keys of AES-GCM, by the entries that only seal and open messages:
// that of PSK mode, and that of TLS mode and crypto/tls.
var aeadKeys = map[string]int{"AES-256-GCM": 32, "AES-128-GCM": 16}

// AEAD seals and opens messages of Size bytes, and sends none. It seals Window of them before it
// opens the first, because messages in flight are in no cache either.
type AEAD struct{ Size, Window int }

// Serve is for Scenario.Serve: it starts no server.
func (AEAD) Serve(measure.Entry) (measure.Service, error) {
	return measure.NewService("", func() error { return nil }), nil
}

// Dial is for Scenario.Dial.
func (a AEAD) Dial(_ string, e measure.Entry) (measure.Client, error) {
	n, ok := aeadKeys[e.Contestant]
	if !ok {
		return nil, fmt.Errorf("%s is no AEAD", e.Contestant)
	}
	block, err := aes.NewCipher(make([]byte, n))
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, sealed := make([][]byte, a.Window), make([][]byte, a.Window)
	for i := range plain {
		plain[i], sealed[i] = NewPayload(a.Size), make([]byte, 0, a.Size+gcm.Overhead())
	}
	nonce := make([]byte, gcm.NonceSize())
	return measure.NewClient(func(d time.Duration) (s measure.Sample, err error) {
		begun := time.Now()
		for time.Since(begun) < d {
			for i, p := range plain {
				sealed[i] = gcm.Seal(sealed[i][:0], nonce, p, nil)
			}
			for i, b := range sealed {
				if _, err := gcm.Open(b[:0], nonce, b, nil); err != nil {
					return s, fmt.Errorf("message %d: %w", i, err)
				}
			}
			s.N += a.Window
		}
		s.Seconds, s.Bytes = time.Since(begun).Seconds(), s.N*a.Size
		return s, nil
	}, func() error { return nil }), nil
}
