package datapath

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// arena is device memory cut into chunks of one size: receive buffers, or what sends are gathered
// from. It grows by slabs when it is empty, and gives slabs back that nobody uses. It fills the
// slabs that are in use before it touches another, and hands out what came back last, so that few
// slabs are in use for few chunks. Loop goroutine.
type arena struct {
	dev    verbs.Device
	PD     verbs.PD
	access verbs.Access
	size   int // of a chunk
	bytes  int // of a slab, unless so many chunks need more
	chunks int
	budget *budget
	open   []*slab // partly used; the last one is handed out from
	idle   []*slab // of which nothing is used
	Slabs  []*slab // all
	free   int     // chunks
	out    int     // chunks handed out
	closed bool
}

// chunk is one buffer, of an arena or of a stock.
type chunk struct {
	arena *arena
	slab  *slab
	stock *stock
	pool  *recvPool // of a copy in Go's heap
	held  bool      // counted as a message's
	SGE   verbs.SGE // all of it

	spoilt int // bytes; see spoil
}

// slab is one memory region.
type slab struct {
	MR   *verbs.MR
	n    int      // chunks
	free []*chunk // of them; the last one is the warmest
	at   int      // its place among the open ones
}

const (
	// SlabBytes is how much is asked of the device at a time, unless slabChunks need more; of
	// chunks so large that these need more than slabMost it is as many as fit, at least one.
	SlabBytes  = 256 << 10
	slabChunks = 2 * recvBatch
	slabMost   = 1 << 20
	// spareSlabs stay though nobody uses them: what a connection that talks takes and gives back all the time must not go to the
	// device and come back each time.
	spareSlabs = 2
)

func newArena(dev verbs.Device, pd verbs.PD, access verbs.Access, size, bytes, chunks int, b *budget) *arena {
	a := &arena{dev: dev, PD: pd, access: access, size: size, bytes: bytes, chunks: chunks, budget: b}
	b.keepers[a] = struct{}{}
	return a
}

// Get hands out a chunk. ENOMEM when the budget is used up, or what the device says.
func (a *arena) Get() (*chunk, error) {
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
	a.out++
	c.check()
	return c, nil
}

// getBeyond is get, and where the budget is used up hands out one chunk beyond it: for who has
// nothing else of it, so that what others hold slows it down and does not stop it.
func (a *arena) getBeyond() (*chunk, error) {
	c, err := a.Get()
	if !errors.Is(err, errBudget) {
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

// errBudget is why there is no memory although the device may have some.
var errBudget = fmt.Errorf("it would exceed the limit (WithLimits): %w", unix.ENOMEM)

// touch takes a slab into use. One for which too little is left is given back: a smaller one may do.
func (a *arena) touch() error {
	for n := len(a.idle); n > 0; n = len(a.idle) {
		s := a.idle[n-1]
		if a.budget.lets(s.n * a.size) {
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
func (a *arena) use() {
	s := a.idle[len(a.idle)-1]
	a.idle = a.idle[:len(a.idle)-1]
	a.budget.use(s.n * a.size)
	a.show(s)
}

// show has chunks handed out of a slab.
func (a *arena) show(s *slab) {
	s.at = len(a.open)
	a.open = append(a.open, s)
}

// grow adds a slab, of which nothing is used. None has more than four GiB, which is as far as an
// SGE's Offset goes.
func (a *arena) grow() error {
	n := min(max(a.bytes/a.size, a.chunks), math.MaxUint32/a.size)
	for n > 1 && (!a.budget.has(n*a.size) || n*a.size > (a.budget.most-a.budget.small)/4) { // little is left: others need some of it
		n /= 2
	}
	if bytes := n * a.size; !a.budget.has(bytes) {
		return fmt.Errorf("%d more bytes of device memory: %w", bytes, errBudget)
	}
	return a.add(n)
}

// add makes a slab of n chunks.
func (a *arena) add(n int) error {
	bytes := n * a.size
	mr, err := a.PD.Alloc(bytes, a.access)
	if err != nil {
		return fmt.Errorf("alloc %d bytes on %s: %w", bytes, a.dev.Name(), err)
	}
	a.budget.Free -= bytes
	s := &slab{MR: mr, n: n}
	chunks := make([]chunk, n)
	for i := range chunks {
		c := &chunks[i]
		*c = chunk{arena: a, slab: s, SGE: verbs.SGE{MR: mr, Offset: uint32(i * a.size), Length: uint32(a.size)}}
		s.free = append(s.free, c)
	}
	a.free += n
	a.Slabs = append(a.Slabs, s)
	a.idle = append(a.idle, s)
	return nil
}

// put takes a chunk back.
func (a *arena) put(c *chunk) {
	if a.closed {
		return
	}
	a.free++
	a.out--
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
		a.budget.unuse(s.n * a.size)
	}
	a.trim()
}

// trim gives back the slabs that nobody uses, but as much as is in use, and the spare ones.
func (a *arena) trim() {
	for len(a.idle) > 0 {
		s := a.idle[0]
		if a.free-s.n < max(a.out, spareSlabs*s.n) {
			return
		}
		a.drop(s)
	}
}

// reclaim gives the device back the slabs that nobody uses.
func (a *arena) reclaim() {
	for len(a.idle) > 0 {
		a.drop(a.idle[len(a.idle)-1])
	}
}

// drop gives a slab back, of which nothing is used.
func (a *arena) drop(s *slab) {
	a.free -= s.n
	a.idle = slices.DeleteFunc(a.idle, func(other *slab) bool { return other == s })
	a.Slabs = slices.DeleteFunc(a.Slabs, func(other *slab) bool { return other == s })
	a.budget.give(s.n * a.size)
	_ = a.dev.Free(s.MR) // nothing posted names it; what a device that has gone says of it does not matter
}

// close gives everything back, also what is still handed out.
func (a *arena) close() {
	for _, s := range a.Slabs {
		if len(s.free) < s.n {
			a.budget.unuse(s.n * a.size)
			a.idle = append(a.idle, s)
		}
	}
	a.closeUnused()
}

// closeUnused gives back the slabs that nobody uses. The others are left as they are: on the kernel's devices freed memory is unmapped,
// and an actor that reads it is a fault that ends the process.
func (a *arena) closeUnused() {
	a.closed = true
	a.reclaim()
	delete(a.budget.keepers, a)
}

// spoil overwrites what is given back and held a message of n bytes, in a build that does so.
func (c *chunk) spoil(n int) {
	if overwrite.On {
		c.spoilt = min(wire.HeaderLen+n, int(c.SGE.Length))
		overwrite.Bytes(c.Bytes()[:c.spoilt])
	}
}

// check looks whether what is handed out was left alone since it was spoilt.
func (c *chunk) check() {
	if overwrite.On && c.spoilt > 0 {
		overwrite.Check(c.Bytes()[:c.spoilt], "the memory of a Received")
		c.spoilt = 0
	}
}

// Bytes is a chunk's memory.
func (c *chunk) Bytes() []byte {
	return c.SGE.MR.Bytes[c.SGE.Offset : c.SGE.Offset+c.SGE.Length]
}
