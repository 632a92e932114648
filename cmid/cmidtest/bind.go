package cmidtest

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// addresses are the two addresses of an identifier, its device and its port.
type addresses struct {
	self        endpoint // the identifier, as peers know it: on the instance that has made it
	ps          cmid.PortSpace
	local, peer cmid.Addr
	dev         *device
	port        *binding // nil while not bound
	strayed     bool     // was bound to an interface without a device: the kernel never forgets
	reuse       bool
	afOnly      bool
	afOnlySet   bool
}

// bind takes a local address and its port, as rdma_bind_addr(3) does.
func (a *addresses) bind(to cmid.Addr) error {
	// neither RoCE nor iWARP has addresses of IP over InfiniBand
	if to.IB != nil || !to.Addr().IsValid() || a.ps == cmid.PortSpaceIPOIB {
		return unix.EINVAL
	}
	f := a.self.in.f
	f.mu.Lock()
	defer f.mu.Unlock()
	dev, err := a.placeLocked(to.Addr())
	if err != nil {
		return err
	}
	return a.takePortLocked(to, dev)
}

// placeLocked finds the device of a local address. The device is nil for a wildcard, and for
// loopback unless the device is embedded.
func (a *addresses) placeLocked(ip netip.Addr) (*device, error) {
	host := a.self.in.host
	switch {
	case host.f.embedded && ip.IsLoopback() && len(host.devices) > 0:
		return host.devices[0], nil // its TCP streams run over loopback too
	case isAny(ip):
		return nil, nil
	case lacksZone(ip):
		return nil, unix.EINVAL
	}
	dev := host.ownLocked(ip)
	if dev != nil && ip.Zone() != "" && ip.Zone() != dev.name {
		return nil, unix.ENODEV
	}
	switch {
	case a.strayed:
		return nil, unix.ENODEV
	case dev != nil:
		return dev, nil
	case host.isPlainLocked(ip):
		a.strayed = true
		return nil, unix.ENODEV
	}
	return nil, unix.EADDRNOTAVAIL
}

// takePortLocked binds the identifier to a port.
func (a *addresses) takePortLocked(to cmid.Addr, dev *device) error {
	b := &binding{owner: a.self, ip: to.Addr(), port: port{a.ps, to.Port()}, reuse: a.reuse, afOnly: a.afOnlyFor(to.Addr())}
	host := a.self.in.host
	switch {
	case b.port.num == 0:
		if b.port.num = host.freePortLocked(a.ps); b.port.num == 0 {
			return unix.EADDRNOTAVAIL
		}
	case b.port.num < privileged:
		return unix.EACCES
	}
	if err := host.conflictLocked(b, b.reuse); err != nil {
		return err
	}
	host.ports[b.port] = append(host.ports[b.port], b)
	a.port, a.dev = b, dev
	a.local = cmid.AddrFrom(to.Addr(), b.port.num)
	return nil
}

// afOnlyFor returns OptionAFOnly's value. By default an IPv4 listener gets only requests of its
// family.
func (a *addresses) afOnlyFor(ip netip.Addr) bool {
	return a.afOnly || !a.afOnlySet && ip.Is4()
}

// freePort frees the port.
func (a *addresses) freePort() {
	if a.port == nil {
		return
	}
	f := a.self.in.f
	f.mu.Lock()
	defer f.mu.Unlock()
	ports, at := a.self.in.host.ports, a.port.port
	ports[at] = slices.DeleteFunc(ports[at], func(b *binding) bool { return b == a.port })
	a.port.listening = false
	a.port = nil
}

// listen makes the port take requests, as rdma_listen(3) does. It fails on a port that is shared
// with REUSEADDR.
func (a *addresses) listen(backlog int) error {
	if a.port == nil {
		return unix.EINVAL // its bind inside ResolveAddr failed
	}
	f := a.self.in.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := a.self.in.host.conflictLocked(a.port, false); err != nil {
		return err
	}
	a.port.listening, a.port.backlog = true, backlog
	if backlog <= 0 || backlog > maxBacklog {
		a.port.backlog = maxBacklog
	}
	return nil
}

// found is the state of a request's destination.
type found uint8

const (
	foundListener found = iota
	foundNobody         // the port has no listener
	foundOther          // the listener is on another address
	foundFull           // its backlog is full
	foundSilence        // the address is unused
)

// findListener finds the listener at the destination. asked is the one that has the request
// already, or will have it.
func (a *addresses) findListener(asked endpoint) (*binding, found) {
	host, dst := a.self.in.host, a.peer
	f := host.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if !isAny(dst.Addr()) {
		d := f.reachLocked(host, a.local.Addr(), dst.Addr())
		if d == nil {
			return nil, foundSilence
		}
		host = d.host
	}
	var best *binding
	what := foundNobody
	for _, b := range host.ports[port{a.ps, dst.Port()}] {
		switch {
		case !b.listening:
		case !b.hearsLocked(dst.Addr()):
			what = foundOther
		default:
			best = b // conflictLocked allows no other
		}
	}
	switch {
	case best == nil:
		return nil, what
	case best.owner == asked:
		return best, foundListener
	case best.unread > best.backlog, best.unread == best.backlog && !f.embedded:
		return nil, foundFull // TCP's backlog has room for one more
	}
	return best, foundListener
}
