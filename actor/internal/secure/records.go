package secure

import (
	"crypto/cipher"
	"encoding/binary"
)

// How much one key seals. From the first pair on the key should be changed; the second pair, the
// limit at which the peer stops opening, leaves room for the records under way by then.
const (
	UpdateRecords = 1 << 22
	UpdateBytes   = 32 << 30
	maxRecords    = 2 * UpdateRecords
	maxBytes      = 2 * UpdateBytes
	// A peer that changes its key more often than this wants to keep us busy.
	minRecords = 1 << 10
)

// direction is one side's records, in their order: the key, and the number of the next one.
type direction struct {
	suite   Suite
	secret  []byte
	aead    cipher.AEAD
	iv      [nonceLen]byte
	nonce   [nonceLen]byte // of the last record: here, so that none is allocated
	records uint64         // under this key
	bytes   uint64         // without tags
}

func newDirection(s Suite, secret []byte) (d direction, err error) {
	d = direction{suite: s, secret: append([]byte(nil), secret...)}
	d.aead, d.iv, err = deriveAEAD(s, d.secret)
	return d, err
}

// nextNonce returns the nonce of the next record, which has n bytes without its tag.
func (d *direction) nextNonce(n int) ([]byte, error) {
	if d.records >= maxRecords || d.bytes+uint64(n) > maxBytes {
		return nil, &LimitError{"a key was not changed in time"}
	}
	d.nonce = d.iv
	// of the iv, not of the nonce: a processor stalls on reading bytes that were just written in
	// other pieces
	number := binary.BigEndian.Uint64(d.iv[nonceLen-8:]) ^ d.records
	binary.BigEndian.PutUint64(d.nonce[nonceLen-8:], number)
	d.records++
	d.bytes += uint64(n)
	return d.nonce[:], nil
}

// updateKey goes on with the key after this one, and numbers records from 0 again.
func (d *direction) updateKey() (err error) {
	if err := updateSecret(d.suite, d.secret); err != nil {
		return err
	}
	d.records, d.bytes = 0, 0
	d.aead, d.iv, err = deriveAEAD(d.suite, d.secret)
	return err
}

// forget overwrites the secrets behind the keys.
func (d *direction) forget() {
	clear(d.secret)
	clear(d.iv[:])
	clear(d.nonce[:])
	d.aead = nil
}

// Sealer seals the messages of this side, record by record.
type Sealer struct {
	direction
	failed error
}

// NewSealer seals with a traffic secret, which it copies.
func NewSealer(s Suite, secret []byte) (*Sealer, error) {
	d, err := newDirection(s, secret)
	if err != nil {
		return nil, &ConfigError{What: s.String(), Err: err}
	}
	return &Sealer{direction: d}, nil
}

// Seal appends the sealed plaintext to dst, Overhead bytes more than plaintext. To seal in place,
// dst is plaintext[:0] with so much room; otherwise they must not overlap. After an error nothing
// more is sealed: a number is never used twice.
func (s *Sealer) Seal(dst, plaintext []byte) ([]byte, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	nonce, err := s.nextNonce(len(plaintext))
	if err != nil {
		s.failed = err
		return nil, err
	}
	return s.aead.Seal(dst, nonce, plaintext, nil), nil
}

// UpdateDue reports whether the key should be changed: seal the message that announces it, then
// Update.
func (s *Sealer) UpdateDue() bool { return s.records >= UpdateRecords || s.bytes >= UpdateBytes }

// Update changes the key. The peer must have been informed by the record sealed last.
func (s *Sealer) Update() error {
	if s.failed == nil {
		s.failed = s.updateKey()
	}
	return s.failed
}

// Forget overwrites the secrets. Nothing is sealed after it.
func (s *Sealer) Forget() {
	s.forget()
	s.failed = errForgotten
}

// Opener opens the messages of the peer, record by record.
type Opener struct {
	direction
	failed error
}

// NewOpener opens records that were sealed with a traffic secret, which it copies.
func NewOpener(s Suite, secret []byte) (*Opener, error) {
	d, err := newDirection(s, secret)
	if err != nil {
		return nil, &ConfigError{What: s.String(), Err: err}
	}
	return &Opener{direction: d}, nil
}

// Open appends the plaintext to dst. To open in place, dst is sealed[:0]; otherwise they must not
// overlap. An error is a *TamperedError or a *LimitError, and the same from then on.
func (o *Opener) Open(dst, sealed []byte) ([]byte, error) {
	if o.failed != nil {
		return nil, o.failed
	}
	if len(sealed) < Overhead {
		o.failed = &TamperedError{"a message that is shorter than its tag"}
		return nil, o.failed
	}
	nonce, err := o.nextNonce(len(sealed) - Overhead)
	if err != nil {
		o.failed = err
		return nil, err
	}
	plaintext, err := o.aead.Open(dst, nonce, sealed, nil)
	if err != nil {
		o.failed = &TamperedError{"a message"}
		return nil, o.failed
	}
	return plaintext, nil
}

// Update follows the peer, which has changed its key behind the record opened last. A peer that
// does so all the time is refused.
func (o *Opener) Update() error {
	if o.failed != nil {
		return o.failed
	}
	if o.records < minRecords {
		o.failed = &LimitError{"the peer changes its key too often"}
		return o.failed
	}
	o.failed = o.updateKey()
	return o.failed
}

// Forget overwrites the secrets. Nothing is opened after it.
func (o *Opener) Forget() {
	o.forget()
	o.failed = errForgotten
}

var errForgotten = &ConfigError{What: "the keys were overwritten"}
