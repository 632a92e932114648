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
	at    int // where the record begins that Begin has begun
	body  int // where its body begins; 0: none has begun
	last  before
	next  before // last, once that record has ended
}

// Reset begins a new frame behind what dst has. It forgets the frame before.
func (w *Writer) Reset(dst []byte) { *w = Writer{buf: dst, start: len(dst)} }

// Grow makes room for so many bytes more.
func (w *Writer) Grow(n int) { w.buf = append(w.buf, make([]byte, n)...)[:len(w.buf)] }

// Bytes returns the caller's slice with the frame appended.
func (w *Writer) Bytes() []byte { return w.buf }

// Len is how many bytes the frame has, without a record that has begun.
func (w *Writer) Len() int { return len(w.buf) - w.start }

// Append adds a record. After an error the frame is as before.
func (w *Writer) Append(r *Record) error {
	dst, err := w.beginRecord(r)
	switch {
	case err != nil:
		return err
	case r.Kind != KindUser:
		return w.endRecord(dst, r)
	}
	return w.End(append(dst, r.Body...), r.Type)
}

// Begin begins a User record whose body and type are not known yet: Body and Type of r are not
// looked at. The caller appends the body to dst and calls End, or Cancel. After an error the frame
// is as before. Until End, dst is the only slice that may be appended to.
func (w *Writer) Begin(r *Record) (dst []byte, err error) {
	if r.Kind != KindUser {
		return nil, w.recordError(r.Kind, "body", ErrMalformed)
	}
	return w.beginRecord(r)
}

// End ends the record that Begin began. dst is what Begin returned, and the body behind it. After
// an error the frame is as before Begin.
func (w *Writer) End(dst []byte, typ string) error {
	body := w.body
	w.body = 0
	switch {
	case body == 0 || len(dst) < body:
		return w.recordError(KindUser, "body", ErrMalformed)
	case len(dst)-body > math.MaxUint32:
		return w.recordError(KindUser, "body", ErrTooLong)
	}
	if err := w.checkType(KindUser, typ); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(dst[body-bodyLenSize:], uint32(len(dst)-body))
	w.commit(w.appendType(dst, typ))
	return nil
}

// Cancel takes back what Begin has begun.
func (w *Writer) Cancel() { w.body = 0 }

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

// beginRecord appends the fields before the body, or before the type.
func (w *Writer) beginRecord(r *Record) (dst []byte, err error) {
	w.body = 0
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
		b = w.appendHeader(b, r.Header)
		b = append(b, 0, 0, 0, 0)
		w.body = len(b)
	}
	return b, nil
}

// endRecord ends a record without a body.
func (w *Writer) endRecord(b []byte, r *Record) error {
	if r.Kind != KindHello && parts[r.Kind]&hasType != 0 {
		b = w.appendType(b, r.Type)
	}
	w.commit(b)
	return nil
}

func (w *Writer) commit(b []byte) { w.buf, w.last = b, w.next }

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
		return w.checkHeader(r)
	}
	if has&hasType != 0 {
		return w.checkType(r.Kind, r.Type)
	}
	return nil
}

func (w *Writer) checkHeader(r *Record) error {
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
