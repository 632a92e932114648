package uverbs

import "github.com/rdmactor/rdmactor/verbs"

// postOrKeep hands a send to the device, or keeps it. It returns false when there is no room.
func (q *queuePair) postOrKeep(wr *verbs.SendWR, total uint32, reported bool) bool {
	if q.dev.siw && q.backlog.mustWait(wr, total) {
		q.backlog.keepSend(q.sends.tail, wr, q.list, total, reported)
		return true
	}
	return q.handToDevice(q.sends.tail, wr, q.list, total, reported)
}

func (q *queuePair) handToDevice(cookie uint64, wr *verbs.SendWR, list []place, total uint32, reported bool) bool {
	if !q.sq.Put(cookie, wr, list, total, reported) {
		return false
	}
	if wr.Op == verbs.Read && total > 0 {
		q.backlog.flying++
	}
	q.scheduleAnnounce()
	return true
}

// scheduleAnnounce schedules the announcement of posted sends for the end of the turn.
func (q *queuePair) scheduleAnnounce() {
	if !q.dirty {
		q.dirty = true
		q.dev.dirty = append(q.dev.dirty, q)
		q.dev.deferRun()
	}
}

// readDone handles the end of a Read: sends that waited for it are handed to the device.
func (q *queuePair) readDone() {
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
		if h.mustWait(&s.wr, s.total) || !q.handToDevice(s.cookie, &s.wr, s.list, s.total, s.reported) {
			break
		}
		i++
	}
	for ; h.n+i < len(waiting); h.n++ { // their memory is swapped, so that none is used twice
		waiting[h.n], waiting[h.n+i] = waiting[h.n+i], waiting[h.n]
	}
}
