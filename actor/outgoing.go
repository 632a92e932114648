package actor

import (
	"sync"

	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// headerRoom is what an outgoing message keeps free before its bytes: the header of docs/wire.md.
const headerRoom = wire.HeaderLen

// outgoing is a message on its way to the peer. It is part of what the layer above has for it, so
// that the two are one allocation, and comes back to that from the pool.
type outgoing struct {
	of     any                          // the pointer to what it is part of; it never changes
	notify bool                         // Sent is wanted
	renew  func(p []byte) (rest []byte) // makes one that has waited what it still should be; may be nil

	next  *outgoing // in a pool: more of its class
	buf   []byte    // headerRoom, then the message
	class int8      // the pool it goes back to; -1: none
	taken bool      // a connection has it, or a pool
	seq   uint32    // its place among what waits
	mr    verbs.MR  // of buf, where the device sends from it
}

// The pools of outgoing messages: one for each power of two from 64 bytes to 16 MiB.
const (
	minSendShift = 6
	maxSendShift = 24
)

// An element is a chain of messages: what completes together comes back together, which costs the
// pool's locked instructions once.
var outgoingPools [maxSendShift - minSendShift + 1]sync.Pool

// pooled takes a message of n bytes from its pool, with whatever they were before; nil: it has none.
func pooled(n int) *outgoing {
	class := sizeClass(n, minSendShift)
	if class >= len(outgoingPools) {
		return nil
	}
	pool := &outgoingPools[class]
	o, ok := pool.Get().(*outgoing)
	if !ok {
		return nil
	}
	if o.next != nil {
		pool.Put(o.next)
		o.next = nil
	}
	overwrite.Check(o.buf[:cap(o.buf)], "a Send")
	o.buf = o.buf[:headerRoom+n]
	o.taken = false
	return o
}

// init makes o a message of n bytes that is part of what of points to.
func (o *outgoing) init(of any, n int) {
	class := sizeClass(n, minSendShift)
	o.of = of
	if class >= len(outgoingPools) {
		o.buf, o.class = make([]byte, headerRoom+n), -1
		return
	}
	o.buf, o.class = make([]byte, headerRoom+n, headerRoom+1<<(class+minSendShift)), int8(class)
}

// sizeClass is the number of the power of two that n fits in, counted from 1<<shift.
func sizeClass(n, shift int) (class int) {
	for n > 1<<(class+shift) {
		class++
	}
	return class
}

// bytes is the message.
func (o *outgoing) bytes() []byte { return o.buf[headerRoom:] }

// len is its length in bytes.
func (o *outgoing) len() int { return len(o.buf) - headerRoom }

// take marks it as a connection's, or as given back.
func (o *outgoing) take() { o.taken = true }

// as is o with what its sender wants of it.
func (o *outgoing) as(notify bool, renew func([]byte) []byte) *outgoing {
	o.notify, o.renew = notify, renew
	return o
}

// usable reports whether it was made, and neither taken by a connection nor given back.
func (o *outgoing) usable() bool { return o.buf != nil && !o.taken }

// recycle gives the memory back to the pool.
func (o *outgoing) recycle() {
	var c outgoingChain
	c.add(o)
	c.put()
}

// outgoingChain is messages on their way back to a pool, all of one class.
type outgoingChain struct{ first *outgoing }

// add takes o, whose owner is finished with it.
func (c *outgoingChain) add(o *outgoing) {
	if o.class < 0 {
		return
	}
	if c.first != nil && c.first.class != o.class {
		c.put()
	}
	*o = outgoing{of: o.of, next: c.first, buf: o.buf[:cap(o.buf)], class: o.class, taken: true}
	overwrite.Bytes(o.buf)
	c.first = o
}

// put gives the chain to its pool.
func (c *outgoingChain) put() {
	if c.first != nil {
		outgoingPools[c.first.class].Put(c.first)
		c.first = nil
	}
}
