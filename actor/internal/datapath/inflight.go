package datapath

import (
	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/internal/ring"
)

// flight contains the postings of a send queue that the device has not completed, oldest first. The
// number of a posting is its work request's ID. Postings complete in order, so a completion also
// completes all earlier ones, which may have asked for none. Other code only reads its fields.
type flight struct {
	Depth int // of the send queue
	ring  ring.Ring[Posting]
	head  uint32 // number of the oldest
	// bundled is the memory, in bytes, that the bundles among them are sent from. Once Conn.Abandon
	// has answered their messages it is not kept.
	bundled int32
	quiet   int // posted since the last one that asked for a completion
}

// Posting is a work request of the send queue.
type Posting struct {
	Send  *Outgoing     // a message, or the first of a bundle; nil: none, or answered already
	op    *OneSided     // nil: no one-sided operation. Without a Send either it is a credit update
	chunk *memory.Chunk // memory that a Send is sent from; nil: inline
}

// bundleBytes returns the size of the memory that p is sent from, in bytes, if p is a bundle.
func (p *Posting) bundleBytes() int32 {
	if p.chunk == nil || !p.Send.leadsBundle() {
		return 0
	}
	return int32(p.chunk.Size())
}

// Len returns the number of postings.
func (f *flight) Len() int { return f.ring.Len() }

// hasRoom reports whether the send queue has room for another posting.
func (f *flight) hasRoom() bool { return f.Len() < f.Depth }

// notePosted notes whether the newest posting is quiet, which means that it asks for no completion.
func (f *flight) notePosted(quiet bool) {
	f.quiet++
	if !quiet {
		f.quiet = 0
	}
}

// willComplete reports whether the device will report a completion.
func (f *flight) willComplete() bool { return f.quiet < f.Len() }

// hasCompleted reports whether the posting of that number has completed.
func (f *flight) hasCompleted(number uint32) bool { return int32(f.head-number) > 0 }

// nextNumber returns the number of the next posting.
func (f *flight) nextNumber() uint32 { return f.head + uint32(f.Len()) }

func (f *flight) postingAt(number uint32) *Posting { return f.ring.At(int(number - f.head)) }

// Push adds a posting and gives its number.
func (f *flight) Push(p Posting) (number uint32) {
	f.ring.Push(p)
	f.bundled += p.bundleBytes()
	return f.nextNumber() - 1
}

// dropNewest removes the newest: the device did not take it.
func (f *flight) dropNewest() {
	f.bundled -= f.postingAt(f.nextNumber() - 1).bundleBytes()
	f.ring.DropLast()
}

// pop takes the oldest, if it is not behind number.
func (f *flight) pop(number uint32) (p Posting, ok bool) {
	if f.Len() == 0 || int32(number-f.head) < 0 {
		return p, false
	}
	f.head++
	p = f.ring.Pop()
	f.bundled -= p.bundleBytes()
	return p, true
}
