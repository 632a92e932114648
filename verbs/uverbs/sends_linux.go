package uverbs

import (
	"math/bits"

	"github.com/rdmactor/rdmactor/verbs"
)

// send is a work request that the kernel has, or that waits for its turn to be reported.
type send struct {
	id       uint64
	bytes    uint32
	op       verbs.Opcode
	signaled bool // its owner wants to hear of success
	reported bool // the kernel reports success
	done     bool // the kernel has reported
	status   verbs.Status
}

// sends are a send queue's work requests, in posting order. Their numbers, the cookies, count all
// that were ever posted.
type sends struct {
	buf        []send // a power of two
	limit      int
	head, tail uint64
	upTo       uint64 // what is before was done, unless its success is reported and was not
}

func newSends(limit int) sends {
	return sends{buf: make([]send, powerOfTwo(limit)), limit: limit}
}

// powerOfTwo rounds up.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

func (s *sends) full() bool { return s.tail-s.head >= uint64(s.limit) }

func (s *sends) at(n uint64) *send { return &s.buf[n&uint64(len(s.buf)-1)] }

func (s *sends) push(w send) {
	*s.at(s.tail) = w
	s.tail++
}

// done is the kernel's report of n. A device completes in posting order what it reports; siw's
// Reads, which it always reports, may be later. It reports whether n is a Read of any bytes.
func (s *sends) done(n uint64, status verbs.Status) (read bool) {
	if n-s.head >= s.tail-s.head || s.at(n).done {
		return false
	}
	w := s.at(n)
	w.done, w.status = true, status
	s.upTo = max(s.upTo, n)
	return w.op == verbs.Read && w.bytes > 0
}

// next gives the oldest one that is done and is to be reported. Those that are done and are not go
// silently.
func (s *sends) next(out *send) bool {
	for s.head < s.tail {
		w := s.at(s.head)
		if !w.done && (w.reported || s.head >= s.upTo) {
			return false
		}
		s.head++
		if w.done && (w.signaled || w.status != verbs.StatusSuccess) {
			*out = *w
			return true
		}
	}
	return false
}

// flush makes what is left flushed, except what was done in silence: unsignaled, and before quiet.
func (s *sends) flush(quiet uint64) {
	for n := s.head; n < s.tail; n++ {
		w := s.at(n)
		if w.done {
			continue
		}
		w.done, w.status = true, verbs.StatusFlushed
		if !w.reported && n < max(quiet, s.upTo) {
			w.status = verbs.StatusSuccess
		}
	}
}

// recvs are a receive queue's work requests, in posting order.
type recvs struct {
	ids        []uint64
	limit      int
	head, tail uint64
}

func newRecvs(limit int) recvs {
	return recvs{ids: make([]uint64, powerOfTwo(limit)), limit: limit}
}

func (r *recvs) full() bool { return r.tail-r.head >= uint64(r.limit) }

func (r *recvs) push(id uint64) {
	r.ids[r.tail&uint64(len(r.ids)-1)] = id
	r.tail++
}

// pop is the oldest. A device completes them in order.
func (r *recvs) pop() uint64 {
	id := r.ids[r.head&uint64(len(r.ids)-1)]
	r.head++
	return id
}

// backlog is the sends that wait here for Reads before them: fenced ones, and Reads beyond what
// the peer serves at once. siw would let them wait in the place of what it sends next, and not
// answer the peer's Reads meanwhile. Two sides that wait so for one another wait for ever.
type backlog struct {
	q      []waitingSend // the oldest first; its elements' memory is used again
	n      int
	flying int // Reads that the device has
	atOnce int // Reads that it may have
}

type waitingSend struct {
	cookie   uint64
	wr       verbs.SendWR
	inline   []byte
	list     []place
	total    uint32
	reported bool
}

// mustWait says whether a send may not go out yet.
func (h *backlog) mustWait(wr *verbs.SendWR, total uint32) bool {
	read := wr.Op == verbs.Read && total > 0
	return h.n > 0 || h.flying > 0 && wr.Flags&verbs.Fence != 0 && !read || read && h.flying >= h.atOnce
}

// keep copies a send that must wait.
func (h *backlog) keep(cookie uint64, wr *verbs.SendWR, list []place, total uint32, reported bool) {
	if h.n == len(h.q) {
		h.q = append(h.q, waitingSend{})
	}
	s := &h.q[h.n]
	h.n++
	s.inline, s.list = append(s.inline[:0], wr.Inline...), append(s.list[:0], list...)
	s.cookie, s.wr, s.total, s.reported = cookie, *wr, total, reported
	s.wr.Inline, s.wr.SGL = s.inline, nil
}
