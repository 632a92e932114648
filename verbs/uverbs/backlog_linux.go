package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// put hands a send to the device, or keeps it. It returns false when there is no room.
func (q *queuePair) put(wr *verbs.SendWR, total uint32, reported bool) bool {
	if q.dev.siw && q.backlog.mustWait(wr, total) {
		q.backlog.keep(q.sends.tail, wr, q.list, total, reported)
		return true
	}
	return q.hand(q.sends.tail, wr, q.list, total, reported)
}

func (q *queuePair) hand(cookie uint64, wr *verbs.SendWR, list []place, total uint32, reported bool) bool {
	if !q.sq.Put(cookie, wr, list, total, reported) {
		return false
	}
	if wr.Op == verbs.Read && total > 0 {
		q.backlog.flying++
	}
	q.ring()
	return true
}

// ring makes the device be notified at the end of the turn.
func (q *queuePair) ring() {
	if !q.dirty {
		q.dirty = true
		q.dev.dirty = append(q.dev.dirty, q)
		q.dev.later()
	}
}

// landed is called when a Read is done: sends that waited for it are given to the device.
func (q *queuePair) landed() {
	h := &q.backlog
	h.flying--
	if h.n == 0 || q.state != verbs.QPRTS {
		return
	}
	waiting := h.q[:h.n]
	h.n = 0
	i := 0
	for i < len(waiting) {
		s := &waiting[i]
		if h.mustWait(&s.wr, s.total) || !q.hand(s.cookie, &s.wr, s.list, s.total, s.reported) {
			break
		}
		i++
	}
	for ; h.n+i < len(waiting); h.n++ { // their memory is swapped, so that none is used twice
		waiting[h.n], waiting[h.n+i] = waiting[h.n+i], waiting[h.n]
	}
}
