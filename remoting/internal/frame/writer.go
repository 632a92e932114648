package frame

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	helloMagic  = 0x7EDD
	bodyLenSize = 4
)

// Writer writes frames. The zero value is ready for use, with a private buffer.
type Writer struct {
	buf   []byte
	start int // where the frame begins
	at    int // where the record that is being appended begins
	last  before
	next  before // last, once that record has ended
}

// Reset begins a new frame behind what dst has. It forgets the frame before.
func (w *Writer) Reset(dst []byte) { *w = Writer{buf: dst, start: len(dst)} }

// Grow makes room for so many bytes more.
func (w *Writer) Grow(n int) { w.buf = append(w.buf, make([]byte, n)...)[:len(w.buf)] }

// Bytes returns the caller's slice with the frame appended.
func (w *Writer) Bytes() []byte { return w.buf }

// Len is how many bytes the frame has.
func (w *Writer) Len() int { return len(w.buf) - w.start }

// Append adds a record. After an error the frame is as before.
func (w *Writer) Append(r *Record) error {
	b, err := w.appendRecord(r)
	if err == nil {
		w.buf, w.last = b, w.next
	}
	return err
}

// Size is how many bytes Append adds to a frame for this record at most.
func (r *Record) Size() int {
	const number = binary.MaxVarintLen64
	n := 32 + 4*number + len(r.Target) + len(r.Sender.Address) + len(r.Sender.ID) + len(r.Type) + len(r.Body) + min(len(r.Reason), MaxReason)
	for _, p := range r.Header {
		n += number + len(p.Key) + len(p.Value)
	}
	if r.Hello != nil {
		n += len(r.Hello.Name) + len(r.Hello.Member)
	}
	return n
}

// appendRecord appends r to the frame's bytes, which stay as they are, as does the record before.
func (w *Writer) appendRecord(r *Record) (dst []byte, err error) {
	if r.Kind == KindHello {
		return w.appendHello(r)
	}
	if r.Kind == 0 || r.Kind >= kinds {
		return nil, w.recordError(r.Kind, "kind", ErrMalformed)
	}
	w.at, w.next = len(w.buf), w.last
	has := parts[r.Kind]
	if err := w.checkRecord(r, has); err != nil {
		return nil, err
	}
	b := append(w.buf, byte(r.Kind))
	if has&hasSeq != 0 {
		b = binary.AppendUvarint(b, r.Seq)
	}
	if has&hasCode != 0 {
		b = append(b, byte(r.Code))
	}
	if has&hasReason != 0 {
		b = appendText(b, truncateText(strings.ToValidUTF8(r.Reason, "?"), MaxReason))
	}
	if has&hasTarget != 0 {
		b = w.appendTarget(b, r)
	}
	if has&hasSender != 0 {
		b = w.appendSender(b, r)
	}
	if has&hasBody != 0 {
		b = binary.BigEndian.AppendUint32(w.appendHeader(b, r.Header), uint32(len(r.Body)))
		b = append(b, r.Body...)
	}
	if has&hasType != 0 {
		b = w.appendType(b, r.Type)
	}
	return b, nil
}

func (w *Writer) appendTarget(b []byte, r *Record) []byte {
	if r.Target == w.last.target && r.TargetRequest == w.last.request {
		b[w.at] |= byte(SameTarget)
		return b
	}
	w.next.target, w.next.request = r.Target, r.TargetRequest
	return binary.AppendUvarint(appendText(b, r.Target), uint64(r.TargetRequest))
}

func (w *Writer) appendSender(b []byte, r *Record) []byte {
	s := r.Sender
	if s.ID == "" {
		s = PID{}
	}
	if s == w.last.sender {
		b[w.at] |= byte(SameSender)
		return b
	}
	w.next.sender = s
	if b = appendText(b, s.ID); s.ID == "" {
		return b
	}
	return binary.AppendUvarint(appendText(b, s.Address), uint64(s.Request))
}

func (w *Writer) appendHeader(b []byte, pairs []Pair) []byte {
	if len(pairs) == 0 {
		return b
	}
	b[w.at] |= headerFlag
	b = append(b, byte(len(pairs)))
	for _, p := range pairs {
		b = appendText(appendText(b, p.Key), p.Value)
	}
	return b
}

func (w *Writer) appendType(b []byte, typ string) []byte {
	if typ == w.last.typ {
		b[w.at] |= byte(SameType)
		return b
	}
	w.next.typ = typ
	return appendText(b, typ)
}

func (w *Writer) appendHello(r *Record) ([]byte, error) {
	h := r.Hello
	switch {
	case h == nil || len(w.buf) != w.start || h.MaxMessage == 0 || h.MaxMessage > MaxMessage:
		return nil, w.recordError(KindHello, "hello", ErrMalformed)
	case h.Name == "":
		return nil, w.recordError(KindHello, "name", ErrMalformed)
	}
	if err := w.checkText(KindHello, "name", h.Name, MaxName); err != nil {
		return nil, err
	}
	if err := w.checkText(KindHello, "member", h.Member, MaxName); err != nil {
		return nil, err
	}
	b := append(w.buf, byte(KindHello))
	b = binary.BigEndian.AppendUint16(b, helloMagic)
	b = append(b, Version)
	b = binary.BigEndian.AppendUint64(b, h.Incarnation)
	b = binary.BigEndian.AppendUint32(b, h.MaxMessage)
	return appendText(appendText(b, h.Name), h.Member), nil
}

// checkRecord refuses records that a Reader would refuse. Fields that repeat the record before were
// checked there.
func (w *Writer) checkRecord(r *Record, has uint16) error {
	if has&wantTarget != 0 && r.Target == "" {
		return w.recordError(r.Kind, "target", ErrMalformed)
	}
	if has&wantSender != 0 && r.Sender.ID == "" {
		return w.recordError(r.Kind, "sender", ErrMalformed)
	}
	if has&hasTarget != 0 && r.Target != w.last.target {
		if err := w.checkText(r.Kind, "target", r.Target, MaxName); err != nil {
			return err
		}
	}
	if has&hasSender != 0 && r.Sender.ID != "" && r.Sender != w.last.sender {
		if err := w.checkText(r.Kind, "sender", r.Sender.ID, MaxName); err != nil {
			return err
		}
		if err := w.checkText(r.Kind, "address", r.Sender.Address, MaxName); err != nil {
			return err
		}
	}
	if has&hasBody != 0 {
		if err := w.checkHeader(r); err != nil {
			return err
		}
	}
	if has&hasType != 0 {
		return w.checkType(r.Kind, r.Type)
	}
	return nil
}

func (w *Writer) checkHeader(r *Record) error {
	if len(r.Body) > math.MaxUint32 {
		return w.recordError(r.Kind, "body", ErrTooLong)
	}
	if len(r.Header) > MaxPairs {
		return w.recordError(r.Kind, "header", ErrTooLong)
	}
	left := MaxHeader
	for _, p := range r.Header {
		if left -= len(p.Key) + len(p.Value); left < 0 {
			return w.recordError(r.Kind, "header", ErrTooLong)
		}
		if !utf8.ValidString(p.Key) || !utf8.ValidString(p.Value) {
			return w.recordError(r.Kind, "header", ErrMalformed)
		}
	}
	return nil
}

func (w *Writer) checkType(k Kind, typ string) error {
	switch typ {
	case "":
		return w.recordError(k, "type", ErrMalformed)
	case w.last.typ:
		return nil
	}
	return w.checkText(k, "type", typ, MaxType)
}

func (w *Writer) checkText(k Kind, part, s string, limit int) error {
	switch {
	case len(s) > limit:
		return w.recordError(k, part, ErrTooLong)
	case !utf8.ValidString(s):
		return w.recordError(k, part, ErrMalformed)
	}
	return nil
}

func (w *Writer) recordError(k Kind, part string, cause error) error {
	return &Error{Kind: k, Part: part, Offset: w.Len(), Cause: cause, Errno: unix.EINVAL}
}

// appendText appends a string behind its length.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// truncateText shortens a string to a limit, without splitting a character.
func truncateText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
