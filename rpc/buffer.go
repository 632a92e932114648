package rpc

import "sync"

// buffer is memory for a message on its way between its encoding and the wire.
type buffer struct{ b []byte }

// keepBuffer is the largest buffer that is kept for the next use.
const keepBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func getBuffer() *buffer { return buffers.Get().(*buffer) }

// put gives the memory back; the next user begins with an empty one. used is how much was needed, in whatever memory.
func (b *buffer) put(used int) {
	switch {
	case cap(b.b) > keepBuffer:
		b.b = nil
	case used > cap(b.b) && used <= keepBuffer:
		b.b = make([]byte, 0, max(512, (used+1023)&^1023))
	default:
		b.b = b.b[:0]
	}
	buffers.Put(b)
}
