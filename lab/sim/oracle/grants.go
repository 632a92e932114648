package oracle

import (
	"bytes"
	"time"
)

// Grants judges granted memory: its bytes change only by actions of its owner and its peer, and a
// peer reads only bytes that were there. The zero value, with Fail set, is empty. A memory has one
// peer, so Writes to it keep their order.
type Grants struct {
	Fail Fail
}

// Memory is memory that its owner may grant to its peer.
type Memory struct {
	l       *Grants
	name    string
	base    []byte   // its certain content
	over    []*Write // the peer's Writes that may or may not have arrived, in order
	reads   []*Read  // unanswered Reads
	granted bool
	closed  bool // to Writes
}

// Write is a Write of a peer.
type Write struct {
	m    *Memory
	off  int
	data []byte
	dead bool // refused, or to memory that was not granted: it must not arrive
}

// Read is a Read of a peer.
type Read struct {
	m       *Memory
	off     int
	allowed [][]byte // possible contents of the spans in where
	where   []span
	n       int
}

// span is a part of a Read's bytes.
type span struct{ from, to int }

// Memory enters n bytes of memory, all of them 0.
func (l *Grants) Memory(name string, n int) *Memory {
	return &Memory{l: l, name: name, base: make([]byte, n)}
}

// ReadOnly enters that the peer may never write.
func (m *Memory) ReadOnly() { m.closed = true }

// Grant enters that the peer may use it from now on.
func (m *Memory) Grant() { m.granted = true }

// Revoke enters that the peer may no longer use it, because the grant was revoked or the memory
// freed. Earlier Writes may have arrived.
func (m *Memory) Revoke() { m.granted = false }

// Write enters that the peer is about to write. A Write that Grant does not allow must not arrive.
func (m *Memory) Write(off int, p []byte) *Write {
	w := &Write{m: m, off: off, data: bytes.Clone(p), dead: !m.granted || m.closed || off < 0 || off+len(p) > len(m.base)}
	if !w.dead {
		m.over = append(m.over, w)
		for _, r := range m.reads {
			r.allowBytes(off, p)
		}
	}
	return w
}

// Refused enters that a Write was refused on its own side: it must not arrive.
func (w *Write) Refused() {
	w.dead = true
	for i, o := range w.m.over {
		if o == w {
			w.m.over = append(w.m.over[:i:i], w.m.over[i+1:]...)
			return
		}
	}
}

// Arrived enters the receipt of a message which the peer sent after the Write. The Write, and all
// earlier ones, are there.
func (w *Write) Arrived() {
	for i, o := range w.m.over {
		if o != w {
			continue
		}
		for _, o := range w.m.over[:i+1] {
			o.applyTo(w.m.base)
		}
		w.m.over = w.m.over[i+1:]
		return
	}
}

func (w *Write) applyTo(to []byte) { copy(to[w.off:], w.data) }

// coveredByte returns the Write's byte for a place, if there is one.
func (w *Write) coveredByte(at int) (b byte, ok bool) {
	if at < w.off || at >= w.off+len(w.data) {
		return 0, false
	}
	return w.data[at-w.off], true
}

// Look enters the memory's bytes as its owner sees them. Each must be its known value, or that of a
// Write that may have arrived. If the memory is not granted they no longer change.
func (m *Memory) Look(now time.Duration, p []byte) {
	if len(p) != len(m.base) {
		m.l.Fail("%v: %s has %d bytes, want %d", now, m.name, len(p), len(m.base))
		return
	}
	for i, b := range p {
		if !m.mayHold(i, b) {
			m.l.Fail("%v: %s: byte %d is %#02x, was %#02x, and nobody has written that", now, m.name, i, b, m.base[i])
			break
		}
	}
	if !m.granted {
		m.base, m.over = bytes.Clone(p), nil
	}
}

func (m *Memory) mayHold(at int, b byte) bool {
	if m.base[at] == b {
		return true
	}
	for _, w := range m.over {
		if c, ok := w.coveredByte(at); ok && c == b {
			return true
		}
	}
	return false
}

// Read enters that the peer is about to read n bytes.
func (m *Memory) Read(off, n int) *Read {
	r := &Read{m: m, off: off, n: n}
	if off < 0 || off+n > len(m.base) || !m.granted {
		r.n = -1 // it must not be answered
		return r
	}
	r.allowBytes(off, m.base[off:off+n])
	for _, w := range m.over {
		r.allowBytes(w.off, w.data)
	}
	m.reads = append(m.reads, r)
	return r
}

// allowBytes adds possible bytes at an offset of the memory.
func (r *Read) allowBytes(off int, p []byte) {
	from, to := max(off, r.off), min(off+len(p), r.off+r.n)
	if from < to {
		r.where = append(r.where, span{from - r.off, to - r.off})
		r.allowed = append(r.allowed, bytes.Clone(p[from-off:to-off]))
	}
}

// Done enters the bytes that the Read returned. Each byte must have been there at some time since
// the Read was requested.
func (r *Read) Done(now time.Duration, p []byte) {
	r.leaveMemory()
	switch {
	case r.n < 0:
		r.m.l.Fail("%v: %s: %d bytes at %d were read, which is not granted", now, r.m.name, len(p), r.off)
		return
	case len(p) != r.n:
		r.m.l.Fail("%v: %s: %d bytes were read, want %d", now, r.m.name, len(p), r.n)
		return
	}
	for i, b := range p {
		if !r.mayReturn(i, b) {
			r.m.l.Fail("%v: %s: byte %d is read as %#02x, which it never was since the Read was asked", now, r.m.name, r.off+i, b)
			return
		}
	}
}

func (r *Read) mayReturn(at int, b byte) bool {
	for i, s := range r.where {
		if at >= s.from && at < s.to && r.allowed[i][at-s.from] == b {
			return true
		}
	}
	return false
}

// Failed enters that the Read was not answered with bytes.
func (r *Read) Failed() { r.leaveMemory() }

func (r *Read) leaveMemory() {
	for i, o := range r.m.reads {
		if o == r {
			r.m.reads = append(r.m.reads[:i:i], r.m.reads[i+1:]...)
			return
		}
	}
}
