package cmidtest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Config is how a Fabric is made.
type Config struct {
	// Flavor is states.IWARP, or 0 for InfiniBand (as RoCE plays it).
	Flavor states.Flavor
	// Embedded has iWARP be played as package iwarp does where it departs from Linux's soft-iWARP,
	// as far as the package comment says. It is nothing to InfiniBand.
	Embedded bool
	// Reserved has devices be like the kernel's, which ask nobody for receives
	// (verbs.DeviceAttr.AsksForReceives), take no keys back (Invalidates) and say how long a
	// completion queue may be (MaxCQE).
	Reserved bool
	// Seed decides what chance decides: port numbers, and what Reorder does.
	Seed uint64
}

// Fabric is a network in memory: hosts, their devices and addresses, and what goes wrong between
// them. All methods may be called by any goroutine.
type Fabric struct {
	iwarp    bool
	embedded bool // iwarp, as package iwarp plays it
	reserved bool
	left     ledger

	// mu guards all below, in hosts, devices and bindings too. Nothing is called while it is held.
	mu     sync.Mutex
	rng    *rand.Rand
	hosts  map[string]*Host
	order  []*Host
	opened int                    // drivers, all in all
	addrs  map[netip.Addr]*device // of every host
	faults faults
	// members are the queue pairs that are attached to a group.
	members map[netip.Addr][]member
}

// NewFabric makes a network without devices.
func NewFabric(cfg Config) *Fabric {
	f := &Fabric{
		iwarp: cfg.Flavor&states.IWARP != 0, reserved: cfg.Reserved,
		rng:   rand.New(rand.NewPCG(cfg.Seed, 0x7471)),
		hosts: make(map[string]*Host),
		addrs: make(map[netip.Addr]*device),

		members: make(map[netip.Addr][]member),
	}
	f.embedded = f.iwarp && cfg.Embedded
	f.faults.init()
	return f
}

// Host is a machine: its devices, its addresses and its port numbers. Several loops may open its
// Driver, as several programs or several loops of one.
type Host struct {
	f         *Fabric
	name      string
	devices   []*device
	plain     []netip.Prefix // addresses of interfaces without an RDMA device
	ports     map[cmid.PortSpace]map[uint16][]*binding
	instances []*instance
	nextQPN   uint32
	datagrams map[uint32]*qp        // by number
	requests  map[endpoint]endpoint // children by who asked, until they are destroyed
}

// device is a device of a host. What a loop sees of it is a view.
type device struct {
	host    *Host
	name    string
	addrs   []netip.Prefix
	removed bool
}

// Host finds or makes a host. Every Fabric has one named "".
func (f *Fabric) Host(name string) *Host {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[name]
	if h == nil {
		h = &Host{
			f: f, name: name, nextQPN: uint32(16 + 1000*len(f.order)), ports: make(map[cmid.PortSpace]map[uint16][]*binding),
			datagrams: make(map[uint32]*qp), requests: make(map[endpoint]endpoint),
		}
		f.hosts[name] = h
		f.order = append(f.order, h)
	}
	return h
}

// AddDevice adds a device to the host named "".
func (f *Fabric) AddDevice(name string, addrs ...string) { f.Host("").AddDevice(name, addrs...) }

// Driver is the driver of the host named "".
func (f *Fabric) Driver() cmid.Driver { return f.Host("").Driver() }

// AddDevice adds a device with addresses such as "10.0.0.5", "10.0.0.5/24" or "fd00::5"; without a
// length the subnet is /24 or /64. What it is asked is written in tests, so it panics on an
// address that is malformed or taken, and on a name that is taken.
func (h *Host) AddDevice(name string, addrs ...string) {
	d := &device{host: h, name: name}
	for _, a := range addrs {
		d.addrs = append(d.addrs, parsePrefix(a))
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.device(name) != nil {
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

// Driver is the host's driver; it may be opened on any number of loops.
func (h *Host) Driver() cmid.Driver { return &driver{h} }

// RemoveDevice takes every device of that name out of its host, as pulling the adapter does: its
// identifiers are told DeviceRemoval, their peers Disconnected. AddDevice may add it again.
func (f *Fabric) RemoveDevice(name string) {
	f.mu.Lock()
	var told []*instance
	for _, h := range f.order {
		d := h.device(name)
		if d == nil {
			continue
		}
		d.removed = true
		for _, p := range d.addrs {
			delete(f.addrs, p.Addr())
		}
		h.devices = slices.DeleteFunc(h.devices, func(other *device) bool { return other == d })
		told = append(told, h.instances...)
	}
	f.mu.Unlock()
	for _, in := range told {
		in.later(in.dropRemoved)
	}
}

// child is the identifier that who's request has made; the zero endpoint when there is none.
func (h *Host) child(who endpoint) endpoint {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	return h.requests[who]
}

// requested notes that who's request has made an identifier.
func (h *Host) requested(who endpoint, child *ident) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	h.requests[who] = child.self()
}

// answered forgets it.
func (h *Host) answered(who endpoint, child *ident) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	if h.requests[who] == child.self() {
		delete(h.requests, who)
	}
}

func (h *Host) device(name string) *device {
	for _, d := range h.devices {
		if d.name == name {
			return d
		}
	}
	return nil
}

// isPlain reports whether ip is the host's, on an interface without an RDMA device.
func (h *Host) isPlain(ip netip.Addr) bool {
	return slices.ContainsFunc(h.plain, func(p netip.Prefix) bool { return p.Addr() == ip })
}

// own finds the host's device with the address ip.
func (h *Host) own(ip netip.Addr) *device {
	if d := h.f.addrs[ip.WithZone("")]; d != nil && d.host == h {
		return d
	}
	return nil
}

// onLink finds the device and its address from which ip is one hop away.
func (h *Host) onLink(ip netip.Addr) (*device, netip.Addr) {
	for _, d := range h.devices {
		if src, ok := d.source(ip); ok {
			return d, src
		}
	}
	return nil, netip.Addr{}
}

// source is the device's address in ip's subnet.
func (d *device) source(ip netip.Addr) (netip.Addr, bool) {
	for _, p := range d.addrs {
		if p.Contains(ip.WithZone("")) {
			return p.Addr(), true
		}
	}
	return netip.Addr{}, false
}

func parsePrefix(s string) netip.Prefix {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p
	}
	a := netip.MustParseAddr(s)
	bits := 64
	if a.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(a, bits)
}
