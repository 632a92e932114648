package rpc

import (
	"runtime"
	"slices"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A large request, answer or item travels in parts, between which other frames are sent. The loop
// copies each part out of the message that it came in, and the goroutine that uses the whole joins
// them.

// parts are those of a request, an answer or an item that is arriving.
type parts struct {
	all   []*buffer
	n     int // bytes
	total int // of a request: bytes when all have arrived; 0: unknown
}

// add copies a part. Small ones share a buffer, so that they do not take more memory than large
// ones. most limits the bytes of all.
func (p *parts) add(id wire.CallID, body []byte, most int) error {
	if len(body) > copyOnLoop {
		return violationError("a part of call %#x that has %d bytes", id, len(body))
	}
	if len(body) > most-p.n {
		return violationError("parts of call %#x that have more than %d bytes", id, most)
	}
	for len(body) > 0 {
		b := p.spareBuffer(len(body))
		n := min(len(body), cap(b.b)-len(b.b))
		b.b = append(b.b, body[:n]...)
		body = body[n:]
		p.n += n
	}
	return nil
}

// spareBuffer returns the last buffer, and adds another one if that is full. n is the number of
// bytes to be stored. The buffers of a request have no more memory than the request, which was
// counted when it was announced.
func (p *parts) spareBuffer(n int) *buffer {
	if last := len(p.all) - 1; last >= 0 && len(p.all[last].b) < cap(p.all[last].b) {
		return p.all[last]
	}
	room := max(n, smallBuffer)
	if p.total > 0 {
		room = min(p.total-p.n, keepBuffer)
	}
	b := new(buffer)
	if p.total == 0 || room == keepBuffer {
		b = getBuffer()
	}
	b.b = slices.Grow(b.b, room)
	p.all = append(p.all, b)
	return b
}

// take returns the parts, and leaves none.
func (p *parts) take() parts {
	all := *p
	*p = parts{}
	return all
}

// join appends the parts to dst and releases their memory.
func (p *parts) join(dst []byte) []byte {
	if cap(dst)-len(dst) < p.n {
		dst = append(make([]byte, 0, len(dst)+p.n), dst...)
	}
	for _, b := range p.all {
		dst = append(dst, b.b...)
		runtime.Gosched() // loops do not wait for the whole
	}
	p.releaseAll()
	return dst
}

// releaseAll releases the memory of the parts.
func (p *parts) releaseAll() {
	for _, b := range p.all {
		b.put(len(b.b))
	}
	*p = parts{}
}
