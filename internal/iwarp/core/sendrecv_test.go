package core_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/verbs"
)

// configs are the pairs that every fragmentation is tried on.
var configs = map[string][2]core.Config{
	"revision 2":            {},
	"revision 1":            {{Revision: 1}},
	"CRC":                   {{CRC: true, IRD: 4, ORD: 4}},
	"CRC by responder":      {{}, {CRC: true}},
	"peer-to-peer":          {{PeerToPeer: true, IRD: 4, ORD: 4}},
	"small segments":        {{MaxSegment: 7}, {MaxSegment: 5}},
	"small segments CRC":    {{MaxSegment: 7, CRC: true}, {MaxSegment: 200}},
	"pool":                  {{Pool: &core.Pool{}}, {Pool: &core.Pool{}}},
	"peer-to-peer with CRC": {{PeerToPeer: true, CRC: true, IRD: 4, ORD: 4, PrivateData: []byte("hello")}},
}

// sizes of the messages sent: empty, around pads, copied, referenced, several segments, more than
// 64 KiB.
var sizes = []int{0, 1, 2, 3, 4, 63, 128, 129, 1000, 70000}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + n)
	}
	return b
}

// exchange connects and sends messages of all sizes both ways, in the given pieces.
func exchange(t tb, ca, cb core.Config, limit int, next func() int, sizes []int) {
	ca.Initiator = true
	a, b := newSide(t, "initiator", ca), newSide(t, "responder", cb)
	got := map[*side][]*verbs.MR{}
	for _, s := range []*side{a, b} {
		for i, n := range sizes {
			got[s] = append(got[s], s.postRecv(uint64(i), n+i%3))
		}
	}
	b.onRequest = func(r core.Request) {
		if string(r.PrivateData) != string(ca.PrivateData) {
			t.Errorf("private data %q", r.PrivateData)
		}
		if err := b.c.Accept(b.now, nil, 4, 4); err != nil {
			t.Fatalf("Accept: %v", err)
		}
	}
	for _, s := range []*side{a, b} {
		s.onEstablished = func() {
			for i, n := range sizes {
				s.postSend(uint64(i), string(pattern(n)), verbs.SendFlags(i%2)*verbs.Solicited)
			}
		}
	}
	a.c.BeginSetup(a.now)
	b.c.BeginSetup(b.now)
	move(a, b, limit, next)
	a.at(time.Second)
	b.at(time.Second)
	b.c.Timeout(b.now) // the hold-off, should the initiator have been slow
	move(a, b, limit, next)
	for _, s := range []*side{a, b} {
		var sends, recvs int
		for _, wc := range s.done {
			want := completion{WC: verbs.WC{ID: uint64(sends), Op: verbs.Send, Bytes: uint32(sizes[sends%len(sizes)])}}
			if wc.Op == verbs.Recv {
				want = completion{
					verbs.WC{ID: uint64(recvs), Op: verbs.Recv, Bytes: uint32(sizes[recvs%len(sizes)])}, recvs%2 == 1,
				}
				n := sizes[recvs%len(sizes)]
				if !bytes.Equal(got[s][recvs].Bytes[:n], pattern(n)) {
					t.Errorf("%s: message %d of %d bytes arrived wrong", s.name, recvs, n)
				}
				recvs++
			} else {
				sends++
			}
			if wc != want {
				t.Errorf("%s: completion %+v, want %+v", s.name, wc, want)
			}
		}
		if sends != len(sizes) || recvs != len(sizes) || s.closed != 0 {
			t.Errorf("%s: %d sends and %d receives completed of %d, closed %d (%v)", s.name, sends, recvs, len(sizes), s.closed, s.err)
		}
	}
	a.c.Disconnect(a.now)
	move(a, b, limit, next)
	for _, s := range []*side{a, b} {
		if _, now := s.c.WantClose(); s.closed != 1 || s.err != nil || !now {
			t.Errorf("%s: after Disconnect: closed %d, %v, socket to be closed: %v", s.name, s.closed, s.err, now)
		}
	}
}

func TestExchange(t *testing.T) {
	for name, cfg := range configs {
		for _, step := range []struct {
			name        string
			limit, read int
		}{{"whole", 1 << 30, 1 << 30}, {"byte by byte", 1 << 30, 1}, {"one byte writes", 1, 1 << 30}, {"1448", 1448, 1448}} {
			t.Run(name+"/"+step.name, func(t *testing.T) {
				s := sizes
				if step.limit == 1 {
					s = sizes[:len(sizes)-1] // 70000 writes show nothing new
				}
				exchange(t, cfg[0], cfg[1], step.limit, func() int { return step.read }, s)
			})
		}
	}
}

func TestExchangeRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := configs[rapid.SampledFrom([]string{"revision 2", "revision 1", "CRC", "peer-to-peer", "small segments CRC", "pool"}).Draw(rt, "config")]
		n := rapid.SliceOfN(rapid.IntRange(0, 3000), 1, 20).Draw(rt, "sizes")
		limit := rapid.IntRange(1, 4000).Draw(rt, "write")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		top := rapid.IntRange(1, 2000).Draw(rt, "read")
		exchange(rt, cfg[0], cfg[1], limit, func() int { return 1 + rng.IntN(top) }, n)
	})
}

// TestGatherLists: several elements, inline bytes, and empty elements make one message.
func TestGatherLists(t *testing.T) {
	a, b := connect(t, core.Config{MaxSegment: 300, CRC: true}, core.Config{})
	mr := region(2000)
	copy(mr.Bytes, pattern(2000))
	got := b.postRecv(1, 3000)
	wr := verbs.SendWR{ID: 7, Flags: verbs.Signaled, SGL: []verbs.SGE{
		{}, {MR: mr, Offset: 100, Length: 900}, {MR: mr, Offset: 3}, {MR: mr, Offset: 0, Length: 100}, {MR: mr, Offset: 1999, Length: 1},
	}}
	if err := a.c.PostSend(&wr); err != nil {
		t.Fatal(err)
	}
	clear(wr.SGL) // the list was copied
	in := []byte("inline")
	got2 := b.postRecv(2, 10)
	// not signalled: no completion
	if err := a.c.PostSend(&verbs.SendWR{ID: 8, Inline: in}); err != nil {
		t.Fatal(err)
	}
	clear(in) // the bytes were copied
	move(a, b, 1<<30, whole)
	a.wantDone("the list", "s7:success/1001")
	b.wantDone("both messages", "r1:success/1001 r2:success/6")
	want := append(append(bytes.Clone(mr.Bytes[100:1000]), mr.Bytes[:100]...), mr.Bytes[1999])
	if !bytes.Equal(got.Bytes[:1001], want) {
		t.Error("elements arrived in the wrong order")
	}
	if string(got2.Bytes[:6]) != "inline" {
		t.Errorf("inline bytes arrived as %q", got2.Bytes[:6])
	}
}

// TestPostedIsCompleted: n posted work requests give n completions, in order, wherever and however
// the connection ends.
func TestPostedIsCompleted(t *testing.T) {
	ends := map[string]func(a, b *side){
		"disconnect":       func(a, _ *side) { a.c.Disconnect(a.now) },
		"abort":            func(a, _ *side) { a.c.Abort(a.now) },
		"peer disconnects": func(_, b *side) { b.c.Disconnect(b.now) },
		"garbage":          func(a, _ *side) { a.c.Input(a.now, bytes.Repeat([]byte{0xff}, 200)) },
		"FIN":              func(a, _ *side) { a.c.InputEnd(a.now, nil) },
	}
	names := []string{"disconnect", "abort", "peer disconnects", "garbage", "FIN"}
	rapid.Check(t, func(rt *rapid.T) {
		seg := rapid.IntRange(1, 2000).Draw(rt, "segment")
		a, b := connect(rt, core.Config{MaxSegment: seg}, core.Config{MaxSegment: seg})
		posted := map[*side][2]int{}
		end := rapid.SampledFrom(names).Draw(rt, "end")
		steps := rapid.IntRange(1, 40).Draw(rt, "steps")
		for range steps {
			s := rapid.SampledFrom([]*side{a, b}).Draw(rt, "side")
			p := posted[s]
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				s.postRecv(uint64(p[0]), 4000)
				p[0]++
			case 1:
				s.postSend(uint64(p[1]), string(pattern(rapid.IntRange(0, 4000).Draw(rt, "size"))), 0)
				p[1]++
			case 2:
				if s.c.Pending() && s.closed == 0 {
					s.write(rapid.IntRange(1, 3000).Draw(rt, "write"))
				}
			case 3:
				o := a
				if s == a {
					o = b
				}
				o.input(s.fresh(), func() int { return 777 })
			}
			posted[s] = p
			if a.closed+b.closed > 0 {
				break
			}
		}
		ends[end](a, b)
		move(a, b, 900, whole)
		for _, s := range []*side{a, b} {
			s.at(time.Minute)
			s.c.Timeout(s.now)
		}
		move(a, b, 900, whole)
		for _, s := range []*side{a, b} {
			var n [2]int
			flushed := [2]bool{}
			for _, wc := range s.done {
				q := 1
				if wc.Op == verbs.Recv {
					q = 0
				}
				if wc.ID != uint64(n[q]) {
					rt.Errorf("%s: %s: completion %d where %d should be: %s", s.name, end, wc.ID, n[q], s.statuses())
				}
				if flushed[q] && wc.Status == verbs.StatusSuccess {
					rt.Errorf("%s: %s: success after a flush: %s", s.name, end, s.statuses())
				}
				flushed[q] = flushed[q] || wc.Status != verbs.StatusSuccess
				n[q]++
			}
			if n != posted[s] || s.closed != 1 {
				rt.Errorf("%s: %s: receives and sends posted %v, completed %v, closed %d: %s", s.name, end, posted[s], n, s.closed, s.statuses())
			}
		}
	})
}

// TestGatherWithCRC: if CRC is in use, Gather returns at most one TCP segment at a time, also after
// a partial write.
func TestGatherWithCRC(t *testing.T) {
	a, b := connect(t, core.Config{MaxSegment: 1000, CRC: true}, core.Config{})
	b.postRecv(1, 5000)
	b.postRecv(2, 50)
	a.postSend(1, string(pattern(2500)), 0)
	a.postSend(2, "x", 0)
	var got []int
	for first := true; a.c.Pending(); first = false {
		p := bytes.Join(a.c.Gather(nil), nil)
		if first {
			p = p[:100]
		}
		got = append(got, len(p))
		b.c.Input(b.now, p)
		a.c.Advance(a.now, len(p))
	}
	if want := []int{100, 924, 1024, 524 + 28}; !reflect.DeepEqual(got, want) {
		t.Errorf("FPDUs of %v bytes, want %v", got, want)
	}
	b.wantDone("all", "r1:success/2500 r2:success/1")
}

// TestChangeUnderCRC: a region that a peer reads may change at any time, even while the socket is
// full. The CRC matches the bytes that are sent.
func TestChangeUnderCRC(t *testing.T) {
	const n = 5000
	r := connectMemory(t, n, core.Config{CRC: true}, core.Config{MaxSegment: 2000})
	for _, limit := range []int{0, 1, 100, 1999, 2000, 2010, 2020, 2024} {
		r.a.post(r.wr(1, verbs.Read, 0, 0, n))
		r.b.input(r.a.take(1<<30), whole)
		r.b.c.Pending()
		r.b.write(limit)
		for i := range r.far.Bytes {
			r.far.Bytes[i]++
		}
		r.b.take(1 << 30)
		r.a.input(r.b.fresh(), whole)
		r.a.wantDone(fmt.Sprintf("changed behind %d bytes", limit), fmt.Sprintf("s1:success/%d", n))
	}
}

// TestGatherRoom: Gather returns as many slices as dst has room for, or at most 1024.
func TestGatherRoom(t *testing.T) {
	a, _ := connect(t, core.Config{}, core.Config{})
	for i := range 10 {
		a.postSend(uint64(i), string(pattern(500)), 0)
	}
	if n := len(a.c.Gather(make([][]byte, 1, 4))); n != 4 {
		t.Errorf("%d slices in a list with room for 4", n)
	}
	if n := len(a.c.Gather(nil)); n != 21 {
		t.Errorf("%d slices for 10 referenced payloads, want 21", n)
	}
}

// TestIdleSize: 15,000 idle connections must fit in memory.
func TestIdleSize(t *testing.T) {
	if n := reflect.TypeFor[core.Conn]().Size(); n > 768 {
		t.Errorf("a Conn is %d bytes, more than 768", n)
	}
}

// flow is an established pair that sends 64-byte messages without allocating.
type flow struct {
	a, b *side
	iov  [][]byte
	wr   verbs.SendWR
	rwr  verbs.RecvWR
	left int
}

func newFlow(t tb, crc bool) *flow {
	pool := &core.Pool{}
	a, b := connect(t, core.Config{Pool: pool, CRC: crc}, core.Config{Pool: pool})
	f := &flow{a: a, b: b, iov: make([][]byte, 0, 64)}
	f.wr = verbs.SendWR{SGL: []verbs.SGE{{MR: region(64), Length: 64}}}
	f.rwr = verbs.RecvWR{SGE: verbs.SGE{MR: region(64), Length: 64}}
	b.onComplete = func(completion) { b.done = b.done[:0]; f.left-- }
	return f
}

// run sends n messages, 16 to a write.
func (f *flow) run(t tb, n int) {
	for f.left = n; f.left > 0; {
		for range 16 {
			if f.b.c.PostRecv(f.rwr) != nil || f.a.c.PostSend(&f.wr) != nil {
				t.Fatalf("cannot post")
			}
		}
		for f.a.c.Pending() {
			f.iov = f.a.c.Gather(f.iov[:0])
			k := 0
			for _, p := range f.iov {
				f.b.c.Input(t0, p)
				k += len(p)
			}
			f.a.c.Advance(t0, k)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	for _, crc := range []bool{false, true} {
		f := newFlow(t, crc)
		f.run(t, 64)
		if n := testing.AllocsPerRun(100, func() { f.run(t, 64) }); n != 0 {
			t.Errorf("CRC %v: %v allocations in 64 messages", crc, n)
		}
	}
}

func BenchmarkSend64(b *testing.B) {
	for _, crc := range []bool{false, true} {
		b.Run(fmt.Sprintf("crc=%v", crc), func(b *testing.B) {
			f := newFlow(b, crc)
			b.ReportAllocs()
			b.ResetTimer()
			f.run(b, b.N)
		})
	}
}
