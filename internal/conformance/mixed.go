package conformance

import (
	"math/rand/v2"
	"slices"

	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/verbs"
)

// mixer is one side that posts random work requests and models their effect.
type mixer struct {
	w         *world
	rng       *rand.Rand
	q         *sides.Queues
	far, near *verbs.MR // the peer's region; this side's, with a slot per outstanding work request
	model     []byte    // the bytes that far must have
	posted    []verbs.WC
	reads     [][]byte // by work request: the bytes that a Read must fetch; nil for others
	risky     bool     // far was read since the last fence: a Write may overtake
}

const (
	mixerSlots = 2 * sides.Depth
	mixerSlot  = 70_000
)

// slotOffset returns the offset of work request i's slot.
func (m *mixer) slotOffset(i int) int { return i % mixerSlots * mixerSlot }

// postNext posts one work request if there is room, and reports whether there was.
func (m *mixer) postNext() bool {
	i := len(m.posted)
	if i >= mixerSlots && !m.checkOutcome(i-mixerSlots) {
		return false
	}
	n := m.rng.IntN([]int{2, 65, 3000, mixerSlot}[m.rng.IntN(4)])
	off := m.rng.IntN(len(m.far.Bytes) - n)
	wc := verbs.WC{ID: uint64(i % 100), Op: verbs.Send, QP: m.q.QP}
	wr := verbs.SendWR{ID: wc.ID, Flags: verbs.Signaled, RemoteAddr: m.far.Addr + uint64(off), RKey: m.far.RKey}
	var want []byte
	switch kind := m.rng.IntN(5); {
	case kind < 2:
		wc.Op, wc.Bytes = verbs.Write, uint32(n)
		wr.SGL = []verbs.SGE{sides.Part(m.near, m.slotOffset(i), n)}
		from := m.near.Bytes[m.slotOffset(i):][:n]
		for j := range from {
			from[j] = byte(m.rng.Uint32())
		}
		copy(m.model[off:], from)
		if m.risky {
			wr.Flags |= verbs.Fence
		}
		m.risky = m.risky && wr.Flags&verbs.Fence == 0
	case kind < 4:
		wc.Op, wc.Bytes = verbs.Read, uint32(n)
		wr.SGL = []verbs.SGE{sides.Part(m.near, m.slotOffset(i), n)}
		want = append([]byte{}, m.model[off:off+n]...)
		m.risky = true
	}
	wr.Op = wc.Op
	m.w.Must(m.q.Post(&wr))
	m.posted = append(m.posted, wc)
	m.reads = append(m.reads, want)
	return true
}

// checkOutcome compares the outcome of work request i with the model. It returns false if the work
// request has not completed.
func (m *mixer) checkOutcome(i int) bool {
	m.w.Helper()
	got := m.q.Of(verbs.Send)
	if len(got) <= i {
		return false
	}
	if got[i] != m.posted[i] {
		m.w.Fatalf("work request %d completed as %+v, want %+v: completions come in posting order", i, got[i], m.posted[i])
	}
	if want := m.reads[i]; want != nil {
		m.w.Same("a Read sees what was written before it, and not what is posted after", m.near.Bytes[m.slotOffset(i):][:len(want)], want)
	}
	return true
}

// testMixed makes both sides write, read and send at the same time, with random bytes and lengths.
func testMixed(w *world) {
	const steps = 300
	deep := func(_ verbs.Device, attr *verbs.QPInitAttr) {
		attr.MaxSendWR, attr.MaxRecvWR = mixerSlots, 2*mixerSlots
	}
	c := w.ConnectedWith(sides.Setup{Active: deep, Passive: deep})
	a, b := w.Memory(c.AQ, 2*mixerSlot, sides.RemoteAll, 1), w.Memory(c.BQ, 2*mixerSlot, sides.RemoteAll, 2)
	mixers := make([]*mixer, 2)
	for i, q := range []*sides.Queues{c.AQ, c.BQ} {
		far := []*verbs.MR{b, a}[i]
		mixers[i] = &mixer{
			w: w, rng: rand.New(rand.NewPCG(7, uint64(i))), q: q,
			far: far, near: w.Memory(q, mixerSlots*mixerSlot, verbs.LocalWrite, 3), model: slices.Clone(far.Bytes),
		}
		for range 2 * mixerSlots {
			w.Must(q.QP.PostRecv(verbs.RecvWR{ID: 100}))
		}
		recvs := 0
		q.Then = func() {
			for n := len(q.Of(verbs.Recv)); recvs < n; recvs++ {
				w.Must(q.QP.PostRecv(verbs.RecvWR{ID: 100}))
			}
		}
	}
	for _, m := range mixers {
		// One side goes on while the other's completions are on their way.
		w.Until("room for the next work request", func() bool {
			for _, m := range mixers {
				for len(m.posted) < steps && m.postNext() {
				}
			}
			return len(m.posted) == steps
		})
	}
	for _, m := range mixers {
		w.Until("the last completion", func() bool { return len(m.q.Of(verbs.Send)) == steps })
		for i := steps - mixerSlots; i < steps; i++ {
			m.checkOutcome(i)
		}
	}
	w.Until("the last Write", func() bool { return slices.Equal(a.Bytes, mixers[1].model) && slices.Equal(b.Bytes, mixers[0].model) })
}
