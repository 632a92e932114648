// Package ring has the FIFO queue that all packages here use, which needs no
// allocation once it is as long as it gets.
package ring

import "math"

// Ring is a FIFO in a ring of memory that doubles when it is full and does not shrink. The zero
// Ring is empty; so is one that is set to it, which gives the memory up. It belongs to one
// goroutine, or to whatever mutex its owner has.
type Ring[T any] struct {
	buf     []T
	head, n uint32
}

// Len returns the number of elements.
func (r *Ring[T]) Len() int { return int(r.n) }

// Cap returns the number of elements that fit without an allocation.
func (r *Ring[T]) Cap() int { return len(r.buf) }

// At returns the element i places behind the oldest, until the next call that adds or removes one.
func (r *Ring[T]) At(i int) *T {
	i += int(r.head)
	if i >= len(r.buf) {
		i -= len(r.buf)
	}
	return &r.buf[i]
}

// Push adds v behind all others.
func (r *Ring[T]) Push(v T) {
	if r.Len() == len(r.buf) {
		r.grow(math.MaxInt)
	}
	r.n++
	*r.At(r.Len() - 1) = v
}

// PushFront adds v before all others, such as a value that Pop returned.
func (r *Ring[T]) PushFront(v T) {
	if r.Len() == len(r.buf) {
		r.grow(math.MaxInt)
	}
	if r.head == 0 {
		r.head = uint32(len(r.buf))
	}
	r.head--
	r.n++
	r.buf[r.head] = v
}

// Pop removes the oldest, of which there must be one. The ring keeps nothing of it.
func (r *Ring[T]) Pop() (v T) {
	var zero T
	v, r.buf[r.head] = r.buf[r.head], zero
	r.Drop()
	return v
}

// Slot adds an element behind all others and returns it, with whatever Drop has left in its place,
// so that slices inside can be used again. The ring grows to limit elements at most; beyond that
// Slot returns nil.
func (r *Ring[T]) Slot(limit int) *T {
	if r.Len() >= limit {
		return nil
	}
	if r.Len() == len(r.buf) {
		r.grow(limit)
	}
	r.n++
	return r.At(r.Len() - 1)
}

// Drop removes the oldest, of which there must be one, and leaves its value in its place.
func (r *Ring[T]) Drop() {
	if r.head++; int(r.head) == len(r.buf) {
		r.head = 0
	}
	r.n--
}

// DropLast removes the youngest, of which there must be one. The ring keeps nothing of it.
func (r *Ring[T]) DropLast() {
	var zero T
	*r.At(r.Len() - 1) = zero
	r.n--
}

func (r *Ring[T]) grow(limit int) {
	buf := make([]T, min(max(2*r.Len(), 1), limit))
	k := copy(buf, r.buf[r.head:])
	copy(buf[k:], r.buf[:r.head])
	r.buf, r.head = buf, 0
}
