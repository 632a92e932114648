package outbox

import (
	"sync"
)

// Buffer is memory for a frame, or for a message that is being encoded.
type Buffer struct {
	B     []byte
	parts []part
}

var buffers = sync.Pool{New: func() any { return new(Buffer) }}

// GetBuffer is an empty buffer.
func GetBuffer() *Buffer { return buffers.Get().(*Buffer) }

// Put gives the buffer back. Large buffers are dropped.
func (b *Buffer) Put() {
	if cap(b.B) > 2*FrameBytes {
		b.B = nil
	}
	b.B = b.B[:0]
	buffers.Put(b)
}
