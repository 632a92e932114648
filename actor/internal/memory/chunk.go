package memory

import (
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/verbs"
)

// Chunk is one buffer: a piece of an arena's slab, a region of a cache, or a copy in Go's heap.
type Chunk struct {
	SGE     verbs.SGE // all of it
	Counted int       // bytes that the user counts it with; 0: it does not count
	home    home
	large   bool // of a cache
	besides int  // bytes that it takes of a budget beside its own

	sharers     int32 // messages that are in it, if they are several
	shared      int32 // bytes that contain them
	overwritten int   // bytes
}

// home is where a chunk goes back to.
type home interface{ returnChunk(*Chunk) }

// Free returns the chunk to its source. No posted work may refer to it.
func (c *Chunk) Free() { c.home.returnChunk(c) }

// Bytes is the chunk's memory.
func (c *Chunk) Bytes() []byte {
	return c.SGE.MR.Bytes[c.SGE.Offset : c.SGE.Offset+c.SGE.Length]
}

// Size is how many bytes the chunk takes of a budget.
func (c *Chunk) Size() int { return int(c.SGE.Length) + c.besides }

// Large reports whether it is a region of a cache.
func (c *Chunk) Large() bool { return c.large }

// Repostable reports whether it is a piece of a slab, into which the device can receive again.
func (c *Chunk) Repostable() bool { return !c.large && c.besides == 0 }

// Share makes n messages share the chunk, in its first bytes. Each one leaves it.
func (c *Chunk) Share(n, bytes int) { c.sharers, c.shared = int32(n), int32(bytes) }

// Leave ends the use of the chunk by a message. It reports whether it was the last that shared it.
func (c *Chunk) Leave() (last bool) {
	if c.sharers > 0 {
		c.sharers--
	}
	return c.sharers == 0
}

// Overwrite overwrites data, a message that was returned, in a build that finds later uses. If no
// other message is in the chunk, it overwrites all before the chunk is returned: the first n bytes,
// or those that messages have shared.
func (c *Chunk) Overwrite(data []byte, n int) {
	switch {
	case !overwrite.On:
		return
	case c.sharers > 1:
		overwrite.Bytes(data)
		return
	case c.sharers == 1:
		n = int(c.shared)
	}
	c.overwritten = min(n, int(c.SGE.Length))
	overwrite.Bytes(c.Bytes()[:c.overwritten])
}

// Check panics if the chunk was written since it was overwritten. From then on it may be written.
func (c *Chunk) Check() {
	if overwrite.On && c.overwritten > 0 {
		overwrite.Check(c.Bytes()[:c.overwritten], "the memory of a Received")
		c.overwritten = 0
	}
}

// Copies is messages that were copied out of receives that are too large for them, into Go's heap.
type Copies struct {
	budget *Budget
	out    int
}

// CopyCost is what a message costs besides its bytes when it is copied: the runtime's overhead.
const CopyCost = 256

// NewCopies counts copies in b.
func NewCopies(b *Budget) Copies { return Copies{budget: b} }

// Copy makes a chunk of Go's heap with the data in it. nil: there is no memory for it.
func (h *Copies) Copy(data []byte) *Chunk {
	if !h.budget.takeSmall(len(data) + CopyCost) {
		return nil
	}
	h.out++
	c := &copied{mr: verbs.MR{Bytes: append([]byte(nil), data...)}}
	c.Chunk = Chunk{SGE: verbs.SGE{MR: &c.mr, Length: uint32(len(data))}, home: h, besides: CopyCost}
	return &c.Chunk
}

// Out returns the number of copies that were not returned.
func (h *Copies) Out() int { return h.out }

func (h *Copies) returnChunk(c *Chunk) {
	h.out--
	h.budget.giveSmall(c.Size())
}

// copied is a chunk of Go's heap.
type copied struct {
	Chunk
	mr verbs.MR
}
