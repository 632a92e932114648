package datapath

import (
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// headerRoom is the free space before the bytes of an outgoing message: the header of docs/wire.md.
const headerRoom = wire.HeaderLen

// Outgoing is a message on its way to the peer. It is part of the layer above's value for the
// message, so that the two are one allocation, and both come back from the pool together. The layer
// that takes a message from its user sets Of again, because the user may have copied the value.
type Outgoing struct {
	Of     any                          // pointer to the value that contains it
	notify bool                         // Sent is wanted
	renew  func(p []byte) (rest []byte) // of one that has waited; may be nil

	next  *Outgoing // in a pool: more of its class; posted: the next message of its bundle
	buf   []byte    // headerRoom, then the message
	class int8      // the pool it goes back to; -1: none
	taken bool      // a connection has it, or a pool
	seq   uint32    // its place in the queue
	mr    verbs.MR  // of buf, where the device sends from it
}

// The pools of outgoing messages: one for each power of two from 64 bytes to 16 MiB.
const (
	minSendShift = 6
	maxSendShift = 24
)

// An element of a pool is a chain of messages: messages that complete together come back together,
// with one access to the pool.
var outgoingPools [maxSendShift - minSendShift + 1]sync.Pool

// Pooled takes a message of n bytes, which are not zeroed, from its pool; nil: the pool is empty.
func Pooled(n int) *Outgoing {
	class := sizeClass(n, minSendShift)
	if class >= len(outgoingPools) {
		return nil
	}
	pool := &outgoingPools[class]
	o, ok := pool.Get().(*Outgoing)
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

// Init makes o a message of n bytes that is part of what of points to.
func (o *Outgoing) Init(of any, n int) {
	class := sizeClass(n, minSendShift)
	o.Of = of
	if class >= len(outgoingPools) {
		o.buf, o.class = make([]byte, headerRoom+n), -1
		return
	}
	o.buf, o.class = make([]byte, headerRoom+n, headerRoom+1<<(class+minSendShift)), int8(class)
}

// sizeClass returns the number of the power of two that n fits in, counted from 1<<shift.
func sizeClass(n, shift int) (class int) {
	for n > 1<<(class+shift) {
		class++
	}
	return class
}

// Bytes returns the message.
func (o *Outgoing) Bytes() []byte { return o.buf[headerRoom:] }

// Len returns its length in bytes.
func (o *Outgoing) Len() int { return len(o.buf) - headerRoom }

// Take marks it as a connection's, or as returned.
func (o *Outgoing) Take() { o.taken = true }

// As sets the sender's wishes, and returns o.
func (o *Outgoing) As(notify bool, renew func([]byte) []byte) *Outgoing {
	o.notify, o.renew = notify, renew
	return o
}

// Usable reports whether it was made, and neither taken by a connection nor returned.
func (o *Outgoing) Usable() bool { return o.buf != nil && !o.taken }

// Recycle returns the memory to the pool.
func (o *Outgoing) Recycle() {
	var c outgoingChain
	c.add(o)
	c.returnToPool()
}

// outgoingChain is messages on their way back to a pool, all of one class.
type outgoingChain struct{ first *Outgoing }

// add takes o, whose owner is finished with it.
func (c *outgoingChain) add(o *Outgoing) {
	if o.class < 0 {
		return
	}
	if c.first != nil && c.first.class != o.class {
		c.returnToPool()
	}
	o.notify, o.renew, o.mr = false, nil, verbs.MR{} // a literal would copy all fields
	o.next, o.buf, o.taken = c.first, o.buf[:cap(o.buf)], true
	overwrite.Bytes(o.buf)
	c.first = o
}

// returnToPool returns the chain to its pool.
func (c *outgoingChain) returnToPool() {
	if c.first != nil {
		outgoingPools[c.first.class].Put(c.first)
		c.first = nil
	}
}

// Inbound is a message that has come from the peer. It is part of the layer above's value for the
// message, so that the two are one allocation, and both are used again.
type Inbound struct {
	Of    any // pointer to the value that contains it; it never changes
	Data  []byte
	Since time.Time     // when it came, if it has had to wait in the connection
	Conn  *Conn         // nil: there is nothing to return
	Chunk *memory.Chunk // contains Data
	// It is a Write with an immediate of the peer's, of so many bytes, and has no data.
	HasImm       bool
	Imm, Written uint32
}

// OneSided is a Read, a Write or an atomic operation for Conn.OneSided. It is part of its issuer's
// value, so that it costs no allocation, and must not change until it has ended. Loop goroutine.
type OneSided struct {
	Op    verbs.Opcode
	Fence bool // wait for the Reads before it
	// here: where a Write's bytes are, and a Read's go. Memory of its Conn's domain; no MR: no
	// bytes
	Near verbs.SGE
	Addr uint64 // the peer's
	RKey uint32
	Imm  uint32 // of verbs.WriteWithImm
	AtomicOperands
	Issuer OpIssuer

	seq uint32 // its place in the queue
}

// AtomicOperands are an atomic operation's integers; of others both are 0.
type AtomicOperands struct {
	CompareAdd, Swap uint64
}

// OpIssuer gets an operation's end.
type OpIssuer interface {
	// Ended is called once for every operation that Conn.OneSided took, possibly from within that
	// call: the device is finished with it and with its memory. err: opError's, or PostSend's;
	// errFlushed if the queue pair had ended before.
	Ended(c *Conn, o *OneSided, err error)
	// Abandoned is called before that, at most once, if the identifier's actor ends while the
	// device still has the operation: its sender has to be answered. Ended follows when the
	// device gives the queue pair back, and never if it does not; until then the memory is the
	// device's.
	Abandoned(c *Conn, o *OneSided)
}
