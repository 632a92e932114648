package memory

import (
	"container/list"
	"fmt"
	"math/bits"
	"slices"

	"github.com/rdmactor/rdmactor/verbs"
)

// RegionCache is registered memory for large messages: one region for each, of about its size. A
// region that comes back is kept for the next message of that size. The idle regions have at most
// as many bytes as those in use, or as spare. Loop goroutine.
type RegionCache struct {
	dev     verbs.Device
	pd      verbs.PD
	access  verbs.Access
	budget  *Budget
	spare   int      // bytes
	idle    []*Chunk // the latest returned is last
	free    int      // bytes of them
	used    int      // bytes handed out
	out     int      // chunks
	filling int      // of these, still being read into
	closed  bool
	kept    *list.Element // of budget.keepers
}

// NewRegionCache is a cache of regions in pd, for one connection or for all that share it.
func NewRegionCache(dev verbs.Device, pd verbs.PD, access verbs.Access, b *Budget, own bool) *RegionCache {
	spare := sharedSpare
	if own {
		spare = ownSpare
	}
	s := &RegionCache{dev: dev, pd: pd, access: access, budget: b, spare: spare}
	s.kept = b.keepers.PushBack(s)
	return s
}

// How many idle bytes a cache may always keep: one that all connections of a loop share, and one of
// a single connection.
const (
	sharedSpare = 8 << 20
	ownSpare    = 2 << 20
)

// RegionSize is the size of the region for n bytes: at most a quarter more, so that few sizes
// serve all.
func RegionSize(n int) int {
	step := max(4096, 1<<bits.Len(uint(n-1))>>3)
	return (n + step - 1) &^ (step - 1)
}

// Fitting is the largest message whose region has at most n bytes.
func Fitting(n int) int {
	step := max(4096, 1<<bits.Len(uint(n-1))>>3)
	return n &^ (step - 1)
}

// Get hands out memory for n bytes. The caller has asked the budget.
func (s *RegionCache) Get(n int) (*Chunk, error) {
	size := RegionSize(n)
	s.budget.lendLarge(size)
	for i := len(s.idle) - 1; i >= 0; i-- {
		c := s.idle[i]
		if int(c.SGE.Length) != size {
			continue
		}
		s.idle = slices.Delete(s.idle, i, i+1)
		s.free -= size
		s.used += size
		s.out++
		c.Check()
		return c, nil
	}
	mr, err := s.pd.Alloc(size, s.access)
	if err != nil {
		s.budget.unlendLarge(size)
		return nil, fmt.Errorf("alloc %d bytes on %s: %w", size, s.dev.Name(), err)
	}
	s.budget.Free -= size
	s.used += size
	s.out++
	return &Chunk{home: s, large: true, SGE: verbs.SGE{MR: mr, Length: uint32(size)}}, nil
}

// returnChunk takes back what Get has handed out.
func (s *RegionCache) returnChunk(c *Chunk) {
	n := int(c.SGE.Length)
	s.used -= n
	s.out--
	s.idle = append(s.idle, c)
	s.free += n
	for s.free > max(s.used, s.spare) || s.closed && s.free > 0 {
		s.releaseOldest()
	}
	s.budget.unlendLarge(n)
}

// releaseOldest returns to the device the region that has been idle for longest.
func (s *RegionCache) releaseOldest() {
	c := s.idle[0]
	s.idle = slices.Delete(s.idle, 0, 1)
	s.free -= int(c.SGE.Length)
	s.budget.returnFree(int(c.SGE.Length))
	// nothing posted names it; the error of a removed device does not matter
	_ = s.dev.Free(c.SGE.MR)
}

// Reclaim gives the device back everything that is idle.
func (s *RegionCache) Reclaim() {
	for len(s.idle) > 0 {
		s.releaseOldest()
	}
}

// Close returns the idle regions, and from now on each returned one.
func (s *RegionCache) Close() {
	s.closed = true
	s.Reclaim()
	s.budget.keepers.Remove(s.kept)
}

// Fill notes that a region which was handed out is being read into.
func (s *RegionCache) Fill() { s.filling++ }

// Filled is the end of Fill.
func (s *RegionCache) Filled() { s.filling-- }

// Held is how many regions are handed out and not being read into.
func (s *RegionCache) Held() int { return s.out - s.filling }
