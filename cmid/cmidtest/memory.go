package cmidtest

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// Limits of what is posted and made.
const (
	maxInline = 64
	maxSGE    = 16
	maxCQE    = 1 << 15
)

// maxDatagram is a RoCE port's MTU on a plain Ethernet.
const maxDatagram = 1024

// region is memory that peers may name.
type region struct {
	mr      *verbs.MR
	invalid bool // a peer took its key back
}

// view is a device as one loop sees it: the verbs.Device.
type view struct {
	in      *instance
	dev     *device
	pd      pd
	regions map[uint32]*region // by key
	last    uint32             // index of the key made last
}

// Name is the device's.
func (v *view) Name() string { return v.dev.name }

// Attr gives limits that a test can reach.
func (v *view) Attr() verbs.DeviceAttr {
	attr := verbs.DeviceAttr{
		MaxQP: 1 << 16, MaxQPWR: 1 << 14, MaxSGE: maxSGE, MaxInline: maxInline, MaxMessage: maxMessage,
		MaxRDAtom: int(v.in.f.depth()), AsksForReceives: !v.in.f.reserved, Invalidates: !v.in.f.reserved,
		SharesMemory: v.shares(),
	}
	if v.in.f.reserved {
		attr.MaxCQE = maxCQE
	}
	if !v.in.f.iwarp {
		attr.MaxDatagram, attr.Immediate, attr.Atomics = maxDatagram, true, true
	}
	return attr
}

// shares is DeviceAttr.SharesMemory.
func (v *view) shares() bool { return !v.in.f.reserved }

// PD is the domain of whatever names none.
func (v *view) PD() verbs.PD { return &v.pd }

// AllocPD makes a protection domain.
func (v *view) AllocPD() (verbs.PD, error) {
	v.dev.count(resPD, 1)
	return &pd{v: v}, nil
}

// Alloc makes memory.
func (v *view) Alloc(n int, access verbs.Access) (*verbs.MR, error) { return v.pd.Alloc(n, access) }

// Free takes the memory back: whatever still names it fails. EINVAL when it is not, or no longer,
// memory of this device.
func (v *view) Free(mr *verbs.MR) error {
	if mr == nil || v.regions[mr.LKey] == nil || v.regions[mr.LKey].mr != mr {
		return unix.EINVAL
	}
	p, _ := mr.PD.(*pd)
	p.users--
	delete(v.regions, mr.LKey)
	v.dev.count(resMR, -1)
	mr.Bytes, mr.PD = nil, nil
	return nil
}

// find is the region whose key the peer of a queue pair of p uses.
func (v *view) find(p *pd, key uint32) (*region, error) {
	switch r := v.regions[key]; {
	case r == nil:
		return nil, fmt.Errorf("no region has the key %#x", key)
	case r.invalid:
		return nil, fmt.Errorf("the key %#x was taken back", key)
	case r.mr.PD != p:
		return nil, fmt.Errorf("the region with key %#x is of another protection domain", key)
	default:
		return r, nil
	}
}

// takeBack invalidates a key for the peer of a queue pair of p. Only what is open to peers has one
// to take back.
func (v *view) takeBack(p *pd, key uint32) error {
	r, err := v.find(p, key)
	if err != nil {
		return err
	}
	if r.mr.Access&(verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic) == 0 {
		return fmt.Errorf("the region with key %#x is closed to peers", key)
	}
	r.invalid = true
	return nil
}

// reach is the memory that the peer of a queue pair of p names. Nothing is looked up for no bytes.
func (v *view) reach(p *pd, m remote, access verbs.Access) ([]byte, error) {
	if m.n == 0 {
		return nil, nil
	}
	r, err := v.find(p, m.key)
	if err != nil {
		return nil, err
	}
	if r.mr.Access&access == 0 {
		return nil, fmt.Errorf("the region with key %#x does not allow it", m.key)
	}
	off, size := m.addr-r.mr.Addr, uint64(len(r.mr.Bytes))
	if off > size || uint64(m.n) > size-off {
		return nil, fmt.Errorf("bytes %d+%d are outside the region with key %#x", off, m.n, m.key)
	}
	return r.mr.Bytes[off : off+uint64(m.n)], nil
}

// pd is a protection domain.
type pd struct {
	v     *view
	users int // regions, queue pairs, shared receive queues
	gone  bool
}

// Alloc makes memory.
func (p *pd) Alloc(n int, access verbs.Access) (*verbs.MR, error) {
	const rights = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic
	if n <= 0 || uint64(n) > 1<<32-1 || p.gone || access&^rights != 0 ||
		access&(verbs.RemoteWrite|verbs.RemoteAtomic) != 0 && access&verbs.LocalWrite == 0 {
		return nil, unix.EINVAL
	}
	v := p.v
	if access&verbs.RemoteAtomic != 0 && v.in.f.iwarp {
		return nil, verbs.ErrNotSupported
	}
	if v.regions == nil {
		v.regions = make(map[uint32]*region)
	}
	key := v.nextKey()
	mr := &verbs.MR{PD: p, Bytes: make([]byte, n), Addr: uint64(key) << 32, LKey: key, RKey: key, Access: access}
	v.regions[key] = &region{mr: mr}
	p.users++
	v.dev.count(resMR, 1)
	return mr, nil
}

// nextKey is a key that was not in use lately. Each loop has others, and none is another's
// neighbour, so that a mistaken key finds nothing.
func (v *view) nextKey() uint32 {
	for {
		v.last = (v.last + 1) & 0xffffff
		if key := v.last<<8 | uint32(v.in.salt); v.regions[key] == nil {
			return key
		}
	}
}

// Close destroys the domain.
func (p *pd) Close() error {
	switch {
	case p == &p.v.pd || p.gone:
		return unix.EINVAL
	case p.users > 0:
		return unix.EBUSY
	}
	p.gone = true
	p.v.dev.count(resPD, -1)
	return nil
}

// domain is the one that p names; nil is the device's own.
func (v *view) domain(named verbs.PD) (*pd, error) {
	if named == nil {
		return &v.pd, nil
	}
	if p, ok := named.(*pd); ok && p.v == v && !p.gone {
		return p, nil
	}
	return nil, unix.EINVAL
}

// holds reports whether an element lies in memory of the domain, or in what it shares, which must
// allow access. Freed memory is in none.
func (p *pd) holds(s verbs.SGE, access verbs.Access) bool {
	if s.MR == nil {
		return s.Length == 0
	}
	if s.MR.PD != p && (s.MR.PD != &p.v.pd || !p.v.shares()) {
		return false
	}
	return s.MR.Access&access == access && uint64(s.Offset)+uint64(s.Length) <= uint64(len(s.MR.Bytes))
}

// place is the element's memory.
func place(s verbs.SGE) []byte {
	if s.MR == nil {
		return nil
	}
	return s.MR.Bytes[s.Offset:][:s.Length] // the end may be beyond what 32 bits can count
}

// view is d as this loop sees it.
func (in *instance) view(d *device) *view {
	v := in.views[d]
	if v == nil {
		v = &view{in: in, dev: d}
		v.pd.v = v
		in.views[d] = v
	}
	return v
}
