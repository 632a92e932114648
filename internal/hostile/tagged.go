package hostile

import "github.com/rdmactor/rdmactor/internal/iwarp/wire"

// knowingExchange makes an exchange that needs to know the other side's memory.
func knowingExchange(name, rule string, w Want, steps ...step) Exchange {
	x := newExchange(name, rule, w, steps...)
	x.Regions = true
	return x
}

// aimedExchange makes an exchange against the other side's memory. It sends right, and then wrong.
func aimedExchange(name, rule string, w Want, wrong func(r *Regions) []byte, right ...func(r *Regions) []byte) Exchange {
	return knowingExchange(name, rule, w, func(p *Peer) {
		for _, make := range right {
			p.sendGood(make(&p.o.Regions))
		}
		p.sendLast(w, wrong(&p.o.Regions))
	})
}

// sendLast sends the ULPDU that an exchange is about. If w is Failed, the ULPDU is recorded as
// wrong. Otherwise a FIN follows.
func (p *Peer) sendLast(w Want, ulpdu []byte) {
	if w.Outcome == Failed {
		p.sendBad(ulpdu)
		return
	}
	p.sendGood(ulpdu)
	p.sendFIN()
}

// fixedULPDU returns a function for aimedExchange that makes a ULPDU without a region.
func fixedULPDU(ulpdu []byte) func(*Regions) []byte { return func(*Regions) []byte { return ulpdu } }

// writeToRegion returns a function for aimedExchange that makes a Write of n bytes, off bytes into
// a region.
func writeToRegion(pick func(r *Regions) Region, off int64, n int) func(*Regions) []byte {
	return func(r *Regions) []byte {
		g := pick(r)
		return writeULPDU(g.STag, g.TO+uint64(off), n)
	}
}

func bothRegion(r *Regions) Region    { return r.Both }
func readOnly(r *Regions) Region      { return r.ReadOnly }
func writeOnly(r *Regions) Region     { return r.WriteOnly }
func localRegion(r *Regions) Region   { return r.Local }
func foreignRegion(r *Regions) Region { return r.Foreign }
func freedRegion(r *Regions) Region   { return r.Freed }

// withSTag picks a region with another STag.
func withSTag(stag uint32) func(*Regions) Region {
	return func(r *Regions) Region { return Region{stag, r.Both.TO, r.Both.Len} }
}

// withOtherKey returns a region with another key, which is the low byte of the STag.
func withOtherKey(r *Regions) Region { return Region{r.Both.STag ^ 1, r.Both.TO, r.Both.Len} }

// end is the offset after the last byte of a region. All regions have the same length.
const end = RegionLen

// RegionLen is the length in bytes that Want assumes for every region of Regions.
const RegionLen = 4096

// takeBack returns a function for aimedExchange that makes a Send with invalidate.
func takeBack(op wire.Opcode, msn uint32, pick func(r *Regions) Region) func(*Regions) []byte {
	return func(r *Regions) []byte {
		return newULPDU(wire.Header{Last: true, Opcode: op, STag: pick(r).STag, MSN: msn}, 'x')
	}
}

// firstSegment makes, for aimedExchange, the first segment of a Write, of n bytes, to
// the start of a region.
func firstSegment(n int) func(*Regions) []byte {
	return func(r *Regions) []byte { return writePart(r.Both.STag, r.Both.TO, n) }
}

// readFromRegion makes, for aimedExchange, a Read Request for n bytes, off bytes from
// the start of a region.
func readFromRegion(pick func(r *Regions) Region, off int64, n uint32) func(*Regions) []byte {
	return func(r *Regions) []byte {
		g := pick(r)
		return readReq(1, wire.ReadRequest{SinkSTag: 7, Size: n, SourceSTag: g.STag, SourceTO: g.TO + uint64(off)})
	}
}

// tagged are exchanges with Writes and invalidations that are wrong, or look wrong.
var tagged = []Exchange{
	aimedExchange("Write to STag 0", "RFC 5040 8.2: STag", noSTag, writeToRegion(withSTag(0), 0, 1)),
	aimedExchange("Write to STag 1", "RFC 5040 8.2: STag", noSTag, writeToRegion(withSTag(1), 0, 1)),
	aimedExchange("Write with the wrong key", "RFC 5040 8.2: STag", noSTag, writeToRegion(withOtherKey, 0, 1)),
	aimedExchange("Write to memory that is freed", "RFC 5040 8.2: STag", noSTag, writeToRegion(freedRegion, 0, 1)),
	aimedExchange("Write to memory that was taken back", "RFC 5040 8.2: STag", noSTag, writeToRegion(bothRegion, 0, 1), takeBack(wire.OpSendInvalidate, 1, bothRegion)),
	aimedExchange("Write to another protection domain", "RFC 5040 8.2: stream", wantTerminate(ddp, inBuffer, 2, ""), writeToRegion(foreignRegion, 0, 1)),
	aimedExchange("Write to memory for reading", "RFC 5040 8.2: access", noAccess, writeToRegion(readOnly, 0, 1)),
	aimedExchange("Write to memory of its owner's own", "RFC 5040 8.2: access", noAccess, writeToRegion(localRegion, 0, 1)),
	aimedExchange("Write one byte too early", "RFC 5041 8.2: base", noBounds, writeToRegion(bothRegion, -1, 2)),
	aimedExchange("Write behind the end", "RFC 5041 8.2: bounds", noBounds, writeToRegion(bothRegion, end, 1)),
	aimedExchange("Write over the end", "RFC 5041 8.2: bounds", noBounds, writeToRegion(bothRegion, end-1, 2)),
	aimedExchange("Write far too long", "RFC 5041 8.2: bounds", noBounds, writeToRegion(bothRegion, 0, 60000)),
	aimedExchange("Write to address 0", "RFC 5041 8.2: base", noBounds, func(r *Regions) []byte { return writeULPDU(r.Both.STag, 0, 1) }),
	aimedExchange("Write over the end of all addresses", "RFC 5041 8.2: wrap", wantTerminate(ddp, inBuffer, 3, ""),
		func(r *Regions) []byte { return writeULPDU(r.Both.STag, 1<<64-1, 2) }),
	aimedExchange("Write with a hole", "RFC 5041 5.2: TO", noBounds, writeToRegion(bothRegion, 9, 1),
		firstSegment(8)),
	aimedExchange("Write that overlaps itself", "RFC 5041 5.2: TO", noBounds, writeToRegion(bothRegion, 7, 1),
		firstSegment(8)),
	aimedExchange("Write that changes its STag", "RFC 5041 5.2: STag", noSTag,
		func(r *Regions) []byte { return writeULPDU(r.WriteOnly.STag, r.Both.TO+8, 1) },
		firstSegment(8)),
	aimedExchange("Write over the end by its second segment", "RFC 5041 8.2: bounds", noBounds, writeToRegion(bothRegion, end, 1),
		firstSegment(end)),
	aimedExchange("empty Write to STag 0", "RFC 5040: length 0 checks nothing", orderly, fixedULPDU(writeULPDU(0, 1<<64-1, 0))),
	aimedExchange("empty Write to memory that is freed", "RFC 5040: length 0 checks nothing", orderly, writeToRegion(freedRegion, 0, 0)),
	aimedExchange("empty Write to another protection domain", "RFC 5040: length 0 checks nothing", orderly, writeToRegion(foreignRegion, -9, 0)),
	aimedExchange("Write to all of it", "RFC 5040 5.2: as it should be", orderly, writeToRegion(bothRegion, 0, end)),
	aimedExchange("Write to memory for writing", "RFC 5040 5.2: as it should be", orderly, writeToRegion(writeOnly, end-1, 1)),
	aimedExchange("Write in the middle of a Send", "a tagged and an untagged message at a time", orderly,
		fixedULPDU(newULPDU(sendHeader(1, 1), 'b')),
		fixedULPDU(newULPDU(sendPartHeader(1, 0), 'a')),
		writeToRegion(bothRegion, 0, 5)),
	aimedExchange("invalidate in the middle of a Write to it", "RFC 5040 8.2: STag", noSTag, writeToRegion(bothRegion, 8, 1),
		firstSegment(8), takeBack(wire.OpSendInvalidate, 1, bothRegion)),
	aimedExchange("invalidate what is being read", "RFC 5040 8.2: whatever comes first", anything,
		takeBack(wire.OpSendInvalidate, 1, bothRegion), readFromRegion(bothRegion, 0, end)),
	aimedExchange("invalidate STag 0", "RFC 5040 8.2: 09", notTaken, takeBack(wire.OpSendInvalidate, 1, withSTag(0))),
	aimedExchange("invalidate with the wrong key", "RFC 5040 8.2: 09", notTaken, takeBack(wire.OpSendInvalidate, 1, withOtherKey)),
	aimedExchange("invalidate what is freed", "RFC 5040 8.2: 09", notTaken, takeBack(wire.OpSendSEInvalidate, 1, freedRegion)),
	aimedExchange("invalidate another protection domain's", "RFC 5040 8.2: 09", notTaken, takeBack(wire.OpSendSEInvalidate, 1, foreignRegion)),
	aimedExchange("invalidate twice", "RFC 5040 8.2: 09", notTaken,
		takeBack(wire.OpSendInvalidate, 2, bothRegion), takeBack(wire.OpSendInvalidate, 1, bothRegion)),
	aimedExchange("invalidate", "RFC 5040 5.3: as it should be", orderly, takeBack(wire.OpSendSEInvalidate, 1, bothRegion)),
}
