package actor

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// arena is device memory cut into chunks of one size: receive buffers, or what sends are gathered from. It grows by slabs when it
// is empty, hands out what came back last, and gives slabs back that nobody uses. Loop goroutine.
type arena struct {
	dev    verbs.Device
	pd     verbs.PD
	access verbs.Access
	size   int // of a chunk
	bytes  int // of a slab, unless so many chunks need more
	chunks int
	budget *budget
	free   []*chunk // the last one is the warmest
	slabs  []*slab
	out    int // chunks handed out
	closed bool
}

// chunk is one buffer, of an arena or of a stock.
type chunk struct {
	arena *arena
	slab  *slab
	stock *stock
	sge   verbs.SGE // all of it

	spoilt int // bytes; see spoil
}

// slab is one memory region.
type slab struct {
	mr   *verbs.MR
	n    int // chunks
	used int // of them handed out
}

const (
	// slabBytes is how much is asked of the device at a time, unless slabChunks need more.
	slabBytes  = 256 << 10
	slabChunks = 2 * recvBatch
	// spareSlabs stay though nobody uses them: what a connection that talks takes and gives back all the time must not go to the
	// device and come back each time.
	spareSlabs = 2
)

// get hands out a chunk. ENOMEM when the budget is used up, or what the device says.
func (a *arena) get() (*chunk, error) {
	if len(a.free) == 0 {
		if err := a.grow(); err != nil {
			return nil, err
		}
	}
	c := a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	c.slab.used++
	a.out++
	c.check()
	return c, nil
}

// getBeyond is get, and where the budget is used up hands out one chunk beyond it: for who has nothing else of it, so that what others
// hold slows it down and does not stop it.
func (a *arena) getBeyond() (*chunk, error) {
	c, err := a.get()
	if !errors.Is(err, errBudget) {
		return c, err
	}
	if err := a.add(1); err != nil {
		return nil, err
	}
	return a.get()
}

// errBudget is why there is no memory although the device may have some.
var errBudget = fmt.Errorf("it would exceed the limit (WithLimits): %w", unix.ENOMEM)

func (a *arena) grow() error {
	n := max(a.bytes/a.size, a.chunks)
	if n*a.size > a.budget.free {
		a.budget.reclaim()
	}
	for n > 1 && n*a.size > a.budget.free {
		n /= 2
	}
	if bytes := n * a.size; bytes > a.budget.free {
		return fmt.Errorf("%d more bytes of device memory: %w", bytes, errBudget)
	}
	return a.add(n)
}

// add makes a slab of n chunks.
func (a *arena) add(n int) error {
	bytes := n * a.size
	mr, err := a.pd.Alloc(bytes, a.access)
	if err != nil {
		return fmt.Errorf("alloc %d bytes on %s: %w", bytes, a.dev.Name(), err)
	}
	a.budget.free -= bytes
	s := &slab{mr: mr, n: n}
	chunks := make([]chunk, n)
	for i := range chunks {
		c := &chunks[i]
		*c = chunk{arena: a, slab: s, sge: verbs.SGE{MR: mr, Offset: uint32(i * a.size), Length: uint32(a.size)}}
		a.free = append(a.free, c)
	}
	a.slabs = append(a.slabs, s)
	return nil
}

// put takes a chunk back. A slab that nobody uses is given back when enough stays free without it: as much as is in use, and the
// spare slabs.
func (a *arena) put(c *chunk) {
	if a.closed {
		return
	}
	a.free = append(a.free, c)
	a.out--
	s := c.slab
	s.used--
	if s.used == 0 && len(a.free)-s.n >= max(a.out, spareSlabs*s.n) {
		a.drop(s)
	}
}

func (a *arena) drop(s *slab) {
	a.free = slices.DeleteFunc(a.free, func(c *chunk) bool { return c.slab == s })
	a.slabs = slices.DeleteFunc(a.slabs, func(other *slab) bool { return other == s })
	a.budget.give(s.n * a.size)
	_ = a.dev.Free(s.mr) // nothing posted names it; what a device that has gone says of it does not matter
}

// close gives everything back, also what is still handed out.
func (a *arena) close() {
	a.closed = true
	for len(a.slabs) > 0 {
		a.drop(a.slabs[0])
	}
}

// closeUnused gives back the slabs that nobody uses. The others are left as they are: on the kernel's devices freed memory is unmapped,
// and an actor that reads it is a fault that ends the process.
func (a *arena) closeUnused() {
	a.closed = true
	for _, s := range slices.Clone(a.slabs) {
		if s.used == 0 {
			a.drop(s)
		}
	}
}

// spoil overwrites what is given back and held a message of n bytes, in a build that does so.
func (c *chunk) spoil(n int) {
	if poisoning {
		c.spoilt = min(headerLen+n, int(c.sge.Length))
		poisonBytes(c.bytes()[:c.spoilt])
	}
}

// check looks whether what is handed out was left alone since it was spoilt.
func (c *chunk) check() {
	if poisoning && c.spoilt > 0 {
		checkPoison(c.bytes()[:c.spoilt], "the memory of a Received")
		c.spoilt = 0
	}
}

// bytes is a chunk's memory.
func (c *chunk) bytes() []byte {
	return c.sge.MR.Bytes[c.sge.Offset : c.sge.Offset+c.sge.Length]
}
