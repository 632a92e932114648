package frame

import (
	"encoding/binary"
	"math"

	"golang.org/x/sys/unix"
)

// Reader reads a frame's records.
type Reader struct {
	b     []byte
	at    int
	names *Names
	last  before
	err   error
	kind  Kind // of the record that is read, for errors
}

// NewReader reads the frame b. names may be nil: then each name is a new string.
func NewReader(b []byte, names *Names) Reader { return Reader{b: b, names: names} }

// Next reads a record into r, whose Header's memory it uses again. Not ok: the frame has ended, or
// there is an error, which is an *Error and stays.
func (d *Reader) Next(r *Record) (ok bool, err error) {
	*r = Record{Header: r.Header[:0]}
	if d.err != nil || d.at >= len(d.b) {
		return false, d.err
	}
	if d.err = d.readRecord(r); d.err != nil {
		*r = Record{}
		return false, d.err
	}
	return true, nil
}

func (d *Reader) readRecord(r *Record) (err error) {
	first := d.b[d.at]
	d.kind = Kind(first & kindBits)
	r.Kind, r.Same = d.kind, Same(first)&(SameTarget|SameSender|SameType)
	if r.Kind == KindHello && d.at == 0 && first == byte(KindHello) {
		return d.readHello(r)
	}
	if r.Kind <= KindHello || r.Kind >= kinds {
		return d.recordError("kind", ErrMalformed)
	}
	has := parts[r.Kind]
	if r.Same&^repeatableParts(has) != 0 || first&headerFlag != 0 && has&hasBody == 0 {
		return d.recordError("flags", ErrMalformed)
	}
	d.at++
	if err := d.readAnswer(r, has); err != nil {
		return err
	}
	if has&hasTarget != 0 {
		if err := d.readTarget(r, has); err != nil {
			return err
		}
	}
	if has&hasSender != 0 {
		if err := d.readSender(r, has); err != nil {
			return err
		}
	}
	if has&hasBody != 0 {
		if first&headerFlag != 0 {
			if err := d.readHeader(r); err != nil {
				return err
			}
		}
		if r.Body, err = d.readBody(); err != nil {
			return err
		}
	}
	if has&hasType != 0 {
		return d.readType(r)
	}
	return nil
}

// readAnswer reads the first fields: Seq, Code and Reason.
func (d *Reader) readAnswer(r *Record, has uint16) (err error) {
	if has&hasSeq != 0 {
		if r.Seq, err = d.readNumber("seq", math.MaxUint64); err != nil {
			return err
		}
	}
	if has&hasCode != 0 {
		if d.at >= len(d.b) {
			return d.recordError("code", ErrTruncated)
		}
		r.Code = Code(d.b[d.at])
		d.at++
	}
	if has&hasReason != 0 {
		r.Reason, err = d.readText("reason", MaxReason, nil)
	}
	return err
}

func (d *Reader) readTarget(r *Record, has uint16) (err error) {
	if r.Same&SameTarget == 0 {
		if d.last.target, err = d.readText("target", MaxName, d.names); err != nil {
			return err
		}
		if d.last.request, err = d.readRequest("target"); err != nil {
			return err
		}
	}
	if r.Target, r.TargetRequest = d.last.target, d.last.request; r.Target == "" && has&wantTarget != 0 {
		return d.recordError("target", ErrMalformed)
	}
	return nil
}

func (d *Reader) readSender(r *Record, has uint16) (err error) {
	if s := &d.last.sender; r.Same&SameSender == 0 {
		*s = PID{}
		if s.ID, err = d.readText("sender", MaxName, d.names); err != nil {
			return err
		}
		if s.ID != "" {
			if s.Address, err = d.readText("address", MaxName, d.names); err != nil {
				return err
			}
			if s.Request, err = d.readRequest("sender"); err != nil {
				return err
			}
		}
	}
	if r.Sender = d.last.sender; r.Sender.ID == "" && has&wantSender != 0 {
		return d.recordError("sender", ErrMalformed)
	}
	return nil
}

func (d *Reader) readHeader(r *Record) error {
	if d.at >= len(d.b) {
		return d.recordError("header", ErrTruncated)
	}
	n, left := int(d.b[d.at]), MaxHeader
	d.at++
	switch {
	case n > MaxPairs:
		return d.recordError("header", ErrTooLong)
	case n == 0:
		return d.recordError("header", ErrMalformed)
	}
	for range n {
		key, err := d.readText("header", left, d.names)
		if err != nil {
			return err
		}
		left -= len(key)
		value, err := d.readText("header", left, nil)
		if err != nil {
			return err
		}
		left -= len(value)
		r.Header = append(r.Header, Pair{key, value})
	}
	return nil
}

func (d *Reader) readBody() ([]byte, error) {
	if len(d.b)-d.at < bodyLenSize {
		return nil, d.recordError("body", ErrTruncated)
	}
	n := binary.BigEndian.Uint32(d.b[d.at:])
	if uint64(n) > uint64(len(d.b)-d.at-bodyLenSize) {
		return nil, d.recordError("body", ErrTruncated)
	}
	from := d.at + bodyLenSize
	d.at = from + int(n)
	return d.b[from:d.at:d.at], nil
}

func (d *Reader) readType(r *Record) (err error) {
	if r.Same&SameType == 0 {
		if d.last.typ, err = d.readText("type", MaxType, d.names); err != nil {
			return err
		}
	}
	if r.Type = d.last.typ; r.Type == "" {
		return d.recordError("type", ErrMalformed)
	}
	return nil
}

// readHello reads the fields that all versions have. Behind it a later version may have more.
func (d *Reader) readHello(r *Record) (err error) {
	const fixed = 1 + 2 + 1 + 8 + 4
	if len(d.b) < fixed {
		return d.recordError("hello", ErrTruncated)
	}
	if binary.BigEndian.Uint16(d.b[1:]) != helloMagic || d.b[3] == 0 {
		return d.recordError("hello", ErrMalformed)
	}
	h := &Hello{Version: d.b[3], Incarnation: binary.BigEndian.Uint64(d.b[4:]), MaxMessage: binary.BigEndian.Uint32(d.b[12:])}
	d.at = fixed
	if h.MaxMessage == 0 || h.MaxMessage > MaxMessage {
		return d.recordError("hello", ErrMalformed)
	}
	if h.Name, err = d.readText("name", MaxName, nil); err != nil {
		return err
	}
	if h.Name == "" {
		return d.recordError("name", ErrMalformed)
	}
	if h.Member, err = d.readText("member", MaxName, nil); err != nil {
		return err
	}
	if h.Version > Version {
		d.at = len(d.b)
	}
	if d.at != len(d.b) {
		return d.recordError("hello", ErrMalformed)
	}
	r.Hello = h
	return nil
}

// readText reads a string behind its length.
func (d *Reader) readText(part string, limit int, names *Names) (string, error) {
	n, err := d.readNumber(part, uint64(limit))
	if err != nil {
		return "", err
	}
	if n > uint64(len(d.b)-d.at) {
		return "", d.recordError(part, ErrTruncated)
	}
	s, ok := names.internText(d.b[d.at : d.at+int(n)])
	if !ok {
		return "", d.recordError(part, ErrMalformed)
	}
	d.at += int(n)
	return s, nil
}

func (d *Reader) readRequest(part string) (uint32, error) {
	n, err := d.readNumber(part, math.MaxUint32)
	return uint32(n), err
}

// readNumber reads a number that may be as large as limit.
func (d *Reader) readNumber(part string, limit uint64) (uint64, error) {
	if d.at < len(d.b) && d.b[d.at] < 0x80 && uint64(d.b[d.at]) <= limit { // most are
		d.at++
		return uint64(d.b[d.at-1]), nil
	}
	n, used := binary.Uvarint(d.b[d.at:])
	switch {
	case used == 0:
		return 0, d.recordError(part, ErrTruncated)
	case used < 0:
		return 0, d.recordError(part, ErrMalformed)
	case n > limit:
		return 0, d.recordError(part, ErrTooLong)
	}
	d.at += used
	return n, nil
}

func (d *Reader) recordError(part string, cause error) error {
	return &Error{Kind: d.kind, Part: part, Offset: d.at, Cause: cause, Errno: unix.EPROTO}
}
