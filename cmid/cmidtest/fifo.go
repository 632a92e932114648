package cmidtest

// fifo is a ring that keeps its memory.
type fifo[T any] struct {
	ring []T
	head int
	n    int
}

func (q *fifo[T]) len() int { return q.n }

func (q *fifo[T]) push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(2*len(q.ring), 8))
		for i := range q.n {
			ring[i] = *q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = v
	q.n++
}

func (q *fifo[T]) at(i int) *T { return &q.ring[(q.head+i)%len(q.ring)] }

func (q *fifo[T]) pop() T {
	var zero T
	v := q.ring[q.head]
	q.ring[q.head] = zero
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return v
}

func (q *fifo[T]) pushFront(v T) {
	if q.n == 0 {
		q.push(v)
		return
	}
	if q.n == len(q.ring) {
		q.push(v) // grows, and makes room
		q.n--
	}
	q.head = (q.head - 1 + len(q.ring)) % len(q.ring)
	q.ring[q.head] = v
	q.n++
}
