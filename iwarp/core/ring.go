package core

// ring is a FIFO that grows on demand. A slot's old value stays in it when it is popped, so that
// slices inside can be reused.
type ring[T any] struct {
	buf  []T
	head int
	n    int
}

const ringMin = 4

// push adds a slot at the end and returns it, with whatever an earlier use left in it. It grows up
// to limit; nil when that many are in.
func (r *ring[T]) push(limit int) *T {
	if r.n >= limit {
		return nil
	}
	if r.n == len(r.buf) {
		b := make([]T, min(max(2*r.n, ringMin), limit))
		k := copy(b, r.buf[r.head:])
		copy(b[k:], r.buf[:r.head])
		r.buf, r.head = b, 0
	}
	r.n++
	return r.at(r.n - 1)
}

// at is the slot i places behind the oldest.
func (r *ring[T]) at(i int) *T {
	i += r.head
	if i >= len(r.buf) {
		i -= len(r.buf)
	}
	return &r.buf[i]
}

// pop removes the oldest.
func (r *ring[T]) pop() {
	r.head++
	if r.head == len(r.buf) {
		r.head = 0
	}
	r.n--
}
