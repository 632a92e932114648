package rpc

import (
	"runtime"
	"slices"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// A large answer or item travels in parts, between which other frames are sent. The loop copies
// each part out of the message that it came in, and the goroutine that uses the whole joins them.

// parts are those of an answer or an item that is arriving.
type parts struct {
	all []*buffer
	n   int // bytes
}

// add copies a part. Small ones share a buffer, so that they do not take more memory than large
// ones. most is the size of the largest message that this side takes.
func (p *parts) add(id wire.CallID, body []byte, most int) error {
	if p.n += len(body); p.n > most-wire.HeaderLen {
		return violation("parts of call %#x that have more than %d bytes", id, most-wire.HeaderLen)
	}
	if len(body) == 0 {
		return nil
	}
	var b *buffer
	if last := len(p.all) - 1; last >= 0 && cap(p.all[last].b)-len(p.all[last].b) >= len(body) {
		b = p.all[last]
	} else {
		b = getBuffer()
		b.b = slices.Grow(b.b, max(len(body), smallBuffer))
		p.all = append(p.all, b)
	}
	b.b = append(b.b, body...)
	return nil
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
	p.drop()
	return dst
}

// drop releases the memory of the parts.
func (p *parts) drop() {
	for _, b := range p.all {
		b.put(len(b.b))
	}
	*p = parts{}
}
