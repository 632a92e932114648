package oracle

import (
	"slices"
	"time"
)

// Pipes judges streams of bytes: each direction's bytes are read as they were written, all of them
// before the end. The zero value, with Fail set, is empty.
type Pipes struct {
	Fail Fail

	pipes int
}

// Pipe is one direction of a stream.
type Pipe struct {
	l    *Pipes
	id   uint64
	name string

	writers []*Writer
	at      *Piece // piece that is being read; nil: the next byte begins another one
	read    int    // bytes of at
	unclear []byte // bytes that were read, and may belong to several pieces
	closed  bool   // the writing side has ended it in order
	ended   bool   // the end was read
	total   int    // bytes that were read
}

// Writer is a goroutine that writes. Its pieces keep their order.
type Writer struct {
	p      *Pipe
	n      int
	pieces []*Piece
	next   int // first of pieces that was not read completely
}

// Piece is the data of one Write.
type Piece struct {
	w       *Writer
	number  uint64
	length  int
	written bool // the Write has returned
}

// MinPiece is the minimum length of a piece if several goroutines write: it identifies the piece.
const MinPiece = 8

// pipes is the base of the directions of Fill.
const pipes = 1 << 51

// Pipe enters a direction.
func (l *Pipes) Pipe(name string) *Pipe {
	l.pipes++
	return &Pipe{l: l, id: uint64(pipes + l.pipes), name: name}
}

// Writer enters a goroutine that writes.
func (p *Pipe) Writer() *Writer {
	w := &Writer{p: p, n: len(p.writers)}
	p.writers = append(p.writers, w)
	return w
}

// Writing enters that n bytes are about to be written, and returns them.
func (w *Writer) Writing(n int) (*Piece, []byte) {
	x := &Piece{w: w, number: uint64(w.n)<<20 | uint64(len(w.pieces)), length: n}
	w.pieces = append(w.pieces, x)
	b := make([]byte, n)
	Fill(b, w.p.id, x.number)
	return x, b
}

// Written enters that n bytes of the piece were taken, and that no more will be.
func (x *Piece) Written(now time.Duration, n int) {
	p := x.w.p
	if n > x.length || p.at == x && p.read > n {
		p.l.Fail("%v: %s: a Write has taken %d of %d bytes, and %d of them were read", now, p.name, n, x.length, p.read)
	}
	x.length, x.written = n, true
	p.advancePiece()
}

// advancePiece moves on from a piece that was read completely.
func (p *Pipe) advancePiece() {
	if x := p.at; x != nil && p.read == x.length && x.written {
		x.w.next++
		p.at, p.read = nil, 0
	}
}

// Close enters that the writing side ends the direction in order, after all written bytes.
func (p *Pipe) Close() { p.closed = true }

// Taken returns how many bytes were written. Not all: a Write has not returned.
func (p *Pipe) Taken() (n int, all bool) {
	all = true
	for _, w := range p.writers {
		for _, x := range w.pieces {
			if x.written {
				n += x.length
			}
			all = all && x.written
		}
	}
	return n, all
}

// Read enters bytes that were read.
func (p *Pipe) Read(now time.Duration, b []byte) {
	if p.ended && len(b) > 0 {
		p.l.Fail("%v: %s: %d bytes are read behind its end", now, p.name, len(b))
	}
	p.total += len(b)
	b = append(p.unclear, b...)
	p.unclear = nil
	for len(b) > 0 {
		if p.at == nil && !p.choosePiece(now, b) {
			return
		}
		x := p.at
		n := min(len(b), x.length-p.read)
		for i, c := range b[:n] {
			if c != byteAt(p.id, x.number, p.read+i) {
				p.l.Fail("%v: %s: byte %d of the stream is wrong: byte %d of a piece of %d", now, p.name, p.total-len(b)+i, p.read+i, x.length)
				return
			}
		}
		p.read += n
		b = b[n:]
		if p.read < x.length {
			continue
		}
		if !x.written && len(b) > 0 { // the Write is about to return
			x.written = true
		}
		p.advancePiece()
		if p.at != nil && len(b) > 0 {
			p.l.Fail("%v: %s: %d bytes are read beyond what was written", now, p.name, len(b))
			return
		}
	}
}

// choosePiece finds the piece that begins with b. Not ok: there is none, or it is not known yet.
func (p *Pipe) choosePiece(now time.Duration, b []byte) (ok bool) {
	var may []*Piece
	for _, w := range p.writers {
		for w.next < len(w.pieces) && w.pieces[w.next].written && w.pieces[w.next].length == 0 {
			w.next++
		}
		if w.next == len(w.pieces) {
			continue
		}
		if x := w.pieces[w.next]; canBegin(b, p.id, x) {
			may = append(may, x)
		}
	}
	switch {
	case len(may) == 1:
		p.at = may[0]
		return true
	case len(may) > 1 && len(b) < MinPiece:
		p.unclear = slices.Clone(b)
		return false
	}
	p.l.Fail("%v: %s: byte %d of the stream is one that nobody has written there", now, p.name, p.total-len(b))
	return false
}

// canBegin reports whether b can be the piece's first bytes.
func canBegin(b []byte, id uint64, x *Piece) bool {
	for i := range min(len(b), MinPiece, x.length) {
		if b[i] != byteAt(id, x.number, i) {
			return false
		}
	}
	return true
}

// EOF enters that the end was read.
func (p *Pipe) EOF(now time.Duration) {
	p.ended = true
	if !p.closed {
		p.l.Fail("%v: %s: its end is read, and the writing side has not ended it", now, p.name)
	}
}

// Ended reports whether its end was read.
func (p *Pipe) Ended() bool { return p.ended }

// End judges the end of the world. If the end was read, all bytes must be, unless a writer's
// process was killed while it wrote.
func (p *Pipe) End(now time.Duration) {
	if taken, all := p.Taken(); p.ended && all && taken != p.total {
		p.l.Fail("%v: %s: its end is read after %d bytes, and %d were written", now, p.name, p.total, taken)
	}
}
