package uverbs

// fifo is a ring that grows on demand and does not shrink.
type fifo[T any] struct {
	buf     []T
	head, n int
}

func (f *fifo[T]) push(v T) {
	if f.n == len(f.buf) {
		b := make([]T, max(16, 2*f.n))
		k := copy(b, f.buf[f.head:])
		copy(b[k:], f.buf[:f.head])
		f.buf, f.head = b, 0
	}
	i := f.head + f.n
	if i >= len(f.buf) {
		i -= len(f.buf)
	}
	f.buf[i] = v
	f.n++
}

func (f *fifo[T]) pop() (v T) {
	var zero T
	v, f.buf[f.head] = f.buf[f.head], zero
	if f.head++; f.head == len(f.buf) {
		f.head = 0
	}
	f.n--
	return v
}
