package iwarp

import (
	"encoding/binary"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/verbs"
)

// device is the verbs side of an instance.
type device struct {
	in      *instance
	pd      *domain
	regions core.Regions
	qps     map[uint32]*queuePair
	lastQP  uint32
}

func newDevice(in *instance) *device {
	d := &device{in: in, qps: make(map[uint32]*queuePair)}
	d.pd = &domain{dev: d}
	d.regions.Shared = d.pd
	return d
}

// Name returns Config.Device.
func (d *device) Name() string { return d.in.cfg.Device }

// Attr returns the device's limits.
func (d *device) Attr() verbs.DeviceAttr {
	return verbs.DeviceAttr{
		MaxQP: d.in.cfg.MaxConns, MaxQPWR: maxQPWR, MaxSGE: core.MaxSGE, MaxInline: core.MaxInline,
		MaxMessage: math.MaxUint32, MaxRDAtom: maxRDAtom, Invalidates: true, AsksForReceives: true, SharesMemory: true,
		QPAccess: true,
	}
}

// PD returns the domain of queue pairs and memory for which none is given.
func (d *device) PD() verbs.PD { return d.pd }

// AllocPD makes a protection domain.
func (d *device) AllocPD() (verbs.PD, error) { return &domain{dev: d}, nil }

// Alloc makes a memory region in the device's default domain.
func (d *device) Alloc(n int, access verbs.Access) (*verbs.MR, error) { return d.pd.Alloc(n, access) }

// Free removes mr. It fails with EINVAL if mr is not, or is no longer, a region of this device.
func (d *device) Free(mr *verbs.MR) error {
	if mr == nil || !d.regions.Remove(mr) {
		return fmt.Errorf("iwarp: not a memory region of %s: %w", d.Name(), unix.EINVAL)
	}
	pd, _ := mr.PD.(*domain)
	pd.users--
	mr.PD = nil
	return nil
}

// domain is a verbs.PD.
type domain struct {
	dev   *device
	users int // regions, queue pairs, shared receive queues
	gone  bool
}

// Alloc makes a memory region.
func (p *domain) Alloc(n int, access verbs.Access) (*verbs.MR, error) {
	mr, err := p.newRegion(n, access)
	if err == nil {
		mr.Bytes = make([]byte, n)
	}
	return mr, err
}

// Register implements verbs.Registrar: it makes a memory region of b, which still belongs to the
// caller.
func (p *domain) Register(b []byte, access verbs.Access) (*verbs.MR, error) {
	mr, err := p.newRegion(len(b), access)
	if err == nil {
		mr.Bytes = b
	}
	return mr, err
}

// Local implements verbs.Registrar: it makes a memory region of b that is in no table.
func (p *domain) Local(b []byte) verbs.MR { return verbs.MR{PD: p, Bytes: b} }

// newRegion makes a memory region of n bytes. The caller sets MR.Bytes. The key and the address are
// random, so neither gives a peer a hint about the process or other regions. Each wrong guess costs
// the peer a connection.
func (p *domain) newRegion(n int, access verbs.Access) (*verbs.MR, error) {
	switch {
	case n <= 0 || n > math.MaxUint32:
		return nil, fmt.Errorf("iwarp: memory region of %d bytes: %w", n, unix.EINVAL)
	case access&^(verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic) != 0:
		return nil, fmt.Errorf("iwarp: memory region with unknown access %#x: %w", access, unix.EINVAL)
	case access&(verbs.RemoteWrite|verbs.RemoteAtomic) != 0 && access&verbs.LocalWrite == 0:
		return nil, fmt.Errorf("iwarp: memory region with remote write but without local write: %w", unix.EINVAL)
	case access&verbs.RemoteAtomic != 0:
		return nil, fmt.Errorf("iwarp: memory region with remote atomic: %w", verbs.ErrNotSupported)
	case p.gone:
		return nil, fmt.Errorf("iwarp: memory region in a closed protection domain: %w", unix.EINVAL)
	}
	b := &p.dev.in.random
	for {
		p.dev.in.sys.Random(b[:])
		stag := binary.NativeEndian.Uint32(b[:])
		mr := &verbs.MR{
			// so that Addr+n does not wrap
			PD: p, Addr: binary.NativeEndian.Uint64(b[4:]) &^ (1<<63 | 4095),
			LKey: stag, RKey: stag, Access: access,
		}
		if p.dev.regions.Add(mr) { // the key is not in use
			p.users++
			return mr, nil
		}
	}
}

// Close destroys the domain.
func (p *domain) Close() error {
	switch {
	case p == p.dev.pd || p.gone:
		return fmt.Errorf("iwarp: the device's own protection domain, or one closed before: %w", unix.EINVAL)
	case p.users > 0:
		return fmt.Errorf("iwarp: protection domain with %d regions and queues: %w", p.users, unix.EBUSY)
	}
	p.gone = true
	return nil
}

// domainOf returns pd as a domain of this device; a nil pd means the device's default domain.
func (d *device) domainOf(pd verbs.PD) (*domain, error) {
	if pd == nil {
		return d.pd, nil
	}
	if p, ok := pd.(*domain); ok && p.dev == d && !p.gone {
		return p, nil
	}
	return nil, fmt.Errorf("iwarp: not a protection domain of %s: %w", d.Name(), unix.EINVAL)
}

// CreateAH is refused: iWARP has no datagrams.
func (d *device) CreateAH(verbs.PD, *verbs.AHAttr) (verbs.AH, error) {
	return nil, fmt.Errorf("iwarp: address handle: %w", verbs.ErrNotSupported)
}

// InitAHFromWC is refused, as CreateAH.
func (d *device) InitAHFromWC(*verbs.WC, []byte) (verbs.AHAttr, error) {
	return verbs.AHAttr{}, fmt.Errorf("iwarp: address handle: %w", verbs.ErrNotSupported)
}
