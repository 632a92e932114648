package core_test

import (
	"math"
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// domain is a protection domain; the Conns of these tests are in nil, which is one too.
type domain struct{ verbs.PD }

// memory has the regions that a finder has registered: 64 bytes for each right a peer may have or
// lack.
type memory struct {
	core.Regions
	open     *verbs.MR // every right
	readOnly *verbs.MR // a peer may read it
	sink     *verbs.MR // a peer may write it
	private  *verbs.MR // no peer may touch it
	other    *verbs.MR // every right, in another protection domain
	top      *verbs.MR // every right; its last byte is at address 2^64-1
	all      []*verbs.MR
}

const regionLen = 64

func newMemory(t tb) *memory {
	t.Helper()
	m := &memory{}
	const every = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead
	add := func(mr verbs.MR) *verbs.MR {
		mr.Bytes, mr.RKey = pattern(regionLen), mr.LKey
		if !m.Add(&mr) {
			t.Fatalf("cannot add STag %#x", mr.LKey)
		}
		m.all = append(m.all, &mr)
		return &mr
	}
	m.open = add(verbs.MR{LKey: 0x0101, Addr: 0x10000, Access: every})
	m.readOnly = add(verbs.MR{LKey: 0x0202, Addr: 0x20000, Access: verbs.RemoteRead})
	m.sink = add(verbs.MR{LKey: 0x0303, Addr: 0x30000, Access: verbs.LocalWrite | verbs.RemoteWrite})
	m.private = add(verbs.MR{LKey: 0x0404, Addr: 0x40000, Access: verbs.LocalWrite})
	m.other = add(verbs.MR{LKey: 0x0505, Addr: 0x50000, Access: every, PD: &domain{}})
	m.top = add(verbs.MR{LKey: 0x0606, Addr: math.MaxUint64 - regionLen + 1, Access: every})
	return m
}

// snapshot returns all bytes of all regions.
func (m *memory) snapshot() []byte {
	var b []byte
	for _, mr := range m.all {
		b = append(b, mr.Bytes...)
	}
	return b
}

// writeSeg and responseSeg return the ULPDUs of segments of a Write and of a Read Response.
func writeSeg(stag uint32, to uint64, last bool, n int) []byte {
	return seg(wire.Header{Tagged: true, Last: last, STag: stag, TO: to}, pattern(n)...)
}

func responseSeg(stag uint32, to uint64, last bool, n int) []byte {
	return seg(wire.Header{Tagged: true, Last: last, Opcode: wire.OpReadResponse, STag: stag, TO: to}, pattern(n)...)
}

// invalidate returns a Send of one byte that invalidates stag.
func invalidate(msn, stag uint32) []byte {
	return sendSeg(wire.Header{Last: true, Opcode: wire.OpSendInvalidate, STag: stag, MSN: msn}, "i")
}

const firstDone = "r1:success/1 r2:work request flushed/0 s3:work request flushed/0"

// access is a remote access that must fail: its place, and the Terminate codes for a Write and for
// a Read Request.
type access struct {
	name        string
	stag        uint32
	to          uint64
	n           int
	write, read string // Terminate codes; empty: this is no error
	good        [][]byte
	before      func(*side, *memory)
	done        string
}

// badAccesses returns the ways in which an access can be wrong. DDP checks a Write, except for its
// rights (RFC 5041 section 7.1, RFC 5040 section 7.2). RDMAP checks the source of a Read.
func badAccesses() []access {
	const open, base = 0x0101, 0x10000
	remove := func(_ *side, m *memory) { m.Remove(m.open) }
	withhold := func(s *side, _ *memory) { s.c.Withhold(verbs.RemoteWrite | verbs.RemoteRead) }
	return []access{
		{name: "STag unknown", stag: 0x9999, to: base, n: 1, write: "1100", read: "0100"},
		{name: "STag 0", to: base, n: 1, write: "1100", read: "0100"},
		{name: "STag 1, that of an empty message", stag: 1, n: 1, write: "1100", read: "0100"},
		{name: "key wrong", stag: open ^ 1, to: base, n: 1, write: "1100", read: "0100"},
		{name: "index wrong, key right", stag: open ^ 0x100, to: base, n: 1, write: "1100", read: "0100"},
		{name: "key wrong in the highest bit", stag: open | 1<<31, to: base, n: 1, write: "1100", read: "0100"},
		{name: "STag removed", stag: open, to: base, n: 1, before: remove, write: "1100", read: "0100"},
		{
			name: "STag invalidated", stag: open, to: base, n: 1, good: list(invalidate(1, open)), done: firstDone,
			write: "1100", read: "0100",
		},
		{name: "a queue pair that allows nothing", stag: open, to: base, n: 1, before: withhold, write: "0102", read: "0102"},
		{name: "a queue pair that allows nothing, STag unknown", stag: 0x9999, to: base, n: 1, before: withhold, write: "0102", read: "0102"},
		{name: "of another protection domain", stag: 0x0505, to: 0x50000, n: 1, write: "1102", read: "0103"},
		{name: "of another protection domain, out of bounds", stag: 0x0505, n: 1, write: "1102", read: "0103"},
		{name: "for reading only", stag: 0x0202, to: 0x20000, n: 1, write: "0102"},
		{name: "for writing only", stag: 0x0303, to: 0x30000, n: 1, read: "0102"},
		{name: "for nobody", stag: 0x0404, to: 0x40000, n: 1, write: "0102", read: "0102"},
		{name: "for nobody, out of bounds", stag: 0x0404, n: 1, write: "0102", read: "0102"},
		{name: "one byte before", stag: open, to: base - 1, n: 1, write: "1101", read: "0101"},
		{name: "begins before", stag: open, to: base - 1, n: 2, write: "1101", read: "0101"},
		{name: "one byte behind", stag: open, to: base + regionLen, n: 1, write: "1101", read: "0101"},
		{name: "ends behind", stag: open, to: base + regionLen - 4, n: 5, write: "1101", read: "0101"},
		{name: "one byte too long", stag: open, to: base, n: regionLen + 1, write: "1101", read: "0101"},
		{name: "TO 0: a zero-based offset", stag: open, n: 4, write: "1101", read: "0101"},
		{name: "TO differs in the highest bit", stag: open, to: base | 1<<63, n: 1, write: "1101", read: "0101"},
		{name: "TO 2^64-1", stag: open, to: math.MaxUint64, n: 1, write: "1101", read: "0101"},
		{name: "TO wraps", stag: open, to: math.MaxUint64, n: 2, write: "1103", read: "0104"},
		{name: "TO wraps to just below the region", stag: open, to: math.MaxUint64 - 1, n: 40, write: "1103", read: "0104"},
		{name: "TO wraps from inside the last region", stag: 0x0606, to: math.MaxUint64 - 3, n: 5, write: "1103", read: "0104"},
	}
}

func TestWriteErrors(t *testing.T) {
	var rows []errorRow
	for _, a := range badAccesses() {
		if a.write == "" {
			continue
		}
		rfc := "RFC 5041 section 7.1"
		if a.write[0] == '0' {
			rfc = "RFC 5040 section 7.2"
		}
		row := errorRow{
			rfc: rfc, name: "Write: " + a.name, before: a.before, good: a.good, bad: writeSeg(a.stag, a.to, true, a.n), term: a.write,
			text: "Write of ", done: a.done,
		}
		rows = append(rows, row)
		row.name += ", not the last segment"
		row.bad = writeSeg(a.stag, a.to, false, a.n)
		rows = append(rows, row)
	}
	const stag, to = 0x0101, 0x10000
	const rfc, name = "RFC 5041 section 5.2", "Write: "
	begun := writeSeg(stag, to, false, 4)
	rows = append(rows,
		errorRow{rfc: rfc, name: name + "gap inside a message", good: list(begun), bad: writeSeg(stag, to+5, true, 4), term: "1101"},
		errorRow{rfc: rfc, name: name + "overlap inside a message", good: list(begun), bad: writeSeg(stag, to+3, true, 4), term: "1101"},
		errorRow{rfc: rfc, name: name + "begins again inside a message", good: list(begun), bad: begun, term: "1101"},
		errorRow{rfc: rfc, name: name + "STag changes inside a message", good: list(begun), bad: writeSeg(0x0303, to+4, true, 4), term: "1100"},
		errorRow{rfc: rfc, name: name + "runs out of bounds", good: list(begun), bad: writeSeg(stag, to+4, true, regionLen-3), term: "1101"},
		errorRow{
			rfc: rfc, name: name + "region removed inside a message", good: list(begun), bad: writeSeg(stag, to+4, true, 4), term: "1100",
			later: func(_ *side, m *memory) { m.Remove(m.open) },
		},
		errorRow{
			rfc: rfc, name: name + "region freed inside a message", good: list(begun), bad: writeSeg(stag, to+4, true, 4), term: "1102",
			later: func(_ *side, m *memory) { m.open.PD = &domain{} },
		},
		errorRow{
			rfc: rfc, name: name + "STag invalidated inside a message", good: list(begun, invalidate(1, stag)),
			bad: writeSeg(stag, to+4, true, 4), term: "1100", done: firstDone,
		},
		errorRow{
			rfc: "RFC 5041 section 5.3", name: "Read Response inside a Write", before: postRead, good: list(begun),
			bad: responseSeg(0x0303, 0x30008, true, 8), term: "0206", done: readHit,
		},
	)
	for i := range rows {
		rows[i].copied = wire.TaggedLen
	}
	runErrors(t, rows)
}

func TestReadSourceErrors(t *testing.T) {
	var rows []errorRow
	for _, a := range badAccesses() {
		if a.read == "" {
			continue
		}
		rows = append(rows, errorRow{
			rfc: "RFC 5040 section 7.2", name: "Read: " + a.name, before: a.before, good: a.good, term: a.read, text: "Read of ", done: a.done,
			bad: readSeg(readHead, wire.ReadRequest{SinkSTag: 5, SinkTO: 6, Size: uint32(a.n), SourceSTag: a.stag, SourceTO: a.to}),
		})
	}
	whole := wire.ReadRequest{SinkSTag: 5, SinkTO: 6, Size: regionLen, SourceSTag: 0x0101, SourceTO: 0x10000}
	huge := whole
	huge.Size = math.MaxUint32
	rows = append(rows, errorRow{
		rfc: "RFC 5040 section 7.2", name: "Read of 4 GiB less one byte", bad: readSeg(readHead, huge), term: "0101", text: "Read of 4294967295",
	})
	// the announced 4, one that is being answered; nothing is answered while nothing is written
	for _, q := range []wire.ReadRequest{{SinkSTag: 5}, whole} {
		var good [][]byte
		for msn := uint32(1); msn <= 5; msn++ {
			good = append(good, readSeg(wire.Header{Last: true, QN: 1, MSN: msn}, q))
		}
		row := errorRow{
			rfc: "RFC 5040 section 7.2", name: "Reads above the IRD", good: good, bad: readSeg(wire.Header{Last: true, QN: 1, MSN: 6}, q),
			term: "0207", text: "more than 5 Reads",
		}
		if q.Size == 0 {
			row.name += ", empty"
		}
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].copied = wire.UntaggedLen + wire.ReadRequestLen
	}
	runErrors(t, rows)
}

// postRead posts a Read of 8 bytes into sink, from byte 8 on.
func postRead(s *side, m *memory) { postReadInto(s, 20, m.sink, 8, 8) }

func postReadInto(s *side, id uint64, mr *verbs.MR, off, n uint32) {
	s.t.Helper()
	wr := verbs.SendWR{
		ID: id, Op: verbs.Read, Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: mr, Offset: off, Length: n}}, RemoteAddr: 0x777, RKey: 0x888,
	}
	if err := s.c.PostSend(&wr); err != nil {
		s.t.Fatalf("%s: PostSend of a Read: %v", s.name, err)
	}
}

// What becomes of the work requests when a Read, 20, is outstanding.
const (
	readHit     = "r1:work request flushed/0 r2:work request flushed/0 s20:general error/0 s3:work request flushed/0"
	readFlushed = "r1:work request flushed/0 r2:work request flushed/0 s20:work request flushed/0 s3:work request flushed/0"
	readDone    = "s20:success/8 r1:work request flushed/0 r2:work request flushed/0 s3:work request flushed/0"
)

func TestReadResponseErrors(t *testing.T) {
	const stag, to = 0x0303, 0x30008
	const ddp = "RFC 5041 section 7.1"
	begun := responseSeg(stag, to, false, 4)
	rows := []errorRow{
		{rfc: ddp, name: "nothing was asked for", bad: responseSeg(stag, to, true, 8), term: "1000", text: "without a Read", done: allFlushed},
		{rfc: ddp, name: "nothing was asked for, empty", bad: responseSeg(0, 0, true, 0), term: "1000", text: "without a Read", done: allFlushed},
		{
			rfc: ddp, name: "answered twice", before: postRead, good: list(responseSeg(stag, to, true, 8)), bad: responseSeg(stag, to, true, 8),
			term: "1000", text: "without a Read", done: readDone,
		},
		{rfc: ddp, name: "STag of another region", before: postRead, bad: responseSeg(0x0101, 0x10000, true, 8), term: "1100"},
		{
			rfc: ddp, name: "STag changes inside a message", before: postRead, good: list(begun), bad: responseSeg(0x0101, to+4, true, 4),
			term: "1100",
		},
		{rfc: ddp, name: "TO before the sink", before: postRead, bad: responseSeg(stag, to-1, true, 8), term: "1101"},
		{rfc: ddp, name: "TO behind the sink's start", before: postRead, bad: responseSeg(stag, to+1, true, 7), term: "1101"},
		{rfc: ddp, name: "gap", before: postRead, good: list(begun), bad: responseSeg(stag, to+5, true, 3), term: "1101"},
		{rfc: ddp, name: "overlap", before: postRead, good: list(begun), bad: responseSeg(stag, to+3, true, 5), term: "1101"},
		{rfc: ddp, name: "one byte too long", before: postRead, bad: responseSeg(stag, to, true, 9), term: "1101"},
		{
			rfc: ddp, name: "too long in the second segment", before: postRead, good: list(begun), bad: responseSeg(stag, to+4, true, 5),
			term: "1101",
		},
		{rfc: ddp, name: "one byte too short", before: postRead, bad: responseSeg(stag, to, true, 7), term: "1101"},
		{rfc: ddp, name: "empty", before: postRead, bad: responseSeg(stag, to, true, 0), term: "1101"},
		{
			rfc: ddp, name: "too short in the second segment", before: postRead, good: list(begun), bad: responseSeg(stag, to+4, true, 3),
			term: "1101",
		},
		{rfc: ddp, name: "complete and more announced", before: postRead, bad: responseSeg(stag, to, false, 8), term: "1101"},
		{
			rfc: "RFC 5041 section 5.3", name: "Write inside a Read Response", before: postRead, good: list(begun),
			bad: writeSeg(0x0101, 0x10000, true, 4), term: "0206", text: "Write in the middle of a Read Response", done: readFlushed,
		},
		{
			rfc: "RFC 5040 section 5.5", name: "the second Read is answered first", term: "1101",
			before: func(s *side, m *memory) { postRead(s, m); postReadInto(s, 21, m.sink, 32, 8) },
			bad:    responseSeg(stag, 0x30000+32, true, 8),
			done: "r1:work request flushed/0 r2:work request flushed/0 s20:general error/0 s21:work request flushed/0 " +
				"s3:work request flushed/0",
		},
	}
	for i := range rows {
		rows[i].copied = wire.TaggedLen
		if rows[i].done == "" {
			rows[i].done = readHit
		}
		if rows[i].text == "" {
			rows[i].text = "Read Response"
		}
	}
	runErrors(t, rows)
}

func TestInvalidateErrors(t *testing.T) {
	rows := []errorRow{
		{name: "unknown STag", bad: invalidate(1, 0x9999)},
		{name: "STag 0", bad: invalidate(1, 0)},
		{name: "key wrong", bad: invalidate(1, 0x0100)},
		{name: "of another protection domain", bad: invalidate(1, 0x0505)},
		{name: "of a region that no peer may touch", bad: invalidate(1, 0x0404)},
		{
			name: "twice", good: list(invalidate(1, 0x0101)), bad: invalidate(2, 0x0101),
			done: "r1:success/1 r2:remote invalid request/0 s3:work request flushed/0",
		},
		{name: "removed", bad: invalidate(1, 0x0101), before: func(_ *side, m *memory) { m.Remove(m.open) }},
	}
	for i := range rows {
		r := &rows[i]
		r.rfc, r.term, r.copied, r.text = "RFC 5040 section 7.2", "0109", wire.UntaggedLen, "Send with Invalidate of STag"
		if r.done == "" {
			r.done = hit("remote invalid request")
		}
	}
	runErrors(t, rows)
}
