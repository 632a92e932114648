package remoting

import (
	"sync"

	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// lane is what waits for a peer, in frames: those that are full, and one that is being filled. It
// belongs to its peer's mutex.
type lane struct {
	limit  int // bytes that may wait
	bytes  int // that wait, or are being handed over
	number uint64
	full   ring.Ring[packet]
	open   packet // the one that is being filled; its buf is nil: it is empty
	w      frame.Writer
}

// packet is a frame on its way out.
type packet struct {
	buf     *buffer
	records int
	number  uint64 // within its lane, counted from 0
	system  bool
}

func (p *packet) bytes() []byte { return p.buf.b }

// room reports whether a record of this size may wait, too.
func (l *lane) room(size int) bool { return l.bytes+size <= l.limit }

// append adds a record, for which there must be room.
func (l *lane) append(r *frame.Record, size int) error {
	if l.open.buf != nil && l.w.Len()+size > frameBytes {
		l.close()
	}
	if l.open.buf == nil {
		l.open = packet{buf: getBuffer(), number: l.number}
		l.w.Reset(l.open.buf.b[:0])
	}
	l.grow(size)
	before := l.w.Len()
	if err := l.w.Append(r); err != nil {
		if l.open.records == 0 {
			l.open.buf.put()
			l.open = packet{}
		}
		return err
	}
	l.bytes += l.w.Len() - before
	l.open.records++
	return nil
}

// grow makes room for a record: first a little, and then at once for a whole frame. append would
// leave twice as much behind on the way.
func (l *lane) grow(size int) {
	switch b := l.w.Bytes(); {
	case cap(b)-len(b) >= size:
	case len(b) == 0:
		l.w.Grow(max(size, littleFrame))
	default:
		l.w.Grow(max(size, frameBytes-len(b)))
	}
}

// littleFrame is room for what most peers are sent at once.
const littleFrame = 4 << 10

// close ends the frame that is being filled.
func (l *lane) close() {
	l.open.buf.b = l.w.Bytes()
	l.full.Push(l.open)
	l.open = packet{}
	l.number++
}

// take takes the next frame. Its bytes count until it has gone.
func (l *lane) take() (p packet, ok bool) {
	if l.full.Len() == 0 {
		if l.open.buf == nil {
			return p, false
		}
		l.close()
	}
	return l.full.Pop(), true
}

// back puts a frame back that take has taken.
func (l *lane) back(p packet) { l.full.PushFront(p) }

// gone says that a frame does not wait any more, and gives its memory up.
func (l *lane) gone(p packet) {
	l.bytes -= len(p.buf.b)
	p.buf.put()
}

// empty reports whether nothing waits, apart from what take has taken.
func (l *lane) empty() bool { return l.full.Len() == 0 && l.open.buf == nil }

// buffer is memory for a frame, or for a message that is being encoded.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func getBuffer() *buffer { return buffers.Get().(*buffer) }

// put gives the buffer back. What is large is not kept.
func (b *buffer) put() {
	if cap(b.b) > 2*frameBytes {
		b.b = nil
	}
	b.b = b.b[:0]
	buffers.Put(b)
}

// records is how many records wait, apart from what take has taken.
func (l *lane) records() (n int) {
	n = l.open.records
	for i := range l.full.Len() {
		n += l.full.At(i).records
	}
	return n
}

// filter drops the records that are not to be kept. A packet keeps its number, and is none any more
// if it has no records left.
func (l *lane) filter(keep func(*frame.Record) bool) {
	if l.open.buf != nil {
		l.close()
	}
	for range l.full.Len() {
		p := l.full.Pop()
		l.bytes -= len(p.bytes())
		if kept := p.filter(keep); kept.records > 0 {
			l.bytes += len(kept.bytes())
			l.full.Push(kept)
		}
	}
}

// filter copies the records that are to be kept. The packet is given up.
func (p *packet) filter(keep func(*frame.Record) bool) (kept packet) {
	kept = packet{buf: getBuffer(), number: p.number, system: p.system}
	var w frame.Writer
	w.Reset(kept.buf.b[:0])
	eachRecord(p.bytes(), func(r *frame.Record) {
		if keep(r) && w.Append(r) == nil {
			kept.records++
		}
	})
	kept.buf.b = w.Bytes()
	p.buf.put()
	if kept.records == 0 {
		kept.buf.put()
	}
	return kept
}

// eachRecord calls do for each record of a frame of our own.
func eachRecord(b []byte, do func(*frame.Record)) {
	d := frame.NewReader(b, nil)
	var r frame.Record
	for {
		if ok, err := d.Next(&r); !ok || err != nil {
			return
		}
		do(&r)
	}
}
