package cmidtest

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// bindAddr binds the identifier, as rdma_bind_addr(3) does.
func (id *driverID) bindAddr(a cmid.Addr) error {
	// neither RoCE nor iWARP has addresses of IP over InfiniBand
	if a.IB != nil || !a.Addr().IsValid() || id.ps == cmid.PortSpaceIPOIB {
		return unix.EINVAL
	}
	f := id.in.f
	f.mu.Lock()
	defer f.mu.Unlock()
	dev, err := id.placeLocked(a.Addr())
	if err != nil {
		return err
	}
	return id.takePortLocked(a, dev)
}

// placeLocked finds the device of a local address. The device is nil for a wildcard, and for
// loopback unless the device is embedded.
func (id *driverID) placeLocked(ip netip.Addr) (*device, error) {
	host := id.in.host
	switch {
	case id.in.f.embedded && ip.IsLoopback() && len(host.devices) > 0:
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
	case id.strayed:
		return nil, unix.ENODEV
	case dev != nil:
		return dev, nil
	case host.isPlainLocked(ip):
		id.strayed = true
		return nil, unix.ENODEV
	}
	return nil, unix.EADDRNOTAVAIL
}

// takePortLocked binds the identifier to a port.
func (id *driverID) takePortLocked(a cmid.Addr, dev *device) error {
	b := &binding{id: id, ip: a.Addr(), port: port{id.ps, a.Port()}, reuse: id.reuse, afOnly: id.afOnlyFor(a.Addr())}
	host := id.in.host
	switch {
	case b.port.num == 0:
		if b.port.num = host.freePortLocked(id.ps); b.port.num == 0 {
			return unix.EADDRNOTAVAIL
		}
	case b.port.num < privileged:
		return unix.EACCES
	}
	if err := host.conflictLocked(b, b.reuse); err != nil {
		return err
	}
	host.ports[b.port] = append(host.ports[b.port], b)
	id.port, id.dev = b, dev
	id.local = cmid.AddrFrom(a.Addr(), b.port.num)
	id.state = states.Bound
	return nil
}

// afOnlyFor returns OptionAFOnly's value. By default an IPv4 listener gets only requests of its
// family.
func (id *driverID) afOnlyFor(ip netip.Addr) bool {
	return id.afOnly || !id.afOnlySet && ip.Is4()
}

// freePort frees the port.
func (id *driverID) freePort() {
	if id.port == nil {
		return
	}
	f := id.in.f
	f.mu.Lock()
	defer f.mu.Unlock()
	ports, at := id.in.host.ports, id.port.port
	ports[at] = slices.DeleteFunc(ports[at], func(b *binding) bool { return b == id.port })
	id.port.listening = false
	id.port = nil
}

// startListening implements rdma_listen(3). It fails on a port that is shared with REUSEADDR.
func (id *driverID) startListening(c *cmid.Listen) error {
	if id.port == nil {
		return unix.EINVAL // its bind inside ResolveAddr failed
	}
	f := id.in.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := id.in.host.conflictLocked(id.port, false); err != nil {
		return err
	}
	id.port.listening, id.port.backlog = true, c.Backlog
	if c.Backlog <= 0 || c.Backlog > maxBacklog {
		id.port.backlog = maxBacklog
	}
	id.state = states.Listening
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

// findListener finds the listener at the destination.
func (id *driverID) findListener() (*binding, found) {
	f, dst := id.in.f, id.peer
	f.mu.Lock()
	defer f.mu.Unlock()
	host := id.in.host
	if !isAny(dst.Addr()) {
		d := f.reachLocked(host, id.local.Addr(), dst.Addr())
		if d == nil {
			return nil, foundSilence
		}
		host = d.host
	}
	var best *binding
	what := foundNobody
	for _, b := range host.ports[port{id.ps, dst.Port()}] {
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
	case id.far == best.id.ownEndpoint():
		return best, foundListener // it has the request already, or will have it
	case best.unread > best.backlog, best.unread == best.backlog && !f.embedded:
		return nil, foundFull // TCP's backlog has room for one more
	}
	return best, foundListener
}

// sendRequest sends a request to a listener. A cancellation goes to the listener too, until the
// reply names the other end (see instance.driverIDFor). A repeated request does not count against
// the backlog.
func (id *driverID) sendRequest(p packet, b *binding) {
	p.to = b.id.ownEndpoint()
	if id.far != p.to {
		id.in.f.mu.Lock()
		b.unread++
		id.in.f.mu.Unlock()
		p.listener = b
	}
	if id.far = p.to; !id.in.f.sendPacket(p) {
		id.far = endpoint{}
	}
}
