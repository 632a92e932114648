package uverbs

import (
	"math/bits"

	"github.com/rdmactor/rdmactor/verbs"
)

// send is a work request that the kernel has, or whose completion waits for those of earlier ones.
type send struct {
	id       uint64
	bytes    uint32
	op       verbs.Opcode
	signaled bool // the owner wants a completion on success
	reported bool // the kernel reports success
	done     bool // the kernel has reported it
	status   verbs.Status
}

// sends holds a send queue's work requests in posting order. Their cookies number all work requests
// that were ever posted.
type sends struct {
	buf        []send // a power of two
	limit      int
	head, tail uint64
	// all sends before this one are done, except those whose success is to be reported and was not
	// yet
	upTo uint64
}

func newSends(limit int) sends {
	return sends{buf: make([]send, powerOfTwo(limit)), limit: limit}
}

// powerOfTwo rounds n up to a power of two.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

func (s *sends) isFull() bool { return s.tail-s.head >= uint64(s.limit) }

func (s *sends) at(n uint64) *send { return &s.buf[n&uint64(len(s.buf)-1)] }

func (s *sends) push(w send) {
	*s.at(s.tail) = w
	s.tail++
}

// markDone records the kernel's completion of n. A device reports completions in posting order,
// except siw's Reads, which may complete late but are always reported. It reports whether n is a
// Read of more than 0 bytes.
func (s *sends) markDone(n uint64, status verbs.Status) (read bool) {
	if n-s.head >= s.tail-s.head || s.at(n).done {
		return false
	}
	w := s.at(n)
	w.done, w.status = true, status
	s.upTo = max(s.upTo, n)
	return w.op == verbs.Read && w.bytes > 0
}

// next removes the oldest send that is done and must be reported to the owner. On the way it drops
// those that are done but need no report.
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

// flush marks the remaining sends as flushed. The exception is unreported sends before quiet, which
// the device has done without a completion.
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

// recv is a receive that the kernel has.
type recv struct {
	id   uint64
	room uint32 // size in bytes
}

// recvs holds a receive queue's work requests in posting order.
type recvs struct {
	buf        []recv // a power of two
	limit      int
	head, tail uint64
}

func newRecvs(limit int) recvs {
	return recvs{buf: make([]recv, powerOfTwo(limit)), limit: limit}
}

func (r *recvs) isFull() bool { return r.tail-r.head >= uint64(r.limit) }

func (r *recvs) push(w recv) {
	r.buf[r.tail&uint64(len(r.buf)-1)] = w
	r.tail++
}

// pop removes the oldest. A device completes receives in order.
func (r *recvs) pop() recv {
	w := r.buf[r.head&uint64(len(r.buf)-1)]
	r.head++
	return w
}

// backlog holds the sends that wait here for earlier Reads: fenced sends, and Reads beyond the
// number that the peer serves in parallel. If siw got them, they would block its transmit path, so
// it would not answer the peer's Reads either. Two sides in that state would wait for one another
// forever.
type backlog struct {
	q      []waitingSend // oldest first; the memory of the elements is reused
	n      int
	flying int // Reads at the device
	atOnce int // limit of flying
}

type waitingSend struct {
	cookie   uint64
	wr       verbs.SendWR
	inline   []byte
	list     []place
	total    uint32
	reported bool
}

// mustWait reports whether a send must wait.
func (h *backlog) mustWait(wr *verbs.SendWR, total uint32) bool {
	read := wr.Op == verbs.Read && total > 0
	return h.n > 0 || h.flying > 0 && wr.Flags&verbs.Fence != 0 && !read || read && h.flying >= h.atOnce
}

// keepSend copies a send that must wait into the backlog.
func (h *backlog) keepSend(cookie uint64, wr *verbs.SendWR, list []place, total uint32, reported bool) {
	if h.n == len(h.q) {
		h.q = append(h.q, waitingSend{})
	}
	s := &h.q[h.n]
	h.n++
	s.inline, s.list = append(s.inline[:0], wr.Inline...), append(s.list[:0], list...)
	s.cookie, s.wr, s.total, s.reported = cookie, *wr, total, reported
	s.wr.Inline, s.wr.SGL = s.inline, nil
}
