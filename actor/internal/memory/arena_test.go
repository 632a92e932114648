package memory

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdmactor/rdmactor/verbs"
)

// paper is a domain whose memory is only counted, and paperDevice its device.
type paper struct {
	verbs.PD
	regions int
	bytes   int
}

type paperDevice struct {
	verbs.Device
	pd *paper
}

func (d paperDevice) Name() string { return "paper0" }

func (d paperDevice) Free(mr *verbs.MR) error {
	d.pd.regions--
	d.pd.bytes -= int(mr.Addr)
	return nil
}

func (p *paper) Alloc(n int, _ verbs.Access) (*verbs.MR, error) {
	p.regions++
	p.bytes += n
	return &verbs.MR{Addr: uint64(n)}, nil
}

// A region is no larger than an SGE's Offset can address: no two chunks share bytes.
func TestChunksBeyondFourGiB(t *testing.T) {
	const size, n = 64 << 20, 100
	b := NewBudget(nil, 1<<40, 0, 1<<40)
	pd := &paper{}
	a := newArena(paperDevice{pd: pd}, pd, 0, size, n*size, n, b)
	type place struct {
		mr     *verbs.MR
		offset uint32
	}
	seen := make(map[place]bool)
	for range n {
		c, err := a.Get()
		if err != nil {
			t.Fatal(err)
		}
		at := place{c.SGE.MR, c.SGE.Offset}
		if seen[at] {
			t.Fatalf("two chunks of one region begin at %d", at.offset)
		}
		seen[at] = true
	}
}

// Slabs are filled before others are touched, and unused ones are returned, in whatever order
// chunks come back: many stay only while they are handed out.
func TestSlabsGoBack(t *testing.T) {
	for _, order := range []string{"forwards", "backwards", "at random"} {
		const size, n = 64 << 10, 12_000
		b := NewBudget(nil, 1<<30, 0, 1<<30)
		pd := &paper{}
		a := newArena(paperDevice{pd: pd}, pd, 0, size, SlabBytes, slabChunks, b)
		var out []*Chunk
		for range n {
			c, err := a.Get()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, c)
		}
		switch order {
		case "backwards":
			slices.Reverse(out)
		case "at random":
			rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
		}
		for i, c := range out {
			c.Free()
			if order != "at random" && pd.bytes > (2*(n-i)+(spareSlabs+1)*slabChunks)*size {
				t.Fatalf("%s: with %d chunks handed out there are %d bytes", order, n-i-1, pd.bytes)
			}
		}
		if want := spareSlabs * slabChunks * size; pd.bytes > want || b.Free != b.total-pd.bytes || b.small != 0 {
			t.Errorf("%s: %d bytes are kept, want %d; %d free, %d in use", order, pd.bytes, want, b.Free, b.small)
		}
		b.Reclaim()
		if pd.bytes != 0 || b.Free != b.total {
			t.Errorf("%s: %d bytes stay, %d are free", order, pd.bytes, b.Free)
		}
	}
}

// Spare memory is bounded in bytes: two slabs of large chunks would be most of a budget. One chunk
// is kept however large it is, so that messages that follow each other use the same memory.
// Receives that are posted beforehand do not come and go with messages, so an unused region of
// them goes back while others are in use: it is as large as all receives of a connection.
func TestSpareIsBoundedInBytes(t *testing.T) {
	for name, tt := range map[string]struct {
		size, inOne, n, want int
		own                  bool
	}{
		"small":            {size: 1 << 10, n: 4096, want: spareSlabs * SlabBytes},
		"small, own":       {size: 1 << 10, n: 4096, want: spareSlabs * ownSlabBytes, own: true},
		"4 MiB":            {size: 4 << 20, n: 8, want: 8 << 20},
		"4 MiB, own":       {size: 4 << 20, n: 8, want: 8 << 20, own: true},
		"32 MiB":           {size: 32 << 20, n: 8, want: 32 << 20},
		"32 MiB, own":      {size: 32 << 20, n: 8, want: 32 << 20, own: true},
		"posted":           {size: 16 << 10, inOne: 1041, n: 1041, own: true},
		"posted, of three": {size: 16 << 10, inOne: 1041, n: 3 * 1041, own: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBudget(nil, 1<<30, 0, 1<<30)
			pd := &paper{}
			a := NewArena(paperDevice{pd: pd}, pd, 0, tt.size, tt.own, b)
			if tt.inOne > 0 {
				a.InOne(tt.inOne)
			}
			take := func(n int) (all []*Chunk) {
				for range n {
					c, err := a.Get()
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, c)
				}
				return all
			}
			all := take(tt.n)
			for len(all) > tt.inOne {
				all[len(all)-1].Free()
				all = all[:len(all)-1]
			}
			if n := tt.inOne * tt.size; n > 0 && pd.bytes != n {
				t.Errorf("with %d bytes in use there are %d", n, pd.bytes)
			}
			for _, c := range all {
				c.Free()
			}
			if pd.bytes != tt.want || b.Free != b.total-pd.bytes || b.small != 0 {
				t.Errorf("%d bytes are kept, want %d; %d free, %d in use", pd.bytes, tt.want, b.Free, b.small)
			}
			if tt.inOne > 0 {
				return
			}
			all = take(1)
			if all[0].Free(); pd.bytes != tt.want {
				t.Errorf("a message took more memory than was kept: %d bytes", pd.bytes)
			}
		})
	}
}

// Where too little is left for an idle slab, a chunk is still available, as long as there is room
// for one.
func TestIdleSlabIsNotInTheWay(t *testing.T) {
	const size = 64 << 10
	b := NewBudget(nil, 1<<30, 0, 8*size)
	pd := &paper{}
	a := newArena(paperDevice{pd: pd}, pd, 0, size, 2*size, 2, b)
	c, err := a.Get()
	if err != nil {
		t.Fatal(err)
	}
	c.Free()
	b.useSmall(7 * size) // others'
	if c, err = a.Get(); err != nil {
		t.Fatalf("with room for one, and a slab of two idle: %v", err)
	}
	c.Free()
	if b.useSmall(size); b.small != 8*size {
		t.Fatalf("%d bytes are in use", b.small)
	}
	if _, err = a.Get(); err == nil {
		t.Fatal("there is a chunk beyond the limit")
	}
}
