package memory

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/rdmactor/rdmactor/verbs"
)

// RegionCache is registered memory for large messages: one region for each, of about its size. What comes back is kept for the next of that
// size, but no more than is in use, or spare. Loop goroutine.
type RegionCache struct {
	dev     verbs.Device
	pd      verbs.PD
	access  verbs.Access
	budget  *Budget
	Spare   int      // bytes
	idle    []*Chunk // what came back last is last
	free    int      // bytes of them
	used    int      // bytes of what is handed out
	Out     int      // chunks
	Filling int      // of them those that are still being read into
	closed  bool
}

func NewRegionCache(dev verbs.Device, pd verbs.PD, access verbs.Access, b *Budget, spare int) *RegionCache {
	s := &RegionCache{dev: dev, pd: pd, access: access, budget: b, Spare: spare}
	b.keepers[s] = struct{}{}
	return s
}

// The bytes that a cache keeps in any case: one that all connections of a loop share, and one of a connection's own.
const (
	SharedSpare = 8 << 20
	OwnSpare    = 2 << 20
)

// Sized is the size of the region for n bytes: at most a quarter more, so that few sizes serve all.
func Sized(n int) int {
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
	size := Sized(n)
	s.budget.Lend(size)
	for i := len(s.idle) - 1; i >= 0; i-- {
		c := s.idle[i]
		if int(c.SGE.Length) != size {
			continue
		}
		s.idle = slices.Delete(s.idle, i, i+1)
		s.free -= size
		s.used += size
		s.Out++
		c.check()
		return c, nil
	}
	mr, err := s.pd.Alloc(size, s.access)
	if err != nil {
		s.budget.Unlend(size)
		return nil, fmt.Errorf("alloc %d bytes on %s: %w", size, s.dev.Name(), err)
	}
	s.budget.Free -= size
	s.used += size
	s.Out++
	return &Chunk{RegionCache: s, SGE: verbs.SGE{MR: mr, Length: uint32(size)}}, nil
}

// Put takes back what get has handed out.
func (s *RegionCache) Put(c *Chunk) {
	n := int(c.SGE.Length)
	s.used -= n
	s.Out--
	s.idle = append(s.idle, c)
	s.free += n
	for s.free > max(s.used, s.Spare) || s.closed && s.free > 0 {
		s.drop()
	}
	s.budget.Unlend(n)
}

// drop gives the device back what has been idle for longest.
func (s *RegionCache) drop() {
	c := s.idle[0]
	s.idle = slices.Delete(s.idle, 0, 1)
	s.free -= int(c.SGE.Length)
	s.budget.Give(int(c.SGE.Length))
	_ = s.dev.Free(c.SGE.MR) // nothing posted names it; what a device that has gone says of it does not matter
}

// reclaim gives the device back everything that is idle.
func (s *RegionCache) reclaim() {
	for len(s.idle) > 0 {
		s.drop()
	}
}

// Close gives back what is idle, and from now on what comes back.
func (s *RegionCache) Close() {
	s.closed = true
	s.reclaim()
	delete(s.budget.keepers, s)
}
