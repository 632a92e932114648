package memory

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/verbs"
)

// Arena is device memory cut into chunks of one size: receive buffers, or what sends are gathered
// from. It grows by slabs when it is empty, and gives slabs back that nobody uses. It fills the
// slabs that are in use before it touches another, and hands out what came back last, so that few
// slabs are in use for few chunks. Loop goroutine.
type Arena struct {
	dev    verbs.Device
	PD     verbs.PD
	access verbs.Access
	Size   int // of a chunk
	Bytes  int // of a slab, unless so many chunks need more
	Chunks int
	budget *Budget
	open   []*slab // partly used; the last one is handed out from
	idle   []*slab // of which nothing is used
	Slabs  []*slab // all
	free   int     // chunks
	Out    int     // chunks handed out
	closed bool
}

// Chunk is one buffer, of an arena or of a region cache.
type Chunk struct {
	Arena       *Arena
	slab        *slab
	RegionCache *RegionCache
	Copied      bool      // it is a copy in Go's heap
	Counted     bool      // counted as a message's
	SGE         verbs.SGE // all of it

	spoilt int // bytes; see Spoil
}

// slab is one memory region.
type slab struct {
	MR   *verbs.MR
	n    int      // chunks
	free []*Chunk // of them; the last one is the warmest
	at   int      // its place among the open ones
}

const (
	// SlabBytes is how much is asked of the device at a time, unless slabChunks need more; of
	// chunks so large that these need more than slabMost it is as many as fit, at least one.
	SlabBytes  = 256 << 10
	SlabChunks = 8
	SlabMost   = 1 << 20
	// spareSlabs stay though nobody uses them: what a connection that talks takes and gives back all the time must not go to the
	// device and come back each time.
	spareSlabs = 2
)

func NewArena(dev verbs.Device, pd verbs.PD, access verbs.Access, size, bytes, chunks int, b *Budget) *Arena {
	a := &Arena{dev: dev, PD: pd, access: access, Size: size, Bytes: bytes, Chunks: chunks, budget: b}
	b.keepers[a] = struct{}{}
	return a
}

// Get hands out a chunk. ENOMEM when the budget is used up, or what the device says.
func (a *Arena) Get() (*Chunk, error) {
	if len(a.open) == 0 {
		if err := a.touch(); err != nil {
			return nil, err
		}
	}
	s := a.open[len(a.open)-1]
	c := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	if len(s.free) == 0 {
		a.open = a.open[:len(a.open)-1]
	}
	a.free--
	a.Out++
	c.check()
	return c, nil
}

// GetBeyond is get, and where the budget is used up hands out one chunk beyond it: for who has
// nothing else of it, so that what others hold slows it down and does not stop it.
func (a *Arena) GetBeyond() (*Chunk, error) {
	c, err := a.Get()
	if !errors.Is(err, ErrBudget) {
		return c, err
	}
	if len(a.idle) == 0 {
		if err := a.add(1); err != nil {
			return nil, err
		}
	}
	a.use()
	return a.Get()
}

// ErrBudget is why there is no memory although the device may have some.
var ErrBudget = fmt.Errorf("it would exceed the limit (WithLimits): %w", unix.ENOMEM)

// touch takes a slab into use. One for which too little is left is given back: a smaller one may do.
func (a *Arena) touch() error {
	for n := len(a.idle); n > 0; n = len(a.idle) {
		s := a.idle[n-1]
		if a.budget.lets(s.n * a.Size) {
			a.use()
			return nil
		}
		a.drop(s)
	}
	if err := a.grow(); err != nil {
		return err
	}
	a.use()
	return nil
}

// use has chunks handed out of an idle slab.
func (a *Arena) use() {
	s := a.idle[len(a.idle)-1]
	a.idle = a.idle[:len(a.idle)-1]
	a.budget.Use(s.n * a.Size)
	a.show(s)
}

// show has chunks handed out of a slab.
func (a *Arena) show(s *slab) {
	s.at = len(a.open)
	a.open = append(a.open, s)
}

// grow adds a slab, of which nothing is used. None has more than four GiB, which is as far as an
// SGE's Offset goes.
func (a *Arena) grow() error {
	n := min(max(a.Bytes/a.Size, a.Chunks), math.MaxUint32/a.Size)
	for n > 1 && (!a.budget.Has(n*a.Size) || n*a.Size > (a.budget.Most-a.budget.small)/4) { // little is left: others need some of it
		n /= 2
	}
	if bytes := n * a.Size; !a.budget.Has(bytes) {
		return fmt.Errorf("%d more bytes of device memory: %w", bytes, ErrBudget)
	}
	return a.add(n)
}

// add makes a slab of n chunks.
func (a *Arena) add(n int) error {
	bytes := n * a.Size
	mr, err := a.PD.Alloc(bytes, a.access)
	if err != nil {
		return fmt.Errorf("alloc %d bytes on %s: %w", bytes, a.dev.Name(), err)
	}
	a.budget.Free -= bytes
	s := &slab{MR: mr, n: n}
	chunks := make([]Chunk, n)
	for i := range chunks {
		c := &chunks[i]
		*c = Chunk{Arena: a, slab: s, SGE: verbs.SGE{MR: mr, Offset: uint32(i * a.Size), Length: uint32(a.Size)}}
		s.free = append(s.free, c)
	}
	a.free += n
	a.Slabs = append(a.Slabs, s)
	a.idle = append(a.idle, s)
	return nil
}

// Put takes a chunk back.
func (a *Arena) Put(c *Chunk) {
	if a.closed {
		return
	}
	a.free++
	a.Out--
	s := c.slab
	s.free = append(s.free, c)
	if len(s.free) == 1 {
		a.show(s)
	}
	if len(s.free) == s.n {
		last := a.open[len(a.open)-1]
		a.open[s.at], last.at = last, s.at
		a.open = a.open[:len(a.open)-1]
		a.idle = append(a.idle, s)
		a.budget.Unuse(s.n * a.Size)
	}
	a.trim()
}

// trim gives back the slabs that nobody uses, but as much as is in use, and the spare ones.
func (a *Arena) trim() {
	for len(a.idle) > 0 {
		s := a.idle[0]
		if a.free-s.n < max(a.Out, spareSlabs*s.n) {
			return
		}
		a.drop(s)
	}
}

// reclaim gives the device back the slabs that nobody uses.
func (a *Arena) reclaim() {
	for len(a.idle) > 0 {
		a.drop(a.idle[len(a.idle)-1])
	}
}

// drop gives a slab back, of which nothing is used.
func (a *Arena) drop(s *slab) {
	a.free -= s.n
	a.idle = slices.DeleteFunc(a.idle, func(other *slab) bool { return other == s })
	a.Slabs = slices.DeleteFunc(a.Slabs, func(other *slab) bool { return other == s })
	a.budget.Give(s.n * a.Size)
	_ = a.dev.Free(s.MR) // nothing posted names it; what a device that has gone says of it does not matter
}

// Close gives everything back, also what is still handed out.
func (a *Arena) Close() {
	for _, s := range a.Slabs {
		if len(s.free) < s.n {
			a.budget.Unuse(s.n * a.Size)
			a.idle = append(a.idle, s)
		}
	}
	a.CloseUnused()
}

// CloseUnused gives back the slabs that nobody uses. The others are left as they are: on the kernel's devices freed memory is unmapped,
// and an actor that reads it is a fault that ends the process.
func (a *Arena) CloseUnused() {
	a.closed = true
	a.reclaim()
	delete(a.budget.keepers, a)
}

// Spoil overwrites what is given back and held n bytes, in a build that does so.
func (c *Chunk) Spoil(n int) {
	if overwrite.On {
		c.spoilt = min(n, int(c.SGE.Length))
		overwrite.Bytes(c.Bytes()[:c.spoilt])
	}
}

// check looks whether what is handed out was left alone since it was spoilt.
func (c *Chunk) check() {
	if overwrite.On && c.spoilt > 0 {
		overwrite.Check(c.Bytes()[:c.spoilt], "the memory of a Received")
		c.spoilt = 0
	}
}

// Bytes is a chunk's memory.
func (c *Chunk) Bytes() []byte {
	return c.SGE.MR.Bytes[c.SGE.Offset : c.SGE.Offset+c.SGE.Length]
}

// CopyCost is what a message costs besides its bytes when it is copied: what the runtime needs to
// keep it.
const CopyCost = 256

// Size is what a chunk takes of a budget.
func (b *Chunk) Size() int {
	if b.Copied {
		return int(b.SGE.Length) + CopyCost
	}
	return int(b.SGE.Length)
}

// copied is a chunk of Go's heap.
type copied struct {
	Chunk
	mr verbs.MR
}

// CopyOf makes a chunk of a copy of data.
func CopyOf(data []byte) *Chunk {
	c := &copied{mr: verbs.MR{Bytes: append([]byte(nil), data...)}}
	c.Chunk = Chunk{Copied: true, SGE: verbs.SGE{MR: &c.mr, Length: uint32(len(data))}}
	return &c.Chunk
}
