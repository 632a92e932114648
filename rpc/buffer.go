package rpc

import "sync"

// buffer is memory for a message on its way between its encoding and the wire.
type buffer struct {
	b     []byte
	small bool // belongs to smallBuffers
}

// keepBuffer is the largest buffer that is kept for the next use.
const keepBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// smallBuffer is the size of the buffers for small requests. They have a separate pool, so that a
// small request that waits does not occupy a large buffer.
const smallBuffer = 1 << 10

var smallBuffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, smallBuffer), true} }}

// getBufferFor returns memory for n bytes, and not for many more.
func getBufferFor(n int) *buffer {
	if n <= smallBuffer {
		return smallBuffers.Get().(*buffer)
	}
	b := getBuffer()
	if cap(b.b) > 4*n {
		b.put(0)
		b = &buffer{b: make([]byte, 0, n)}
	}
	return b
}

func getBuffer() *buffer { return buffers.Get().(*buffer) }

// put returns the buffer. used is how many bytes its user has needed. If they did not fit, and
// the user has allocated other memory for them, the next user finds room for as many.
func (b *buffer) put(used int) {
	switch {
	case b.small:
		b.b = b.b[:0]
		smallBuffers.Put(b)
		return
	case cap(b.b) > keepBuffer:
		b.b = nil
	case used > cap(b.b) && used <= keepBuffer:
		b.b = make([]byte, 0, max(512, (used+1023)&^1023))
	default:
		b.b = b.b[:0]
	}
	buffers.Put(b)
}
