package cmidtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/optional"
	"github.com/rdmactor/rdmactor/internal/sched"
	"github.com/rdmactor/rdmactor/states"
)

// Config configures a Fabric.
type Config struct {
	// Flavor is states.IWARP, or 0 for InfiniBand as RoCE implements it.
	Flavor states.Flavor
	// Embedded makes iWARP devices behave like package iwarp instead of Linux's soft-iWARP. The
	// package comment lists the differences. It has no effect on InfiniBand.
	Embedded bool
	// Reserved makes devices behave like the kernel's in three ways. They do not ask for receives
	// (verbs.DeviceAttr.AsksForReceives), do not invalidate keys (Invalidates), and limit the
	// length of a completion queue (MaxCQE).
	Reserved bool
	// Seed seeds the random numbers that choose ports and that Reorder uses.
	Seed uint64
	// Scheduler is for this module's simulations. Leave it nil. It decides when a machine goes on
	// whose program is frozen or was killed. So it is no program's, and ends no goroutine.
	Scheduler *sched.Scheduler
}

// NewFabric makes a network without devices.
func NewFabric(config ...Config) *Fabric {
	cfg := optional.Value(config)
	f := &Fabric{
		iwarp: cfg.Flavor&states.IWARP != 0, reserved: cfg.Reserved, depth: deviceDepth,
		scheduler: cfg.Scheduler,
		rng:       rand.New(rand.NewPCG(cfg.Seed, 0x7471)),
		hosts:     make(map[string]*Host),
		addrs:     make(map[netip.Addr]*device),
		names:     make(map[string][]string),

		members: make(map[netip.Addr][]member),
	}
	if f.embedded = f.iwarp && cfg.Embedded; f.embedded {
		f.depth = embeddedDepth
	}
	f.faults.silent = make(map[netip.Addr]*Fault)
	f.faults.cuts = make(map[hostPair]*cut)
	f.faults.slow = make(map[netip.Addr]*Fault)
	f.left.n = make(map[entry]int)
	return f
}

// Host returns the host of that name, and makes it if there is none. Every Fabric has a host named
// "".
func (f *Fabric) Host(name string) *Host {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[name]
	if h == nil {
		h = &Host{
			f: f, name: name, nextQPN: uint32(16 + 1000*len(f.order)), ports: make(map[port][]*binding),
			datagrams: make(map[uint32]*qp),
		}
		f.hosts[name] = h
		f.order = append(f.order, h)
	}
	return h
}

// AddDevice adds a device to the host named "".
func (f *Fabric) AddDevice(name string, addrs ...string) { f.Host("").AddDevice(name, addrs...) }

// AddDevice adds a device with addresses such as "10.0.0.5", "10.0.0.5/24" or "fd00::5". Without a
// prefix length the subnet is /24 or /64. AddDevice panics on an address that is malformed or
// taken, and on a name that is taken.
func (h *Host) AddDevice(name string, addrs ...string) {
	d := &device{host: h, name: name}
	for _, a := range addrs {
		d.addrs = append(d.addrs, parsePrefix(a))
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.deviceLocked(name) != nil {
		panic(fmt.Sprintf("cmidtest: there is a device %s already", name))
	}
	for _, p := range d.addrs {
		if h.f.addrs[p.Addr()] != nil {
			panic(fmt.Sprintf("cmidtest: %v is an address of %s already", p.Addr(), h.f.addrs[p.Addr()].name))
		}
		h.f.addrs[p.Addr()] = d
	}
	h.devices = append(h.devices, d)
}

// AddAddress gives the host an interface without an RDMA device.
func (h *Host) AddAddress(addr string) {
	p := parsePrefix(addr)
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	h.plain = append(h.plain, p)
}

// Name makes a host name resolve to addresses, in their order, instead of earlier ones. Other
// names are looked up on this machine.
func (f *Fabric) Name(name string, addrs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name] = slices.Clone(addrs)
}

// LookupAddrInfo implements cmid.NameResolver.
func (d *driver) LookupAddrInfo(ctx context.Context, node, service string, hints *cmid.AddrInfo) ([]cmid.AddrInfo, error) {
	f := d.host.f
	f.mu.Lock()
	addrs, known := f.names[node]
	f.mu.Unlock()
	if !known {
		return cmid.LookupAddrInfo(ctx, node, service, hints)
	}
	var all []cmid.AddrInfo
	for _, a := range addrs {
		info, err := cmid.LookupAddrInfo(ctx, a, service, hints)
		if err != nil {
			return nil, err
		}
		all = append(all, info...)
	}
	if len(all) == 0 {
		return nil, &cmid.GAIError{Code: cmid.EAINoName, Node: node, Service: service}
	}
	return all, nil
}

// Left lists the objects that were made and not freed, such as "2 memory regions on mem0", sorted.
// The list is empty when all programs have freed theirs. It changes while loops run. Any goroutine
// may call it.
func (f *Fabric) Left() []string {
	f.left.mu.Lock()
	defer f.left.mu.Unlock()
	var all []string
	for e, n := range f.left.n {
		s := ""
		if n != 1 {
			s = "s"
		}
		all = append(all, fmt.Sprintf("%d %s%s on %s", n, e.what, s, e.where))
	}
	slices.Sort(all)
	return all
}
