package cmidtest

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// defaultTimeout is what a Timeout of 0 means.
const defaultTimeout = 2 * time.Second

// path is what resolving a destination has found.
type path struct {
	dev     *device
	src     netip.Addr
	errno   unix.Errno // AddrError with this, once it is known
	silence bool       // nobody answers
	delay   time.Duration
}

// resolveAddr is rdma_resolve_addr(3).
func (id *ident) resolveAddr(c *cmid.ResolveAddr) error {
	f, dst := id.in.f, c.Dst
	if dst.IB != nil || !dst.Addr().IsValid() {
		return unix.EINVAL
	}
	if id.port == nil {
		src := c.Src
		if src.IsZero() {
			src = cmid.AddrFrom(unspecified(dst.Addr()), 0)
		}
		if err := id.bind(src); err != nil {
			return err
		}
	}
	f.mu.Lock()
	p, err := id.route(dst.Addr())
	f.mu.Unlock()
	if err != nil {
		return err
	}
	id.state = states.AddrQuery
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	failed := func(errno unix.Errno) func() {
		return func() {
			id.state = states.Bound
			id.tell(states.KindAddrError, -int32(errno))
		}
	}
	switch {
	case p.silence || p.delay > timeout:
		id.arm(timeout, failed(unix.ETIMEDOUT))
	case p.errno != 0:
		id.after(p.delay, failed(p.errno))
	default:
		id.after(p.delay, func() { id.resolved(p, dst) })
	}
	return nil
}

func (id *ident) resolved(p path, dst cmid.Addr) {
	if id.state != states.AddrQuery {
		return
	}
	f := id.in.f
	f.mu.Lock()
	gone := p.dev.removed
	f.mu.Unlock()
	if gone {
		id.state = states.Bound
		id.tell(states.KindAddrError, -int32(unix.ENODEV))
		return
	}
	id.dev, id.peer = p.dev, dst
	if f.embedded && dst.IsWildcard() {
		id.peer = cmid.AddrFrom(loopbackAddr(dst.Addr()), dst.Port())
	}
	if id.local.IsWildcard() {
		id.local = cmid.AddrFrom(p.src, id.local.Port())
		if !f.embedded { // its socket stays where it is
			f.mu.Lock()
			id.port.ip = p.src
			f.mu.Unlock()
		}
	}
	id.state = states.AddrResolved
	id.tell(states.KindAddrResolved, 0)
}

// route finds the way to dst. f.mu is held.
func (id *ident) route(dst netip.Addr) (path, error) {
	host, f := id.in.host, id.in.f
	if dst.Is4() != id.local.Addr().Is4() {
		return path{}, unix.EINVAL
	}
	bound := id.dev
	if loopback(dst) {
		if len(host.devices) == 0 {
			return path{}, unix.ENODEV
		}
		return path{dev: host.devices[0], src: loopbackAddr(dst), delay: f.faults.delay}, nil
	}
	if dst.Is6() && dst.IsLinkLocalUnicast() && dst.Zone() == "" {
		return path{}, unix.EINVAL
	}
	delay := f.latency(id.local.Addr().WithZone(""), dst.WithZone(""))
	// the other interface sticks to it; RoCE has no GID for loopback
	if id.poisoned || !f.iwarp && id.local.Addr().IsLoopback() {
		return path{errno: unix.ENODEV, delay: delay}, nil
	}
	if d := host.own(dst); d != nil {
		if bound != nil && bound != d {
			return path{silence: true}, nil // one device's port does not hear the other's
		}
		src, _ := d.source(dst) // the first of the subnet's, as the routing table has it
		return path{dev: d, src: src, delay: delay}, nil
	}
	if host.isPlain(dst) {
		id.poisoned = true
		return path{errno: unix.ENODEV, delay: delay}, nil
	}
	dev, src := host.onLink(dst)
	if bound != nil {
		own, ok := bound.source(dst)
		if !ok {
			return path{}, unix.ENETUNREACH
		}
		dev, src = bound, own
	}
	if dev == nil {
		return path{}, unix.ENETUNREACH
	}
	ip := dst.WithZone("")
	there := f.addrs[ip]
	silence := f.silenced(ip, src) || there == nil || f.severed(host, there.host)
	return path{dev: dev, src: src, silence: silence, delay: delay}, nil
}

// resolveRoute is rdma_resolve_route(3). Neither RoCE nor soft-iWARP has a way from a loopback
// address.
func (id *ident) resolveRoute(c *cmid.ResolveRoute) error {
	f := id.in.f
	if !f.embedded && id.local.Addr().IsLoopback() {
		return unix.ENODEV
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	f.mu.Lock()
	delay := f.latency(id.local.Addr().WithZone(""), id.peer.Addr().WithZone(""))
	f.mu.Unlock()
	id.state = states.RouteQuery
	if delay > timeout {
		id.arm(timeout, func() {
			id.state = states.AddrResolved
			id.tell(states.KindRouteError, -int32(unix.ETIMEDOUT))
		})
		return nil
	}
	id.after(delay, func() {
		if id.state == states.RouteQuery {
			id.state = states.RouteResolved
			id.tell(states.KindRouteResolved, 0)
		}
	})
	return nil
}
