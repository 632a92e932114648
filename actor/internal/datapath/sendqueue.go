package datapath

// sendQueue is the messages that wait for credits: a ring that grows, bounded by whoever pushes, and holds no memory while empty
// for long.
type sendQueue struct {
	ring []*Outgoing
	head int
	n    int
}

func (q *sendQueue) len() int { return q.n }

func (q *sendQueue) push(s *Outgoing) {
	if q.n == len(q.ring) {
		grown := make([]*Outgoing, max(8, 2*q.n))
		for i := range q.n {
			grown[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = s
	q.n++
}

// at is the i-th; 0 is the oldest, which pop takes.
func (q *sendQueue) at(i int) *Outgoing { return q.ring[(q.head+i)%len(q.ring)] }

func (q *sendQueue) pop() *Outgoing {
	s := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return s
}

// unpop puts back what pop took, or the oldest of an empty queue.
func (q *sendQueue) unpop(s *Outgoing) {
	if q.n == len(q.ring) {
		q.push(s)
		for i := q.n - 1; i > 0; i-- {
			a, b := (q.head+i)%len(q.ring), (q.head+i-1)%len(q.ring)
			q.ring[a], q.ring[b] = q.ring[b], q.ring[a]
		}
		return
	}
	q.head = (q.head + len(q.ring) - 1) % len(q.ring)
	q.ring[q.head] = s
	q.n++
}
