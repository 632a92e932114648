package secure

import (
	"crypto/cipher"
	"encoding/binary"
)

const (
	// SegmentLen is how many bytes of a large message are sealed at a time.
	SegmentLen = 1 << 20
	// MaxLarge is the longest large message, in bytes: its length travels in four.
	MaxLarge = 1<<32 - 1
)

// LargeLen is how many bytes a large message of n bytes is when sealed: the message, then the tags
// of its segments.
func LargeLen(n int) int { return n + segmentCount(n)*Overhead }

func segmentCount(n int) int { return (n + SegmentLen - 1) / SegmentLen }

// largeSecret makes the key of each large message that one side sends.
type largeSecret struct {
	suite  Suite
	secret []byte
	last   uint64 // the number of the last message that was begun or offered

	forgotten bool
}

func newLargeSecret(s Suite, traffic []byte) (l largeSecret, err error) {
	l.suite = s
	l.secret, err = expandLabel(s.hashFunc(), traffic, "large", nil, s.hashFunc()().Size())
	return l, err
}

// newMessage derives the cipher of the message with that number.
func (l *largeSecret) newMessage(number uint64, b []byte, n int) (m largeMessage, err error) {
	if l.forgotten {
		return m, errForgotten
	}
	var context [8]byte
	binary.BigEndian.PutUint64(context[:], number)
	key, err := expandLabel(l.suite.hashFunc(), l.secret, "message", context[:], l.suite.keyLen())
	if err != nil {
		return m, err
	}
	defer clear(key)
	aead, err := l.suite.newAEAD(key)
	return largeMessage{aead: aead, body: b[:n], tags: b[n:LargeLen(n)]}, err
}

// LargeSealer seals the large messages of this side.
type LargeSealer struct{ largeSecret }

// Begin gives the message its number, which the offer carries. It is sealed into b, which has
// LargeLen bytes for it: in place, if message is the beginning of b, else they must not overlap.
// Then it may be sealed on any goroutine. A number may be left without an offer.
func (l *LargeSealer) Begin(b, message []byte) (*LargeSeal, uint64, error) {
	n := len(message)
	if err := checkFits(b, n); err != nil {
		return nil, 0, err
	}
	m, err := l.newMessage(l.last+1, b, n)
	if err != nil {
		return nil, 0, &ConfigError{What: l.suite.String(), Err: err}
	}
	l.last++
	return &LargeSeal{m, message}, l.last, nil
}

// LargeOpener opens the large messages of the peer.
type LargeOpener struct{ largeSecret }

// Offered takes the number that an offer of the peer's has, as offers come: it is higher than that
// of every earlier one. An error is a *TamperedError.
func (l *LargeOpener) Offered(number uint64) error {
	if number <= l.last {
		return &TamperedError{"an offer of a message that was offered before"}
	}
	l.last = number
	return nil
}

// Begin opens the message that was offered with that number. b has LargeLen(n) bytes, all of which
// were read from the peer.
func (l *LargeOpener) Begin(b []byte, n int, number uint64) (*LargeOpen, error) {
	if err := checkFits(b, n); err != nil {
		return nil, err
	}
	m, err := l.newMessage(number, b, n)
	if err != nil {
		return nil, &ConfigError{What: l.suite.String(), Err: err}
	}
	return &LargeOpen{largeMessage: m}, nil
}

func checkFits(b []byte, n int) error {
	if n < 1 || int64(n) > MaxLarge || len(b) < LargeLen(n) {
		return &ConfigError{What: "memory that is too small for a large message and its tags"}
	}
	return nil
}

// largeMessage is one message, a segment at a time. The tags stand behind all of it, so that it is
// in one piece before and after. The AEADs of Go want each tag behind its segment: it stands there
// while the segment is sealed or opened, and the bytes at that place are kept in aside.
type largeMessage struct {
	aead  cipher.AEAD
	body  []byte
	tags  []byte
	done  int // segments
	nonce [nonceLen]byte
	aside [Overhead]byte
}

// nextSegment returns the next segment with room for its tag, and where that tag is kept.
func (m *largeMessage) nextSegment() (segment, tag []byte) {
	start := m.done * SegmentLen
	end := min(start+SegmentLen, len(m.body))
	all := m.body[:len(m.body)+len(m.tags)]
	tag = m.tags[m.done*Overhead : (m.done+1)*Overhead]
	m.nonce[nonceLen-1] = 0
	if end == len(m.body) {
		m.nonce[nonceLen-1] = 1
	}
	binary.BigEndian.PutUint32(m.nonce[nonceLen-5:], uint32(m.done))
	m.done++
	return all[start:end:min(end+Overhead, len(all))], tag
}

// Ahead is how many bytes the next segment has; 0: there is none.
func (m *largeMessage) Ahead() int { return min(SegmentLen, max(len(m.body)-m.done*SegmentLen, 0)) }

func (m *largeMessage) hasMore() bool { return m.done < segmentCount(len(m.body)) }

// LargeSeal is a large message that is being sealed.
type LargeSeal struct {
	largeMessage
	from []byte
}

// Next seals the next segment and reports whether there are more. It is not called after the last.
func (m *LargeSeal) Next() (more bool) {
	plaintext := m.from[m.done*SegmentLen : min((m.done+1)*SegmentLen, len(m.from))]
	segment, tag := m.nextSegment()
	room := segment[len(segment):cap(segment)]
	copy(m.aside[:], room)
	sealed := m.aead.Seal(segment[:0], m.nonce[:], plaintext, nil)
	made := [Overhead]byte(sealed[len(segment):])
	copy(room, m.aside[:])
	copy(tag, made[:])
	return m.hasMore()
}

// LargeOpen is a large message that is being opened in its memory.
type LargeOpen struct {
	largeMessage
	failed error
}

// Next opens the next segment and reports whether there are more. It is not called after the last.
// Nothing of the message may be used before all of it was opened. After an error, a *TamperedError,
// its memory is zeros.
func (m *LargeOpen) Next() (more bool, err error) {
	if m.failed != nil {
		return false, m.failed
	}
	segment, tag := m.nextSegment()
	room := segment[len(segment):cap(segment)]
	copy(m.aside[:], room)
	copy(room, tag)
	_, err = m.aead.Open(segment[:0], m.nonce[:], segment[:cap(segment)], nil)
	copy(room, m.aside[:])
	if err != nil {
		clear(m.body)
		m.failed = &TamperedError{"a large message"}
		return false, m.failed
	}
	return m.hasMore(), nil
}
