package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// send is a work request that the kernel has, or that waits for its turn to be reported.
type send struct {
	id       uint64
	bytes    uint32
	op       verbs.Opcode
	signaled bool // its owner wants to hear of success
	told     bool // the kernel tells of success
	done     bool // the kernel has told
	status   verbs.Status
}

// sends are a send queue's work requests, in posting order. Their numbers, the cookies, count all that were ever posted.
type sends struct {
	buf        []send // a power of two
	limit      int
	head, tail uint64
	upTo       uint64 // what is before was done, unless its success is told and was not
}

func newSends(limit int) sends {
	n := 1
	for n < limit {
		n *= 2
	}
	return sends{buf: make([]send, n), limit: limit}
}

func (s *sends) full() bool { return s.tail-s.head >= uint64(s.limit) }

func (s *sends) at(n uint64) *send { return &s.buf[n&uint64(len(s.buf)-1)] }

func (s *sends) push(w send) {
	*s.at(s.tail) = w
	s.tail++
}

// done takes the kernel's word for n. A device completes in posting order what it tells of; siw's Reads, of which it always tells, may
// be later. It reports whether n is a Read of any bytes.
func (s *sends) done(n uint64, status verbs.Status) (read bool) {
	if n-s.head >= s.tail-s.head || s.at(n).done {
		return false
	}
	w := s.at(n)
	w.done, w.status = true, status
	s.upTo = max(s.upTo, n)
	return w.op == verbs.Read && w.bytes > 0
}

// next gives the oldest one that is done and is to be reported. Those that are done and are not go silently.
func (s *sends) next(out *send) bool {
	for s.head < s.tail {
		w := s.at(s.head)
		if !w.done && (w.told || s.head >= s.upTo) {
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
		if !w.told && n < max(quiet, s.upTo) {
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
	n := 1
	for n < limit {
		n *= 2
	}
	return recvs{ids: make([]uint64, n), limit: limit}
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
