package core_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

const everyAccess = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead

// near and far are memory at the initiator and at the responder of a pair that has some.
type remote struct {
	a, b      *side
	near, far *verbs.MR
	farRegs   *core.Regions
}

// connectMemory connects, with a region of n bytes on each side: ours is zero, the peer's has a
// pattern.
func connectMemory(t tb, n int, ca, cb core.Config) *remote {
	t.Helper()
	r := &remote{farRegs: &core.Regions{}}
	nearRegs := &core.Regions{}
	r.near = &verbs.MR{Bytes: make([]byte, n), Addr: 1 << 40, LKey: 0x1111, RKey: 0x1111, Access: everyAccess, PD: ca.PD}
	r.far = &verbs.MR{Bytes: pattern(n), Addr: 1<<50 + 3, LKey: 0x2222, RKey: 0x2222, Access: everyAccess, PD: cb.PD}
	if !nearRegs.Add(r.near) || !r.farRegs.Add(r.far) {
		t.Fatalf("cannot add the regions")
	}
	ca.Regions, cb.Regions = nearRegs, r.farRegs
	ca.IRD, ca.ORD = max(ca.IRD, 4), max(ca.ORD, 4)
	r.a, r.b = connect(t, ca, cb)
	return r
}

// wr returns a work request of the initiator on n bytes of both regions.
func (r *remote) wr(id uint64, op verbs.Opcode, nearOff, farOff, n int) *verbs.SendWR {
	return &verbs.SendWR{
		ID: id, Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: r.near, Offset: uint32(nearOff), Length: uint32(n)}},
		RemoteAddr: r.far.Addr + uint64(farOff), RKey: r.far.RKey,
	}
}

func (s *side) post(wr *verbs.SendWR) {
	s.t.Helper()
	if err := s.c.PostSend(wr); err != nil {
		s.t.Fatalf("%s: PostSend %d: %v", s.name, wr.ID, err)
	}
}

// opcodes returns the opcodes of the FPDUs in b.
func opcodes(t tb, b []byte) []wire.Opcode {
	t.Helper()
	var all []wire.Opcode
	for len(b) > 0 {
		p, n, err := wire.ConsumeFPDU(b)
		if err != nil {
			t.Fatalf("output is not whole FPDUs: %v", err)
		}
		h, _, err := wire.ConsumeHeader(p.ULPDU)
		if err != nil {
			t.Fatalf("output: %v", err)
		}
		all, b = append(all, h.Opcode), b[n:]
	}
	return all
}

// memoryConfigs are the pairs that Writes and Reads are tried on.
var memoryConfigs = map[string]core.Config{
	"": {}, "CRC": {CRC: true}, "small segments": {MaxSegment: 7}, "small segments CRC": {MaxSegment: 9, CRC: true},
	"peer-to-peer": {PeerToPeer: true}, "pool": {Pool: &core.Pool{}},
}

// TestWriteAndRead: every size goes to its place and nowhere else, whole and in bytes; a Write has
// no completion at its target; a Read sees the Write before it; and the data of a Write is there
// when the receive of a Send behind it completes (RFC 5040 section 5.5).
func TestWriteAndRead(t *testing.T) {
	for name, cfg := range memoryConfigs {
		for _, step := range []func() int{whole, func() int { return 1 }, func() int { return 1448 }} {
			for _, n := range []int{0, 1, 2, 3, 4, 128, 129, 1000, 5000} {
				const size, at, from = 6000, 500, 300
				r := connectMemory(t, size, cfg, core.Config{MaxSegment: cfg.MaxSegment})
				for i := range r.near.Bytes {
					r.near.Bytes[i] = byte(i*3 + 1)
				}
				near, far := bytes.Clone(r.near.Bytes), bytes.Clone(r.far.Bytes)
				copy(far[at:], near[from:from+n])
				r.b.postRecv(1, 10)
				r.b.onComplete = func(completion) {
					if !bytes.Equal(r.far.Bytes, far) {
						t.Errorf("%s: %d bytes: not placed when the Send behind was received", name, n)
					}
				}
				r.a.post(r.wr(1, verbs.Write, from, at, n))
				r.a.postSend(2, "written", 0)
				r.a.post(r.wr(3, verbs.Read, 5, at, n))
				move(r.a, r.b, 1<<30, step)
				copy(near[5:], far[at:at+n])
				if !bytes.Equal(r.near.Bytes, near) {
					t.Errorf("%s: %d bytes: the Read brought something else", name, n)
				}
				r.a.wantDone(name, fmt.Sprintf("s1:success/%d s2:success/7 s3:success/%d", n, n))
				r.b.wantDone(name+": only the Send completes at the target", "r1:success/7")
				if r.a.closed+r.b.closed > 0 {
					t.Fatalf("%s: %d bytes: %v, %v", name, n, r.a.err, r.b.err)
				}
			}
		}
	}
}

// TestWriteLists: a Write of several elements, and of inline bytes.
func TestWriteLists(t *testing.T) {
	r := connectMemory(t, 1000, core.Config{MaxSegment: 50}, core.Config{})
	copy(r.near.Bytes, pattern(999))
	wr := r.wr(1, verbs.Write, 0, 100, 0)
	wr.SGL = []verbs.SGE{{MR: r.near, Offset: 200, Length: 130}, {}, {MR: r.near, Offset: 7, Length: 1}, {MR: r.near, Length: 60}}
	r.a.post(wr)
	in := r.wr(2, verbs.Write, 0, 500, 0)
	in.SGL, in.Inline = nil, []byte("inline")
	r.a.post(in)
	copy(in.Inline, "xxxxxx")
	want := pattern(1000)
	list := bytes.Join([][]byte{r.near.Bytes[200:330], r.near.Bytes[7:8], r.near.Bytes[:60]}, nil)
	copy(want[100:], list)
	copy(want[500:], "inline")
	move(r.a, r.b, 1<<30, whole)
	if !bytes.Equal(r.far.Bytes, want) {
		t.Error("the elements were placed wrongly")
	}
	r.a.wantDone("both", "s1:success/191 s2:success/6")
}

// TestEmptyAccess: a message without bytes accesses no memory, so any STag and TO are valid, even
// if no memory is registered (RFC 5040 sections 5.1 and 5.2). Ready-to-receive messages rely on
// this.
func TestEmptyAccess(t *testing.T) {
	for _, stag := range []uint32{0, 1, 0x2222, 0x9999, 0xffffffff} {
		r := connectMemory(t, 8, core.Config{}, core.Config{})
		before := bytes.Clone(r.far.Bytes)
		r.b.postRecv(1, 1)
		for id, op := range []verbs.Opcode{verbs.Write, verbs.Read} {
			r.a.post(&verbs.SendWR{ID: uint64(id), Op: op, Flags: verbs.Signaled, RKey: stag, RemoteAddr: ^uint64(0)})
			r.a.post(&verbs.SendWR{
				ID: uint64(id), Op: op, Flags: verbs.Signaled, RKey: stag, RemoteAddr: ^uint64(0), SGL: []verbs.SGE{{MR: r.near, Offset: 8}},
			})
		}
		r.a.postSend(9, "", 0)
		move(r.a, r.b, 1<<30, whole)
		r.a.wantDone("empty", "s0:success/0 s0:success/0 s1:success/0 s1:success/0 s9:success/0")
		r.b.wantDone("behind it", "r1:success/0")
		if r.a.closed+r.b.closed > 0 || !bytes.Equal(before, r.far.Bytes) {
			t.Errorf("STag %#x: %v, %v, %x", stag, r.a.err, r.b.err, r.far.Bytes)
		}
	}
}

// TestAccessErrorsOfVerbs: real work requests that the peer refuses. A Write has succeeded when it
// was handed over. A Read completes flushed, never with a remote access error (as siw does). The
// work requests behind it are flushed too, even a Send that was handed over.
func TestAccessErrorsOfVerbs(t *testing.T) {
	tests := []struct {
		name       string
		change     func(r *remote, wr *verbs.SendWR)
		write, get string // Terminates
	}{
		{"key", func(_ *remote, wr *verbs.SendWR) { wr.RKey++ }, "1100", "0100"},
		{"removed", func(r *remote, _ *verbs.SendWR) { r.farRegs.Remove(r.far) }, "1100", "0100"},
		{"bounds", func(_ *remote, wr *verbs.SendWR) { wr.RemoteAddr += 93 }, "1101", "0101"},
		{"wrap", func(_ *remote, wr *verbs.SendWR) { wr.RemoteAddr = ^uint64(0) - 6 }, "1103", "0104"},
		{"right", func(r *remote, _ *verbs.SendWR) { r.far.Access = verbs.LocalWrite }, "0102", "0102"},
		{"domain", func(r *remote, _ *verbs.SendWR) { r.far.PD = &domain{} }, "1102", "0103"},
	}
	for _, tt := range tests {
		for _, op := range []verbs.Opcode{verbs.Write, verbs.Read} {
			r := connectMemory(t, 100, core.Config{}, core.Config{})
			name := fmt.Sprintf("%s, opcode %d", tt.name, op)
			r.a.name += " " + name
			before := bytes.Clone(r.far.Bytes)
			r.b.postRecv(1, 10)
			r.b.postSend(2, "queued", 0)
			wr := r.wr(11, op, 10, 20, 8)
			tt.change(r, wr)
			r.a.post(wr)
			r.a.postSend(12, "behind", 0)
			r.a.take(1 << 30)
			r.a.postSend(13, "queued", 0)
			r.b.input(r.a.fresh(), whole)
			want, done := tt.write, "s11:success/8 s12:success/6 s13:work request flushed/0"
			if op == verbs.Read {
				want, done = tt.get, "s11:work request flushed/0 s12:work request flushed/0 s13:work request flushed/0"
			}
			if e, _ := r.b.err.(*core.Error); e == nil || !e.Sent || termOf(e) != want {
				t.Errorf("%s: %v: want %s", name, r.b.err, want)
			}
			r.b.wantDone(name, "r1:work request flushed/0 s2:work request flushed/0")
			r.b.out = nil
			r.a.input(r.b.take(1<<30), whole)
			wantTerminated(t, r.a, want)
			r.a.wantDone(name, done)
			if !bytes.Equal(r.near.Bytes, make([]byte, 100)) || !bytes.Equal(r.far.Bytes, before) {
				t.Errorf("%s: memory was changed", name)
			}
		}
	}
}

// TestInvalidate: the receive's completion reports the invalidated key, which no longer works (RFC
// 5040 section 5.3).
func TestInvalidate(t *testing.T) {
	for _, fl := range []verbs.SendFlags{0, verbs.Solicited} {
		r := connectMemory(t, 100, core.Config{}, core.Config{})
		r.b.postRecv(1, 10)
		r.a.post(&verbs.SendWR{ID: 1, Op: verbs.SendWithInvalidate, Flags: fl | verbs.Signaled, RKey: r.far.RKey, Inline: []byte("take it")})
		move(r.a, r.b, 1<<30, whole)
		want := completion{verbs.WC{ID: 1, Op: verbs.Recv, Bytes: 7, InvalidatedRKey: r.far.RKey}, fl != 0}
		if len(r.b.done) != 1 || r.b.done[0] != want {
			t.Errorf("completion %+v, want %+v", r.b.done, want)
		}
		r.a.wantDone("the sender", "s1:success/7")
		r.a.post(r.wr(2, verbs.Write, 0, 0, 1))
		move(r.a, r.b, 1<<30, whole)
		wantTerminated(t, r.a, "1100")
		// the owner may register the memory anew
		if !r.farRegs.Remove(r.far) || !r.farRegs.Add(r.far) {
			t.Error("an invalidated region cannot be removed and added again")
		}
	}
}

// TestRegions: impossible keys.
func TestRegions(t *testing.T) {
	var rs core.Regions
	for _, key := range []uint32{0, 1} {
		if rs.Add(&verbs.MR{LKey: key}) {
			t.Errorf("key %d taken: it stands for none", key)
		}
	}
	one, two := &verbs.MR{LKey: 7}, &verbs.MR{LKey: 7}
	if rs.Remove(one) || !rs.Add(one) || rs.Add(two) || rs.Remove(two) || !rs.Remove(one) || rs.Remove(one) || !rs.Add(two) {
		t.Error("a key is one region's at a time, and only that one's to remove")
	}
}

// TestPostErrors: work requests that name memory wrongly are refused when posted, so that nothing
// is on the wire.
func TestPostErrors(t *testing.T) {
	pd := &domain{}
	r := connectMemory(t, 100, core.Config{Queues: core.Queues{PD: pd}}, core.Config{})
	foreign := &verbs.MR{PD: &domain{}, Bytes: make([]byte, 10), Access: everyAccess}
	// what Device.Free leaves: no domain
	freed := &verbs.MR{Bytes: make([]byte, 10), Access: everyAccess}
	readOnly := &verbs.MR{PD: pd, Bytes: make([]byte, 10), Access: verbs.RemoteRead}
	for name, sgl := range map[string][]verbs.SGE{
		"foreign": {{MR: foreign, Length: 1}}, "freed": {{MR: freed, Length: 1}}, "outside": {{MR: r.near, Offset: 99, Length: 2}},
		"freed, second": {{MR: r.near, Length: 1}, {MR: freed, Length: 1}},
	} {
		for _, op := range []verbs.Opcode{verbs.Send, verbs.SendWithInvalidate, verbs.Write, verbs.Read} {
			wantErrno(t, fmt.Sprintf("%s, opcode %d", name, op), r.a.c.PostSend(&verbs.SendWR{Op: op, SGL: sgl}), unix.EINVAL)
		}
		if len(sgl) == 1 {
			wantErrno(t, name+", receive", r.a.c.PostRecv(verbs.RecvWR{SGE: sgl[0]}), unix.EINVAL)
		}
	}
	for name, wr := range map[string]verbs.SendWR{
		"two elements":        {SGL: make([]verbs.SGE, 2)},
		"inline":              {Inline: []byte("x")},
		"without local write": {SGL: []verbs.SGE{{MR: readOnly, Length: 1}}},
		"no memory":           {SGL: []verbs.SGE{{Length: 1}}},
	} {
		wr.Op = verbs.Read
		wantErrno(t, "Read, "+name, r.a.c.PostSend(&wr), unix.EINVAL)
	}
	if err := r.a.c.PostSend(&verbs.SendWR{Op: verbs.Write, SGL: []verbs.SGE{{MR: readOnly, Length: 1}}}); err != nil {
		t.Errorf("a Write out of memory that may only be read: %v", err)
	}
}

// TestMemoryGoesWhilePosted: memory that is freed while a receive or a Read into it is posted is
// not written; the work request completes with a protection error, and the peer is notified of a
// local one (RFC 5041 section 7.2).
func TestMemoryGoesWhilePosted(t *testing.T) {
	for _, cut := range []int{0, 20, 30} { // before the message, in its header, in its payload
		_, b := connect(t, core.Config{}, core.Config{})
		mr := b.postRecv(1, 20)
		in := send(1, "0123456789abcdef")
		b.c.Input(t0, in[:cut])
		mr.PD = &domain{}
		was := bytes.Clone(mr.Bytes)
		b.c.Input(t0, in[cut:])
		if e, _ := b.err.(*core.Error); e == nil || termOf(e) != "1000" || !bytes.Equal(mr.Bytes, was) {
			t.Errorf("receive freed behind %d bytes: %v, memory %q: want 1000 and nothing more placed", cut, b.err, mr.Bytes)
		}
		b.wantDone("receive", "r1:local protection error/0")

		r := connectMemory(t, 100, core.Config{}, core.Config{})
		r.a.post(r.wr(1, verbs.Read, 0, 0, 16))
		r.b.input(r.a.take(1<<30), whole)
		r.b.at(100 * time.Millisecond)
		r.b.c.Timeout(r.b.now)
		r.b.out = nil
		in = r.b.take(1 << 30)
		r.a.c.Input(t0, in[:cut])
		was = bytes.Clone(r.near.Bytes)
		r.near.PD = &domain{}
		r.a.c.Input(t0, in[cut:])
		if e, _ := r.a.err.(*core.Error); e == nil || termOf(e) != "1000" || !bytes.Equal(r.near.Bytes, was) {
			t.Errorf("sink freed behind %d bytes: %v, memory %x: want 1000 and nothing more placed", cut, r.a.err, r.near.Bytes[:16])
		}
		r.a.wantDone("Read", "s1:local protection error/0")
	}
}

// TestRegionGoesInASegment: a region is freed, or the peer invalidates its key, while a Write's
// segment is arriving, in pieces or directly into its destination. Nothing more is placed, and the
// Write is answered like one to an unknown STag.
func TestRegionGoesInASegment(t *testing.T) {
	const n = core.LandingMin + 1000
	for _, crc := range []bool{false, true} {
		for name, gone := range map[string]func(r *remote){
			"removed": func(r *remote) { r.farRegs.Remove(r.far) },
			"freed":   func(r *remote) { r.far.PD = &domain{} },
			"another region under the same key": func(r *remote) {
				r.farRegs.Remove(r.far)
				r.farRegs.Add(&verbs.MR{Bytes: make([]byte, n), Addr: r.far.Addr, LKey: r.far.LKey, Access: everyAccess})
			},
		} {
			for _, landing := range []bool{false, true} {
				r := connectMemory(t, n, core.Config{CRC: crc}, core.Config{})
				in := framed(writeSeg(r.far.RKey, r.far.Addr, true, n), crc)
				r.b.c.Input(t0, in[:100])
				if r.b.c.Landings(nil, nil) == nil {
					t.Fatal("no landing buffer for a large Write")
				}
				gone(r)
				was := bytes.Clone(r.far.Bytes)
				if landing && r.b.c.Landings(nil, nil) != nil {
					t.Errorf("%s: a landing buffer in memory that is gone", name)
				}
				r.b.c.Input(t0, in[100:])
				if !bytes.Equal(r.far.Bytes, was) {
					t.Errorf("%s: written after it was gone", name)
				}
				if e, _ := r.b.err.(*core.Error); e == nil || termOf(e) != "1100" {
					t.Errorf("%s: %v: want 1100", name, r.b.err)
				}
			}
		}
	}
}

// TestSourceGoesInAnAnswer: a region is freed or invalidated while a peer reads it. Staged bytes
// are sent completely, then the peer is notified. Its Read is flushed.
func TestSourceGoesInAnAnswer(t *testing.T) {
	const n = 300000
	for name, gone := range map[string]func(r *remote){
		"removed":     func(r *remote) { r.farRegs.Remove(r.far) },
		"invalidated": func(r *remote) { r.b.c.Input(r.b.now, framed(invalidate(2, r.far.RKey), false)) },
	} {
		r := connectMemory(t, n, core.Config{}, core.Config{MaxSegment: 1000})
		r.b.postRecv(1, 10)
		r.a.post(r.wr(1, verbs.Read, 0, 0, n))
		r.a.postSend(2, "behind", 0)
		r.b.postRecv(2, 10)
		r.ask()
		r.b.at(100 * time.Millisecond)
		r.b.c.Timeout(r.b.now)
		r.b.out = nil
		r.b.write(1500) // into the second of 300 segments
		r.b.done = nil
		gone(r)
		for r.b.c.Pending() {
			r.b.write(1 << 30)
		}
		at, ok := r.b.c.Deadline()
		if !ok || at.After(r.b.now) {
			t.Fatalf("%s: deadline %v, %v: want one at once, to report", name, at, ok)
		}
		r.b.c.Timeout(r.b.now)
		if e, _ := r.b.err.(*core.Error); e == nil || termOf(e) != "0100" || !e.Sent {
			t.Errorf("%s: %v: want the Terminate 0100", name, r.b.err)
		}
		r.a.input(r.b.take(1<<30), whole)
		r.a.input(r.b.fresh(), whole)
		wantTerminated(t, r.a, "0100")
		r.a.wantDone(name, "s1:work request flushed/0 s2:work request flushed/0")
		if bytes.Equal(r.near.Bytes, r.far.Bytes) {
			t.Errorf("%s: all of the region was sent", name)
		}
	}
}

// TestReadLimit: if the IRD is n, the peer may have as many Reads outstanding as n rounded up to a
// power of two, as siw rounds it, plus the one that is being answered. A further Read is answered
// with Terminate 0/2/07. If it is 0, the peer may have none.
func TestReadLimit(t *testing.T) {
	for ird, limit := range map[uint16]int{0: 1, 1: 2, 2: 3, 3: 5, 4: 5, 5: 9, 8: 9, 9: 17, 128: 129, core.MaxIRD: 16385} {
		a, b := newSide(t, "initiator", core.Config{Initiator: true, IRD: 4, ORD: core.MaxIRD}), newSide(t, "responder", core.Config{})
		b.onRequest = func(core.Request) {
			if err := b.c.Accept(t0, nil, ird, 4); err != nil {
				t.Fatal(err)
			}
		}
		a.c.BeginSetup(t0)
		b.c.BeginSetup(t0)
		move(a, b, 1<<30, whole)
		for msn := 1; msn <= limit; msn++ {
			b.c.Input(t0, framed(readSeg(wire.Header{Last: true, QN: 1, MSN: uint32(msn)}, wire.ReadRequest{}), false))
		}
		if b.closed != 0 {
			t.Errorf("IRD %d: %d Reads: %v", ird, limit, b.err)
			continue
		}
		b.c.Input(t0, framed(readSeg(wire.Header{Last: true, QN: 1, MSN: uint32(limit + 1)}, wire.ReadRequest{}), false))
		if e, _ := b.err.(*core.Error); e == nil || termOf(e) != "0207" {
			t.Errorf("IRD %d: %d Reads: %v: want 0207", ird, limit+1, b.err)
		}
	}
}

// TestAnswersAreWhole: a send posted while a Read Response is half out waits for its end, and goes
// out before the next one.
func TestAnswersAreWhole(t *testing.T) {
	// CRC: one FPDU is made at a time
	r := connectMemory(t, 1000, core.Config{CRC: true}, core.Config{MaxSegment: 100})
	r.a.postRecv(9, 10)
	for id := range uint64(3) {
		r.a.post(r.wr(id, verbs.Read, 0, 0, 300))
	}
	r.ask()
	r.b.at(100 * time.Millisecond)
	r.b.c.Timeout(r.b.now)
	r.b.out = nil
	for range 4 {
		r.b.write(1 << 30)
	}
	r.b.postSend(1, "between", 0)
	const opA = wire.OpReadResponse
	wantOps(t, "three Reads and a Send", opcodes(t, append(r.b.fresh(), r.b.take(1<<30)...)), opA, opA, opA, opA, opA, opA, opS, opA, opA, opA)
}
