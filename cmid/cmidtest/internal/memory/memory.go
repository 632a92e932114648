// Package memory imitates the memory of a device: regions and their keys, protection domains, and
// access checks. The in-memory device uses it. It depends on package verbs, and not on loops, hosts
// or connections.
//
// A [Device] belongs to one loop, and so do its domains and regions. Use them on the loop's
// goroutine only.
package memory

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// The objects that Config.Full and Config.Count are about.
const (
	CountRegions = "memory region"
	CountDomains = "protection domain"
)

// Config has the options of a device's memory.
type Config struct {
	// Shares lets every domain use memory of the device's own domain
	// (verbs.DeviceAttr.SharesMemory).
	Shares bool
	// Atomics allows memory that is open to atomic operations. Without it Alloc refuses that.
	Atomics bool
	// Salt is the low byte of every key. Devices with different salts have no key in common.
	Salt byte
	// Full returns why a region or a domain cannot be made, if there is a reason.
	Full func(what string) error
	// Count is called when n regions or domains were made, or freed if n is negative.
	Count func(what string, n int)
}

// Device is the memory of a device. It has the methods of a verbs.Device that are about memory.
type Device struct {
	cfg     Config
	own     Domain
	regions map[uint32]*region // indexed by key
	last    uint32             // index of the key made last
}

// region is memory that peers may name.
type region struct {
	mr      *verbs.MR
	invalid bool // a peer has invalidated its key
}

// NewDevice makes a device without regions.
func NewDevice(cfg Config) *Device {
	d := &Device{cfg: cfg, regions: make(map[uint32]*region)}
	d.own.d = d
	return d
}

// PD returns the device's own domain, which is that of objects made without one.
func (d *Device) PD() verbs.PD { return &d.own }

// AllocPD makes a protection domain.
func (d *Device) AllocPD() (verbs.PD, error) {
	if err := d.cfg.Full(CountDomains); err != nil {
		return nil, err
	}
	d.cfg.Count(CountDomains, 1)
	return &Domain{d: d}, nil
}

// Alloc makes memory in the device's own domain.
func (d *Device) Alloc(n int, access verbs.Access) (*verbs.MR, error) { return d.own.Alloc(n, access) }

// Free frees the memory. Whatever uses it afterwards fails. Free returns EINVAL for memory that is
// not, or no longer, of this device.
func (d *Device) Free(mr *verbs.MR) error {
	if mr == nil || d.regions[mr.LKey] == nil || d.regions[mr.LKey].mr != mr {
		return unix.EINVAL
	}
	p, _ := mr.PD.(*Domain)
	p.Use(-1)
	delete(d.regions, mr.LKey)
	d.cfg.Count(CountRegions, -1)
	mr.Bytes, mr.PD = nil, nil
	return nil
}

// Domain returns the Domain behind named. nil stands for the device's own. It returns EINVAL for a
// domain of another device, and for one that was closed.
func (d *Device) Domain(named verbs.PD) (*Domain, error) {
	if named == nil {
		return &d.own, nil
	}
	if p, ok := named.(*Domain); ok && p.d == d && !p.gone {
		return p, nil
	}
	return nil, unix.EINVAL
}

// nextKey returns a key that was not in use lately. Keys are never adjacent, so a key that is off
// by one finds nothing.
func (d *Device) nextKey() uint32 {
	for {
		d.last = (d.last + 1) & 0xffffff
		if key := d.last<<8 | uint32(d.cfg.Salt); d.regions[key] == nil {
			return key
		}
	}
}

// Domain is a protection domain.
type Domain struct {
	d     *Device
	users int // regions, and whatever else is in it
	gone  bool
}

// Use adds n to the number of the domain's users. n may be negative.
func (p *Domain) Use(n int) { p.users += n }

// Close destroys the domain. It returns EBUSY while the domain has users, and EINVAL for the
// device's own.
func (p *Domain) Close() error {
	switch {
	case p == &p.d.own || p.gone:
		return unix.EINVAL
	case p.users > 0:
		return unix.EBUSY
	}
	p.gone = true
	p.d.cfg.Count(CountDomains, -1)
	return nil
}

// Alloc makes memory of n bytes. It returns EINVAL for rights that do not exist, and
// verbs.ErrNotSupported for those that the device does not support.
func (p *Domain) Alloc(n int, access verbs.Access) (*verbs.MR, error) {
	const rights = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic
	if n <= 0 || uint64(n) > 1<<32-1 || p.gone || access&^rights != 0 ||
		access&(verbs.RemoteWrite|verbs.RemoteAtomic) != 0 && access&verbs.LocalWrite == 0 {
		return nil, unix.EINVAL
	}
	if access&verbs.RemoteAtomic != 0 && !p.d.cfg.Atomics {
		return nil, verbs.ErrNotSupported
	}
	if err := p.d.cfg.Full(CountRegions); err != nil {
		return nil, err
	}
	key := p.d.nextKey()
	mr := &verbs.MR{PD: p, Bytes: make([]byte, n), Addr: uint64(key) << 32, LKey: key, RKey: key, Access: access}
	p.d.regions[key] = &region{mr: mr}
	p.Use(1)
	p.d.cfg.Count(CountRegions, 1)
	return mr, nil
}

// Serves reports whether a queue pair of p may use receives in memory of other.
func (p *Domain) Serves(other *Domain) bool {
	return other == p || p.d.cfg.Shares && other == &p.d.own
}

// Holds reports whether an element lies in memory of the domain, or in memory that the device
// shares, and whether the memory allows access. Freed memory is in no domain.
func (p *Domain) Holds(s verbs.SGE, access verbs.Access) bool {
	if s.MR == nil {
		return s.Length == 0
	}
	if s.MR.PD != p && (s.MR.PD != &p.d.own || !p.d.cfg.Shares) {
		return false
	}
	return s.MR.Access&access == access && uint64(s.Offset)+uint64(s.Length) <= uint64(len(s.MR.Bytes))
}

// Bytes returns the memory of an element. Domain.Holds must be true of it.
func Bytes(s verbs.SGE) []byte {
	if s.MR == nil {
		return nil
	}
	return s.MR.Bytes[s.Offset:][:s.Length] // Offset plus Length may overflow 32 bits
}

// Remote describes memory as the peer of its owner does.
type Remote struct {
	Addr uint64
	Key  uint32
	Len  uint32
}

// Reach returns the memory that the peer of a queue pair of p describes. For 0 bytes it does not
// check anything.
func (p *Domain) Reach(m Remote, access verbs.Access) ([]byte, error) {
	if m.Len == 0 {
		return nil, nil
	}
	r, err := p.findRegion(m.Key)
	if err != nil {
		return nil, err
	}
	if r.mr.Access&access == 0 {
		return nil, fmt.Errorf("the region with key %#x does not allow it", m.Key)
	}
	off, size := m.Addr-r.mr.Addr, uint64(len(r.mr.Bytes))
	if off > size || uint64(m.Len) > size-off {
		return nil, fmt.Errorf("bytes %d+%d are outside the region with key %#x", off, m.Len, m.Key)
	}
	return r.mr.Bytes[off : off+uint64(m.Len)], nil
}

// Invalidate invalidates a key for the peer of a queue pair of p. Only memory that is open to peers
// has a key to invalidate.
func (p *Domain) Invalidate(key uint32) error {
	r, err := p.findRegion(key)
	if err != nil {
		return err
	}
	if r.mr.Access&(verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic) == 0 {
		return fmt.Errorf("the region with key %#x is closed to peers", key)
	}
	r.invalid = true
	return nil
}

// findRegion returns the region with a key that the peer of a queue pair of p uses.
func (p *Domain) findRegion(key uint32) (*region, error) {
	switch r := p.d.regions[key]; {
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
