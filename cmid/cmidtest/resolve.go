package cmidtest

import (
	"cmp"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// defaultTimeout replaces a Timeout of 0.
const defaultTimeout = 2 * time.Second

// path is the result of resolving a destination.
type path struct {
	dev     *device
	src     netip.Addr
	errno   unix.Errno // 0, or that of the AddrError after delay
	silence bool       // there is no answer
	delay   time.Duration
}

// resolveAddr implements rdma_resolve_addr(3).
func (id *driverID) resolveAddr(c *cmid.ResolveAddr) error {
	f, dst := id.in.f, c.Dst
	if dst.IB != nil || !dst.Addr().IsValid() {
		return unix.EINVAL
	}
	if id.port == nil {
		src := c.Src
		if src.IsZero() {
			src = cmid.AddrFrom(wildcardOf(dst.Addr()), 0)
		}
		if err := id.enter(states.Bound, id.bind(src)); err != nil {
			return err
		}
	}
	f.mu.Lock()
	p, err := id.routeLocked(dst.Addr())
	f.mu.Unlock()
	if err != nil {
		return err
	}
	id.state = states.AddrQuery
	timeout := cmp.Or(max(c.Timeout, 0), defaultTimeout)
	switch {
	case p.silence || p.delay > timeout:
		id.setTimer(timeout, func() { id.failResolve(unix.ETIMEDOUT) })
	case p.errno != 0:
		id.runAfter(p.delay, func() { id.failResolve(p.errno) })
	default:
		id.runAfter(p.delay, func() { id.finishResolve(p, dst) })
	}
	return nil
}

// failResolve ends ResolveAddr without a result.
func (id *driverID) failResolve(errno unix.Errno) {
	id.changeState(states.Bound, states.KindAddrError, -int32(errno))
}

// finishResolve ends ResolveAddr.
func (id *driverID) finishResolve(p path, dst cmid.Addr) {
	if id.state != states.AddrQuery {
		return
	}
	f := id.in.f
	if p.dev.isRemoved() {
		id.failResolve(unix.ENODEV)
		return
	}
	id.dev, id.peer = p.dev, dst
	if f.embedded && dst.IsWildcard() {
		id.peer = cmid.AddrFrom(loopbackAddr(dst.Addr()), dst.Port())
	}
	if id.local.IsWildcard() {
		id.local = cmid.AddrFrom(p.src, id.local.Port())
		if !f.embedded { // there the socket stays where it is
			f.mu.Lock()
			id.port.ip = p.src
			f.mu.Unlock()
		}
	}
	id.changeState(states.AddrResolved, states.KindAddrResolved, 0)
}

// routeLocked finds the way to dst.
func (a *addresses) routeLocked(dst netip.Addr) (path, error) {
	host := a.self.in.host
	f := host.f
	if dst.Is4() != a.local.Addr().Is4() {
		return path{}, unix.EINVAL
	}
	if isAny(dst) {
		if len(host.devices) == 0 {
			return path{}, unix.ENODEV
		}
		return path{dev: host.devices[0], src: loopbackAddr(dst), delay: f.faults.delay}, nil
	}
	if lacksZone(dst) {
		return path{}, unix.EINVAL
	}
	delay := f.latencyLocked(a.local.Addr(), dst)
	// The kernel never forgets an interface without a device. RoCE has no GID for loopback.
	if a.strayed || !f.iwarp && a.local.Addr().IsLoopback() {
		return path{errno: unix.ENODEV, delay: delay}, nil
	}
	if d := host.ownLocked(dst); d != nil {
		if a.dev != nil && a.dev != d {
			return path{silence: true}, nil // the ports of two devices do not reach each other
		}
		src, _ := d.sourceAddr(dst) // the first address in the subnet, as in the routing table
		return path{dev: d, src: src, delay: delay}, nil
	}
	if host.isPlainLocked(dst) {
		a.strayed = true
		return path{errno: unix.ENODEV, delay: delay}, nil
	}
	devices := host.devices
	if a.dev != nil { // even if it was removed: DeviceRemoval is on its way
		devices = []*device{a.dev}
	}
	for _, d := range devices {
		if src, ok := d.sourceAddr(dst); ok {
			return path{dev: d, src: src, silence: f.reachLocked(host, src, dst) == nil, delay: delay}, nil
		}
	}
	return path{}, unix.ENETUNREACH
}

// resolveRoute does rdma_resolve_route(3). Neither RoCE nor soft-iWARP has a route from a loopback
// address.
func (id *driverID) resolveRoute(c *cmid.ResolveRoute) error {
	f := id.in.f
	if !f.embedded && id.local.Addr().IsLoopback() {
		return unix.ENODEV
	}
	timeout := cmp.Or(max(c.Timeout, 0), defaultTimeout)
	f.mu.Lock()
	delay := f.latencyLocked(id.local.Addr(), id.peer.Addr())
	f.mu.Unlock()
	id.state = states.RouteQuery
	if delay > timeout {
		id.setTimer(timeout, func() { id.changeState(states.AddrResolved, states.KindRouteError, -int32(unix.ETIMEDOUT)) })
	} else {
		id.runAfter(delay, id.routeResolved)
	}
	return nil
}

// routeResolved ends ResolveRoute.
func (id *driverID) routeResolved() {
	if id.state == states.RouteQuery {
		id.changeState(states.RouteResolved, states.KindRouteResolved, 0)
	}
}
