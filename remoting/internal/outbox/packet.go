package outbox

import (
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Packet is a frame on its way out. Zero: it is none.
type Packet struct {
	buf     *Buffer
	parts   []part // of a Queue's common lane: the bytes of each target
	lane    *own   // of a Queue; nil: common
	Records int
	Upkeep  int    // of these, those that IsUpkeep
	Number  uint64 // within its lane, counted from 0
	System  bool   // for owners of several lanes
}

// part is how many bytes of a packet are for a target.
type part struct {
	target string
	bytes  int
}

// IsZero reports whether it is none.
func (p *Packet) IsZero() bool { return p.buf == nil }

// Bytes is the frame, until Free.
func (p *Packet) Bytes() []byte { return p.buf.B }

// Free gives up its memory.
func (p *Packet) Free() {
	if p.parts != nil {
		clear(p.parts)
		p.buf.parts = p.parts[:0]
	}
	p.buf.Put()
}

// filterRecords copies the records that are to be kept. The packet is given up.
func (p *Packet) filterRecords(keep func(*frame.Record) bool) (kept Packet) {
	kept = Packet{buf: GetBuffer(), lane: p.lane, Number: p.Number, System: p.System}
	var w frame.Writer
	w.Reset(kept.buf.B[:0])
	p.Each(func(r *frame.Record) {
		if keep(r) && w.Append(r) == nil {
			kept.countRecord(r)
		}
	})
	kept.buf.B = w.Bytes()
	p.Free()
	if kept.Records == 0 {
		kept.Free()
	}
	return kept
}

// countRecord counts a record that was appended.
func (p *Packet) countRecord(r *frame.Record) {
	p.Records++
	if IsUpkeep(r.Type) {
		p.Upkeep++
	}
}

// Each calls do for each record.
func (p *Packet) Each(do func(*frame.Record)) {
	d := frame.NewReader(p.Bytes(), nil)
	var r frame.Record
	for {
		if ok, err := d.Next(&r); !ok || err != nil {
			return
		}
		do(&r)
	}
}
