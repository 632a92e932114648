package core_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/verbs"
)

const slots, slotLen = 60, 700

// talker is one side of a conversation without errors: each work request has a slot of the peer's
// memory to itself.
type talker struct {
	*side
	mine, theirs *verbs.MR
	sends        int   // work requests posted
	written      []int // slots of the peer's that a Write was posted to, and how much
	length       map[int]int
	reads        map[uint64][2]int // Read: slot, and where it goes in mine
	recvs        []*verbs.MR       // a Send carries the number of Writes posted before it
}

// slotBytes returns what work request i of s writes.
func slotBytes(s *side, i, n int) []byte {
	b := pattern(n + i%5)
	for k := range b {
		b[k] ^= byte(i) ^ s.name[0]
	}
	return b[:n]
}

// TestNoErrors has two sides exchange Sends, Writes and Reads, in any pieces, with any depth,
// fences and CRC. Everything completes successfully and in posting order. A Read returns the data
// of the Writes before it. A receive completes after the Writes that precede its Send. No error is
// reported.
func TestNoErrors(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		depth := rapid.Uint16Range(1, 5)
		segment := rapid.SampledFrom([]int{0, 33, 128, 129, 400})
		w := connectMemory(rt, 2*slots*slotLen, core.Config{
			CRC: rapid.Bool().Draw(rt, "CRC"), MaxSegment: segment.Draw(rt, "segment"), IRD: depth.Draw(rt, "IRD"), ORD: depth.Draw(rt, "ORD"),
			PeerToPeer: rapid.Bool().Draw(rt, "peer-to-peer"),
		}, core.Config{MaxSegment: segment.Draw(rt, "responder's segment")})
		a := &talker{side: w.a, mine: w.near, theirs: w.far, length: map[int]int{}, reads: map[uint64][2]int{}}
		b := &talker{side: w.b, mine: w.far, theirs: w.near, length: map[int]int{}, reads: map[uint64][2]int{}}
		a.watch(rt, b)
		b.watch(rt, a)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "pieces"), 0))
		for range rapid.IntRange(1, 2*slots).Draw(rt, "steps") {
			x := a
			if rapid.Bool().Draw(rt, "responder") {
				x = b
			}
			if x.sends < slots && rapid.IntRange(0, 2).Draw(rt, "post") > 0 {
				x.talk(rt)
			} else {
				move(w.a, w.b, 1+rng.IntN(5000), func() int { return 1 + rng.IntN(3000) })
			}
		}
		for range 3 {
			move(w.a, w.b, 1+rng.IntN(5000), func() int { return 1 + rng.IntN(3000) })
			for _, s := range []*side{w.a, w.b} {
				s.now = s.now.Add(100 * time.Millisecond)
				s.c.Timeout(s.now)
			}
		}
		for _, x := range []*talker{a, b} {
			if x.closed > 0 || x.sends > 0 && x.count() != x.sends {
				rt.Errorf("%s: %d posted, %d completed: %v", x.name, x.sends, x.count(), x.err)
			}
		}
	})
}

// count returns how many work requests of the send queue are complete.
func (x *talker) count() int {
	n := 0
	for _, wc := range x.done {
		if wc.Op != verbs.Recv {
			n++
		}
	}
	return n
}

// talk posts something.
func (x *talker) talk(rt *rapid.T) {
	id := x.sends
	x.sends++
	n := rapid.IntRange(0, slotLen).Draw(rt, "bytes")
	wr := verbs.SendWR{ID: uint64(id), Flags: verbs.Signaled, RKey: x.theirs.RKey, RemoteAddr: x.theirs.Addr + uint64(id*slotLen)}
	if rapid.IntRange(0, 5).Draw(rt, "fence") == 0 {
		wr.Flags |= verbs.Fence
	}
	wr.Op = rapid.SampledFrom([]verbs.Opcode{verbs.Send, verbs.Write, verbs.Write, verbs.Read}).Draw(rt, "operation")
	switch {
	case wr.Op == verbs.Write:
		mr := region(n)
		copy(mr.Bytes, slotBytes(x.side, id, n))
		wr.SGL = []verbs.SGE{{MR: mr, Length: uint32(n)}}
		x.written = append(x.written, id)
		x.length[id] = n
	case wr.Op == verbs.Read && len(x.written) > 0:
		from := x.written[rapid.IntRange(0, len(x.written)-1).Draw(rt, "slot")]
		to := len(x.mine.Bytes)/2 + id*slotLen
		wr.RemoteAddr = x.theirs.Addr + uint64(from*slotLen)
		wr.SGL = []verbs.SGE{{MR: x.mine, Offset: uint32(to), Length: uint32(x.length[from])}}
		x.reads[wr.ID] = [2]int{from, to}
	default:
		wr.Op, wr.Inline = verbs.Send, []byte{byte(len(x.written))}
	}
	x.post(&wr)
}

// watch checks completions as they come against the work requests of the peer o.
func (x *talker) watch(rt *rapid.T, o *talker) {
	next := uint64(0)
	for id := range uint64(slots) {
		x.recvs = append(x.recvs, x.postRecv(id, 1))
	}
	x.onComplete = func(wc completion) {
		if wc.Status != verbs.StatusSuccess {
			rt.Fatalf("%s: %+v", x.name, wc)
		}
		if wc.Op == verbs.Recv {
			for _, slot := range o.written[:x.recvs[wc.ID].Bytes[0]] {
				want := slotBytes(o.side, slot, o.length[slot])
				if got := x.mine.Bytes[slot*slotLen:][:len(want)]; !bytes.Equal(got, want) {
					rt.Fatalf("%s: receive %d came before the Write %d that was posted before its Send", x.name, wc.ID, slot)
				}
			}
			return
		}
		if wc.ID != next {
			rt.Fatalf("%s: %d completes where %d should", x.name, wc.ID, next)
		}
		next++
		if r, ok := x.reads[wc.ID]; ok {
			want := slotBytes(x.side, r[0], x.length[r[0]])
			if got := x.mine.Bytes[r[1]:][:len(want)]; !bytes.Equal(got, want) {
				rt.Fatalf("%s: Read %d brought %x, not what Write %d wrote: %x", x.name, wc.ID, got, r[0], want)
			}
		}
	}
}
