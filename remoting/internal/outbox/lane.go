package outbox

import (
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// FrameBytes is how large a frame gets in which messages are gathered. A larger message gets a
// separate frame.
const FrameBytes = 64 << 10

// Lane is a queue of frames for a peer: those that are full, and one that is being filled. It has
// no mutex: its peer has one.
type Lane struct {
	limit   int     // bytes that may wait
	bytes   int     // queued, or being handed over
	number  uint64  // of the packet that was made last
	packets *uint64 // made so far
	full    ring.Ring[Packet]
	open    Packet // the one that is being filled; zero: it is empty
	w       frame.Writer

	waiters  ring.Ring[waiter]
	reserved int // bytes for those that were let go on and have not put their messages yet
}

// MakeLane makes a lane in which so many bytes may wait.
func MakeLane(limit int) Lane { return Lane{limit: limit, packets: new(uint64)} }

// Bytes is how many bytes wait, or were taken and have not gone.
func (l *Lane) Bytes() int { return l.bytes }

// Number is that of the packet that has the latest record.
func (l *Lane) Number() uint64 { return l.number }

// Room reports whether a record of this size may wait, too, beside those that room is reserved for.
func (l *Lane) Room(size int) bool { return l.bytes+l.reserved+size <= l.limit }

// Append adds a record, for which there must be room.
func (l *Lane) Append(r *frame.Record, size int) error {
	if !l.open.IsZero() && l.w.Len()+size > FrameBytes {
		l.closeFrame()
	}
	if l.open.IsZero() {
		l.number = *l.packets
		*l.packets++
		buf := GetBuffer()
		l.open = Packet{buf: buf, parts: buf.parts[:0], Number: l.number}
		l.w.Reset(l.open.buf.B[:0])
	}
	l.growFor(size)
	before := l.w.Len()
	if err := l.w.Append(r); err != nil {
		if l.open.Records == 0 {
			l.open.Free()
			l.open = Packet{}
		}
		return err
	}
	l.bytes += l.w.Len() - before
	l.open.countRecord(r)
	return nil
}

// growFor makes room for a record: first a little, then for a whole frame. append would leave twice
// as much behind on the way.
func (l *Lane) growFor(size int) {
	switch b := l.w.Bytes(); {
	case cap(b)-len(b) >= size:
	case len(b) == 0:
		l.w.Grow(max(size, littleFrame))
	default:
		l.w.Grow(max(size, FrameBytes-len(b)))
	}
}

// littleFrame is the initial room, enough for most peers.
const littleFrame = 4 << 10

// closeFrame ends the frame that is being filled.
func (l *Lane) closeFrame() {
	l.open.buf.B = l.w.Bytes()
	l.full.Push(l.open)
	l.open = Packet{}
}

// Take takes the next frame. Its bytes count until it has gone.
func (l *Lane) Take() (p Packet, ok bool) {
	if l.full.Len() == 0 {
		if l.open.IsZero() {
			return p, false
		}
		l.closeFrame()
	}
	return l.full.Pop(), true
}

// Back puts a frame back that Take has taken.
func (l *Lane) Back(p Packet) { l.full.PushFront(p) }

// Gone removes a frame that was taken by Take from the count of bytes. It is the caller's to free.
func (l *Lane) Gone(p *Packet) { l.bytes -= len(p.buf.B) }

// Empty reports whether nothing waits, apart from what Take has taken.
func (l *Lane) Empty() bool { return l.full.Len() == 0 && l.open.IsZero() }

// Records is how many records wait, apart from what Take has taken.
func (l *Lane) Records() (n int) {
	n = l.open.Records
	for i := range l.full.Len() {
		n += l.full.At(i).Records
	}
	return n
}

// addNumbers adds the numbers of the waiting packets.
func (l *Lane) addNumbers(to map[uint64]bool) {
	if !l.open.IsZero() {
		to[l.open.Number] = true
	}
	for i := range l.full.Len() {
		to[l.full.At(i).Number] = true
	}
}

// eachRecord calls do for each queued record. It closes the packet that is being filled.
func (l *Lane) eachRecord(do func(*frame.Record)) {
	if !l.open.IsZero() {
		l.closeFrame()
	}
	for i := range l.full.Len() {
		l.full.At(i).Each(do)
	}
}

// eachPacket calls do for each queued packet.
func (l *Lane) eachPacket(do func(*Packet)) {
	if !l.open.IsZero() {
		do(&l.open)
	}
	for i := range l.full.Len() {
		do(l.full.At(i))
	}
}

// Filter drops the records that are not to be kept. A packet keeps its number, and disappears if it
// has no records left.
func (l *Lane) Filter(keep func(*frame.Record) bool) {
	if !l.open.IsZero() {
		l.closeFrame()
	}
	for range l.full.Len() {
		p := l.full.Pop()
		l.bytes -= len(p.Bytes())
		if kept := p.filterRecords(keep); kept.Records > 0 {
			l.bytes += len(kept.Bytes())
			l.full.Push(kept)
		}
	}
}
