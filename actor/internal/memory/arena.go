package memory

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// Arena is device memory cut into chunks of one size: receive buffers, or what sends are gathered
// from. It grows by slabs when it is empty, and returns unused slabs. It fills the slabs that are
// in use before it touches another, and hands out the latest returned chunk first, so that few
// slabs are in use for few chunks. Loop goroutine.
type Arena struct {
	dev    verbs.Device
	PD     verbs.PD
	access verbs.Access
	size   int // of a chunk
	bytes  int // of a slab, unless so many chunks need more
	chunks int
	budget *Budget
	open   []*slab // partly used; the last one is handed out from
	idle   []*slab // of which nothing is used
	Slabs  []*slab // all
	free   int     // chunks
	out    int     // chunks handed out
	whole  bool    // keeps no unused slab (InOne)
	closed bool
	kept   *list.Element // of budget.keepers
}

// slab is one memory region.
type slab struct {
	arena *Arena
	MR    *verbs.MR
	n     int      // chunks
	free  []*Chunk // unused chunks; the last one is the warmest
	at    int      // its place among the open ones
}

const (
	// SlabBytes is the size of a slab, but a slab has at least slabChunks chunks. If these need
	// more than slabMost, it has as many as fit into slabMost, at least one.
	SlabBytes  = 256 << 10
	slabChunks = 8
	slabMost   = 1 << 20
	// ownSlabBytes is SlabBytes for the arena of one connection, whose spare chunks no other can
	// use.
	ownSlabBytes = 32 << 10
	// spareSlabs unused slabs are kept, so that the chunks of an active connection are not
	// registered anew each time; one, if two have more than spareMost bytes.
	spareSlabs = 2
	spareMost  = 8 << 20
)

// NewArena is an arena of chunks of size bytes. One connection's (own) grows by less than one that
// many share.
func NewArena(dev verbs.Device, pd verbs.PD, access verbs.Access, size int, own bool, b *Budget) *Arena {
	if own {
		return newArena(dev, pd, access, size, ownSlabBytes, 1, b)
	}
	return newArena(dev, pd, access, size, SlabBytes, min(slabChunks, max(slabMost/size, 1)), b)
}

func newArena(dev verbs.Device, pd verbs.PD, access verbs.Access, size, bytes, chunks int, b *Budget) *Arena {
	a := &Arena{dev: dev, PD: pd, access: access, size: size, bytes: bytes, chunks: chunks, budget: b}
	a.kept = b.keepers.PushBack(a)
	return a
}

// Get hands out a chunk. It returns ENOMEM when the budget is used up, or the device's error.
func (a *Arena) Get() (*Chunk, error) {
	if len(a.open) == 0 {
		if err := a.useSlab(); err != nil {
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
	a.out++
	c.Check()
	return c, nil
}

// GetBeyond is Get, but if the budget is used up it hands out one chunk beyond it. It is for
// connections that have no other chunk, so that the chunks of others slow them down but do not
// stop them.
func (a *Arena) GetBeyond() (*Chunk, error) {
	c, err := a.Get()
	if !errors.Is(err, ErrBudget) {
		return c, err
	}
	if len(a.idle) == 0 {
		if err := a.allocSlab(1); err != nil {
			return nil, err
		}
	}
	a.openIdle()
	return a.Get()
}

// ErrBudget is why there is no memory although the device may have some.
var ErrBudget = fmt.Errorf("it would exceed the limit (Limits): %w", unix.ENOMEM)

// useSlab takes a slab into use. An idle one that is larger than the rest of the budget is
// returned: a smaller one may do.
func (a *Arena) useSlab() error {
	for n := len(a.idle); n > 0; n = len(a.idle) {
		s := a.idle[n-1]
		if a.budget.canUse(s.n * a.size) {
			a.openIdle()
			return nil
		}
		a.releaseSlab(s)
	}
	if err := a.addSlab(); err != nil {
		return err
	}
	a.openIdle()
	return nil
}

// openIdle takes an idle slab into use and opens it.
func (a *Arena) openIdle() {
	s := a.idle[len(a.idle)-1]
	a.idle = a.idle[:len(a.idle)-1]
	a.budget.useSmall(s.n * a.size)
	a.openSlab(s)
}

// openSlab opens a slab: its chunks are handed out.
func (a *Arena) openSlab(s *slab) {
	s.at = len(a.open)
	a.open = append(a.open, s)
}

// addSlab adds a slab, of which nothing is used. None has more than four GiB, which is as far as an
// SGE's Offset goes.
func (a *Arena) addSlab() error {
	n := int(min(int64(max(a.bytes/a.size, a.chunks)), math.MaxUint32/int64(a.size)))
	// little is left: others need some of it
	for n > 1 && (!a.budget.canRegister(n*a.size) || n*a.size > (a.budget.most-a.budget.small)/4) {
		n /= 2
	}
	if bytes := n * a.size; !a.budget.canRegister(bytes) {
		return fmt.Errorf("%d more bytes of device memory: %w", bytes, ErrBudget)
	}
	return a.allocSlab(n)
}

// allocSlab makes a slab of n chunks.
func (a *Arena) allocSlab(n int) error {
	bytes := n * a.size
	mr, err := a.PD.Alloc(bytes, a.access)
	if err != nil {
		return fmt.Errorf("alloc %d bytes on %s: %w", bytes, a.dev.Name(), err)
	}
	a.budget.Free -= bytes
	s := &slab{arena: a, MR: mr, n: n}
	chunks := make([]Chunk, n)
	for i := range chunks {
		c := &chunks[i]
		*c = Chunk{home: s, SGE: verbs.SGE{MR: mr, Offset: uint32(i * a.size), Length: uint32(a.size)}}
		s.free = append(s.free, c)
	}
	a.free += n
	a.Slabs = append(a.Slabs, s)
	a.idle = append(a.idle, s)
	return nil
}

// returnChunk takes a chunk back.
func (s *slab) returnChunk(c *Chunk) {
	a := s.arena
	if a.closed {
		return
	}
	a.free++
	a.out--
	s.free = append(s.free, c)
	if len(s.free) == 1 {
		a.openSlab(s)
	}
	if len(s.free) == s.n {
		last := a.open[len(a.open)-1]
		a.open[s.at], last.at = last, s.at
		a.open = a.open[:len(a.open)-1]
		a.idle = append(a.idle, s)
		a.budget.unuseSmall(s.n * a.size)
	}
	a.trimIdle()
}

// trimIdle returns unused slabs to the device, but keeps as many bytes of them as are in use, and
// the spare ones.
func (a *Arena) trimIdle() {
	for len(a.idle) > 0 {
		s := a.idle[0]
		spare := s.n
		if spareSlabs*s.n*a.size <= spareMost {
			spare *= spareSlabs
		}
		if !a.whole && a.free-s.n < max(a.out, spare) {
			return
		}
		a.releaseSlab(s)
	}
}

// Reclaim returns the unused slabs to the device.
func (a *Arena) Reclaim() {
	for len(a.idle) > 0 {
		a.releaseSlab(a.idle[len(a.idle)-1])
	}
}

// releaseSlab returns an unused slab to the device.
func (a *Arena) releaseSlab(s *slab) {
	a.free -= s.n
	a.idle = slices.DeleteFunc(a.idle, func(other *slab) bool { return other == s })
	a.Slabs = slices.DeleteFunc(a.Slabs, func(other *slab) bool { return other == s })
	a.budget.returnFree(s.n * a.size)
	// nothing posted names it; the error of a removed device does not matter
	_ = a.dev.Free(s.MR)
}

// Close returns everything, also chunks that are still handed out.
func (a *Arena) Close() {
	for _, s := range a.Slabs {
		if len(s.free) < s.n {
			a.budget.unuseSmall(s.n * a.size)
			a.idle = append(a.idle, s)
		}
	}
	a.CloseUnused()
}

// CloseUnused returns the unused slabs. The others stay: on the kernel's devices freed memory is
// unmapped, and an actor that reads it would crash the process.
func (a *Arena) CloseUnused() {
	a.closed = true
	a.Reclaim()
	a.budget.keepers.Remove(a.kept)
}

// Size is the length of a chunk in bytes.
func (a *Arena) Size() int { return a.size }

// Out is how many chunks are handed out.
func (a *Arena) Out() int { return a.out }

// InOne makes the arena grow by regions of n chunks from now on, which are all receives of one
// connection. These are posted again and again, so a region that is unused is not needed before
// another connection is made, and goes back.
func (a *Arena) InOne(n int) { a.bytes, a.chunks, a.whole = n*a.size, n, true }
