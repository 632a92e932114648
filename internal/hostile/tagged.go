package hostile

import "github.com/rdmactor/rdmactor/internal/iwarp/wire"

// knows makes an exchange that needs to know the other side's memory.
func knows(name, rule string, w Want, steps ...step) Exchange {
	x := does(name, rule, w, steps...)
	x.Regions = true
	return x
}

// aims makes an exchange against the other side's memory. It sends right, and then wrong.
func aims(name, rule string, w Want, wrong func(r *Regions) []byte, right ...func(r *Regions) []byte) Exchange {
	return knows(name, rule, w, func(p *Peer) {
		for _, make := range right {
			p.good(make(&p.o.Regions))
		}
		p.last(w, wrong(&p.o.Regions))
	})
}

// last sends the ULPDU that an exchange is about. If w is Failed, the ULPDU is recorded as wrong.
// Otherwise a FIN follows.
func (p *Peer) last(w Want, ulpdu []byte) {
	if w.Outcome == Failed {
		p.bad(ulpdu)
		return
	}
	p.good(ulpdu)
	p.fin()
}

// of returns a function for aims that makes a ULPDU without a region.
func of(ulpdu []byte) func(*Regions) []byte { return func(*Regions) []byte { return ulpdu } }

// to returns a function for aims that makes a Write of n bytes, off bytes from the start of a
// region.
func to(pick func(r *Regions) Region, off int64, n int) func(*Regions) []byte {
	return func(r *Regions) []byte {
		g := pick(r)
		return write(g.STag, g.TO+uint64(off), n)
	}
}

func both(r *Regions) Region      { return r.Both }
func readOnly(r *Regions) Region  { return r.ReadOnly }
func writeOnly(r *Regions) Region { return r.WriteOnly }
func local(r *Regions) Region     { return r.Local }
func foreign(r *Regions) Region   { return r.Foreign }
func freed(r *Regions) Region     { return r.Freed }

// other picks a region with another STag.
func other(stag uint32) func(*Regions) Region {
	return func(r *Regions) Region { return Region{stag, r.Both.TO, r.Both.Len} }
}

// key returns a region with another key, which is the low byte of the STag.
func key(r *Regions) Region { return Region{r.Both.STag ^ 1, r.Both.TO, r.Both.Len} }

// end is the offset after the last byte of a region. All regions have the same length.
const end = RegionLen

// RegionLen is the length in bytes that Want assumes for every region of Regions.
const RegionLen = 4096

// takeBack returns a function for aims that makes a Send with invalidate.
func takeBack(op wire.Opcode, msn uint32, pick func(r *Regions) Region) func(*Regions) []byte {
	return func(r *Regions) []byte {
		return seg(wire.Header{Last: true, Opcode: op, STag: pick(r).STag, MSN: msn}, 'x')
	}
}

// started returns a function for aims that makes the first segment of a Write, of n bytes, to the
// start of a region.
func started(n int) func(*Regions) []byte {
	return func(r *Regions) []byte { return writePart(r.Both.STag, r.Both.TO, n) }
}

// from returns a function for aims that makes a Read Request for n bytes, off bytes from the start
// of a region.
func from(pick func(r *Regions) Region, off int64, n uint32) func(*Regions) []byte {
	return func(r *Regions) []byte {
		g := pick(r)
		return readReq(1, wire.ReadRequest{SinkSTag: 7, Size: n, SourceSTag: g.STag, SourceTO: g.TO + uint64(off)})
	}
}

// tagged are exchanges with Writes and invalidations that are wrong, or look wrong.
var tagged = []Exchange{
	aims("Write to STag 0", "RFC 5040 8.2: STag", noSTag, to(other(0), 0, 1)),
	aims("Write to STag 1", "RFC 5040 8.2: STag", noSTag, to(other(1), 0, 1)),
	aims("Write with the wrong key", "RFC 5040 8.2: STag", noSTag, to(key, 0, 1)),
	aims("Write to memory that is freed", "RFC 5040 8.2: STag", noSTag, to(freed, 0, 1)),
	aims("Write to memory that was taken back", "RFC 5040 8.2: STag", noSTag, to(both, 0, 1), takeBack(wire.OpSendInvalidate, 1, both)),
	aims("Write to another protection domain", "RFC 5040 8.2: stream", refusal(ddp, inBuffer, 2, ""), to(foreign, 0, 1)),
	aims("Write to memory for reading", "RFC 5040 8.2: access", noAccess, to(readOnly, 0, 1)),
	aims("Write to memory of its owner's own", "RFC 5040 8.2: access", noAccess, to(local, 0, 1)),
	aims("Write one byte too early", "RFC 5041 8.2: base", noBounds, to(both, -1, 2)),
	aims("Write behind the end", "RFC 5041 8.2: bounds", noBounds, to(both, end, 1)),
	aims("Write over the end", "RFC 5041 8.2: bounds", noBounds, to(both, end-1, 2)),
	aims("Write far too long", "RFC 5041 8.2: bounds", noBounds, to(both, 0, 60000)),
	aims("Write to address 0", "RFC 5041 8.2: base", noBounds, func(r *Regions) []byte { return write(r.Both.STag, 0, 1) }),
	aims("Write over the end of all addresses", "RFC 5041 8.2: wrap", refusal(ddp, inBuffer, 3, ""),
		func(r *Regions) []byte { return write(r.Both.STag, 1<<64-1, 2) }),
	aims("Write with a hole", "RFC 5041 5.2: TO", noBounds, to(both, 9, 1),
		started(8)),
	aims("Write that overlaps itself", "RFC 5041 5.2: TO", noBounds, to(both, 7, 1),
		started(8)),
	aims("Write that changes its STag", "RFC 5041 5.2: STag", noSTag,
		func(r *Regions) []byte { return write(r.WriteOnly.STag, r.Both.TO+8, 1) },
		started(8)),
	aims("Write over the end by its second segment", "RFC 5041 8.2: bounds", noBounds, to(both, end, 1),
		started(end)),
	aims("empty Write to STag 0", "RFC 5040: length 0 checks nothing", orderly, of(write(0, 1<<64-1, 0))),
	aims("empty Write to memory that is freed", "RFC 5040: length 0 checks nothing", orderly, to(freed, 0, 0)),
	aims("empty Write to another protection domain", "RFC 5040: length 0 checks nothing", orderly, to(foreign, -9, 0)),
	aims("Write to all of it", "RFC 5040 5.2: as it should be", orderly, to(both, 0, end)),
	aims("Write to memory for writing", "RFC 5040 5.2: as it should be", orderly, to(writeOnly, end-1, 1)),
	aims("Write in the middle of a Send", "a tagged and an untagged message at a time", orderly,
		of(seg(send(1, 1), 'b')),
		of(seg(part(1, 0), 'a')),
		to(both, 0, 5)),
	aims("invalidate in the middle of a Write to it", "RFC 5040 8.2: STag", noSTag, to(both, 8, 1),
		started(8), takeBack(wire.OpSendInvalidate, 1, both)),
	aims("invalidate what is being read", "RFC 5040 8.2: whatever comes first", anything,
		takeBack(wire.OpSendInvalidate, 1, both), from(both, 0, end)),
	aims("invalidate STag 0", "RFC 5040 8.2: 09", notTaken, takeBack(wire.OpSendInvalidate, 1, other(0))),
	aims("invalidate with the wrong key", "RFC 5040 8.2: 09", notTaken, takeBack(wire.OpSendInvalidate, 1, key)),
	aims("invalidate what is freed", "RFC 5040 8.2: 09", notTaken, takeBack(wire.OpSendSEInvalidate, 1, freed)),
	aims("invalidate another protection domain's", "RFC 5040 8.2: 09", notTaken, takeBack(wire.OpSendSEInvalidate, 1, foreign)),
	aims("invalidate twice", "RFC 5040 8.2: 09", notTaken,
		takeBack(wire.OpSendInvalidate, 2, both), takeBack(wire.OpSendInvalidate, 1, both)),
	aims("invalidate", "RFC 5040 5.3: as it should be", orderly, takeBack(wire.OpSendSEInvalidate, 1, both)),
}
