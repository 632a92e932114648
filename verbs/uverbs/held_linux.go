package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// held are sends that wait here for Reads before them: fenced ones, and Reads beyond what the peer serves at once. siw would let them
// wait in the place of what it sends next, and not answer the peer's Reads meanwhile. Two sides that wait so for one another
// wait for ever.
type held struct {
	q      []heldSend // the oldest first; its elements' memory is used again
	n      int
	flying int // Reads that the device has
	atOnce int // Reads that it may have
}

type heldSend struct {
	cookie uint64
	wr     verbs.SendWR
	inline []byte
	list   []place
	total  uint32
	told   bool
}

// mustWait says whether a send may not go out yet.
func (h *held) mustWait(wr *verbs.SendWR, total uint32) bool {
	read := wr.Op == verbs.Read && total > 0
	return h.n > 0 || h.flying > 0 && wr.Flags&verbs.Fence != 0 && !read || read && h.flying >= h.atOnce
}

// keep copies a send that must wait.
func (h *held) keep(cookie uint64, wr *verbs.SendWR, list []place, total uint32, told bool) {
	if h.n == len(h.q) {
		h.q = append(h.q, heldSend{})
	}
	s := &h.q[h.n]
	h.n++
	s.inline, s.list = append(s.inline[:0], wr.Inline...), append(s.list[:0], list...)
	s.cookie, s.wr, s.total, s.told = cookie, *wr, total, told
	s.wr.Inline, s.wr.SGL = s.inline, nil
}

// put gives a send to the device, or keeps it. False when there is no room.
func (q *queuePair) put(wr *verbs.SendWR, total uint32, told bool) bool {
	if q.dev.siw && q.held.mustWait(wr, total) {
		q.held.keep(q.sends.tail, wr, q.list, total, told)
		return true
	}
	return q.hand(q.sends.tail, wr, q.list, total, told)
}

func (q *queuePair) hand(cookie uint64, wr *verbs.SendWR, list []place, total uint32, told bool) bool {
	if !q.sq.put(cookie, wr, list, total, told) {
		return false
	}
	if wr.Op == verbs.Read && total > 0 {
		q.held.flying++
	}
	q.ring()
	return true
}

// ring has the device told at the end of the turn.
func (q *queuePair) ring() {
	if !q.dirty {
		q.dirty = true
		q.dev.dirty = append(q.dev.dirty, q)
		q.dev.later()
	}
}

// landed is a Read that is done: those that waited for it go.
func (q *queuePair) landed() {
	h := &q.held
	h.flying--
	if h.n == 0 || q.state != verbs.QPRTS {
		return
	}
	waiting := h.q[:h.n]
	h.n = 0
	i := 0
	for i < len(waiting) {
		s := &waiting[i]
		if h.mustWait(&s.wr, s.total) || !q.hand(s.cookie, &s.wr, s.list, s.total, s.told) {
			break
		}
		i++
	}
	for ; h.n+i < len(waiting); h.n++ { // their memory changes places, so that none is used twice
		waiting[h.n], waiting[h.n+i] = waiting[h.n+i], waiting[h.n]
	}
}
