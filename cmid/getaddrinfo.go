package cmid

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// raiAll are the flags that exist.
const raiAll = RAIPassive | RAINumericHost | RAINoRoute | RAIFamily | RAISA | RAIDNS

// resolver is the part of net.Resolver that LookupAddrInfo needs.
type resolver interface {
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupPort(ctx context.Context, network, service string) (int, error)
}

// LookupAddrInfo is rdma_getaddrinfo(3) as a plain call; the message is GetAddrInfo. It turns a
// node (a name or a literal address) and a service (a port number or a name) into the addresses to
// connect to, or with RAIPassive to listen on. An empty node or service is C's NULL.
//
// It may wait for a name server, so it must not run on a loop; ctx ends the wait. Literal
// addresses never wait. It needs no device, so it never returns ENODEV: BindAddr and ResolveAddr
// find out whether a device has the address.
//
// All addresses are returned, in the resolver's order, where librdmacm returns the first one only;
// the caller should try each. Without a node these are ::1 and 127.0.0.1, and 0.0.0.0 and :: with
// RAIPassive, as glibc orders them. The caller owns the result; it shares no memory with hints.
//
// Every error is a *GAIError. With node, service and hints all missing it is EAINoName and EINVAL;
// with hints alone the result is a copy of them.
func LookupAddrInfo(ctx context.Context, node, service string, hints *AddrInfo) ([]AddrInfo, error) {
	return lookupAddrInfo(ctx, net.DefaultResolver, node, service, hints)
}

func lookupAddrInfo(ctx context.Context, res resolver, node, service string, hints *AddrInfo) ([]AddrInfo, error) {
	list, err := lookupChecked(ctx, res, node, service, hints)
	if err != nil {
		err.Node, err.Service = node, service
		return nil, err
	}
	return list, nil
}

// lookupChecked checks in glibc's order: hints, then service, then node.
func lookupChecked(ctx context.Context, res resolver, node, service string, hints *AddrInfo) ([]AddrInfo, *GAIError) {
	if hints == nil {
		if node == "" && service == "" {
			return nil, &GAIError{Code: EAINoName, Err: unix.EINVAL, Remedy: "give a node, a service or hints"}
		}
		hints = &AddrInfo{}
	}
	if bad := hints.Flags &^ raiAll; bad != 0 {
		return nil, &GAIError{Code: EAIBadFlags, Err: fmt.Errorf("%#x", uint32(bad)), Remedy: "use the RAI constants"}
	}
	if hints.Flags&RAISA != 0 {
		return nil, serviceRecords(node, hints.Flags)
	}
	if node == "" && service == "" {
		return []AddrInfo{copyHints(hints)}, nil
	}
	switch hints.Family {
	case FamilyAny, FamilyIPv4, FamilyIPv6, FamilyIB:
	default:
		return nil, &GAIError{Code: EAIFamily, Err: fmt.Errorf("family %d", hints.Family), Remedy: "use FamilyIPv4, FamilyIPv6, FamilyIB or none"}
	}
	t, port, err := chooseTransport(ctx, res, service, hints)
	if err != nil {
		return nil, err
	}
	ips, err := nodeAddrs(ctx, res, node, hints)
	if err != nil {
		return nil, err
	}
	list := make([]AddrInfo, len(ips))
	for i, ip := range ips {
		list[i] = newAddrInfo(ip, port, t, hints)
	}
	return list, nil
}

// serviceRecords does RAI_SA: the lookup in InfiniBand's service records, which only a subnet
// administrator has.
func serviceRecords(node string, flags AddrInfoFlags) *GAIError {
	if node != "" || flags&RAIDNS != 0 {
		return &GAIError{Code: EAISystem, Err: unix.EOPNOTSUPP, Remedy: "RAISA takes a service and neither a node nor RAIDNS"}
	}
	return &GAIError{Code: EAISystem, Err: unix.ENOENT, Remedy: "no InfiniBand port to ask for service records: look up without RAISA"}
}

// copyHints returns the answer to hints alone. A passive result has no destination.
func copyHints(h *AddrInfo) AddrInfo {
	ai := AddrInfo{Flags: h.Flags, Family: h.Family, QPType: h.QPType, PortSpace: h.PortSpace, Src: h.Src.clone()}
	if h.Flags&RAIPassive == 0 {
		ai.Dst = h.Dst.clone()
	}
	return ai
}

// transport is a kind of socket that getaddrinfo(3) knows, with librdmacm's counterparts.
type transport struct {
	network string
	qp      QPType
	ps      PortSpace
}

// transports in the order in which getaddrinfo(3) tries them.
var transports = [...]transport{
	{"tcp", QPTypeRC, PortSpaceTCP},
	{"udp", QPTypeUD, PortSpaceUDP},
}

// matchesHints reports whether the hints allow t.
func (t transport) matchesHints(h *AddrInfo) bool {
	switch h.QPType {
	case QPTypeRC, QPTypeUC, QPTypeXRCSend, QPTypeXRCRecv:
		if t.qp != QPTypeRC {
			return false
		}
	case QPTypeUD:
		if t.qp != QPTypeUD {
			return false
		}
	}
	switch h.PortSpace {
	case PortSpaceTCP:
		return t.ps == PortSpaceTCP
	case PortSpaceUDP, PortSpaceIPOIB:
		return t.ps == PortSpaceUDP
	}
	return true
}

// chooseTransport returns the first transport that fits hints and has service, and the port there.
func chooseTransport(ctx context.Context, res resolver, service string, h *AddrInfo) (transport, uint16, *GAIError) {
	var failed *GAIError
	for _, t := range transports {
		if !t.matchesHints(h) {
			continue
		}
		port, err := servicePort(ctx, res, t.network, service)
		if err == nil {
			return t, port, nil
		}
		if failed == nil {
			failed = err
		}
	}
	if failed == nil {
		return transport{}, 0, &GAIError{
			Code: EAISockType, Err: fmt.Errorf("type %v, port space %v", h.QPType, h.PortSpace),
			Remedy: "RC goes with TCP, UD with UDP or IPOIB; leave one of the two out",
		}
	}
	return transport{}, 0, failed
}

// servicePort returns a service's port, 0 for no service. glibc takes a number modulo 65536. Here a
// number that is not a port is an error.
func servicePort(ctx context.Context, res resolver, network, service string) (uint16, *GAIError) {
	if service == "" {
		return 0, nil
	}
	if isDigits(service) {
		port, err := strconv.ParseUint(service, 10, 16)
		if err != nil {
			return 0, &GAIError{Code: EAIService, Err: fmt.Errorf("port %s is out of range", service), Remedy: "ports are 0 to 65535"}
		}
		return uint16(port), nil
	}
	remedy := "give a port number, or a name that /etc/services has for " + network
	// A sign or a blank before a number is more often a slip. The resolver may take it:
	// net.LookupPort reads signs, and the C library, where it is asked, skips blanks.
	if strings.ContainsRune("+- \t\n\v\f\r", rune(service[0])) {
		return 0, &GAIError{Code: EAIService, Remedy: remedy}
	}
	port, err := res.LookupPort(ctx, network, service)
	if err != nil {
		e := lookupError(err, EAIService)
		if e.Code == EAIService {
			e.Remedy = remedy
		}
		return 0, e
	}
	if port < 0 || port > 65535 {
		return 0, &GAIError{Code: EAIService, Err: fmt.Errorf("port %d is out of range", port), Remedy: remedy}
	}
	return uint16(port), nil
}

// wantsGID reports whether the node is a GID and the result an AF_IB address.
func (ai *AddrInfo) wantsGID() bool {
	return ai.Family == FamilyIB && ai.Flags&RAIFamily != 0 && ai.Flags&RAINumericHost != 0
}

// newAddrInfo puts one address into the shape the hints ask for.
func newAddrInfo(ip netip.Addr, port uint16, t transport, h *AddrInfo) AddrInfo {
	ai := AddrInfo{Flags: h.Flags & RAIPassive, QPType: h.QPType, PortSpace: h.PortSpace}
	if ai.QPType == QPTypeAny {
		ai.QPType = t.qp
	}
	if ai.PortSpace == 0 {
		ai.PortSpace = t.ps
	}
	a := AddrFrom(ip, port)
	if h.wantsGID() {
		a = gidAddr(ip, port, ai.PortSpace)
	}
	ai.Family = a.Family()
	if h.Flags&RAIPassive != 0 {
		ai.Src = a
	} else {
		ai.Src, ai.Dst = h.Src.clone(), a
	}
	return ai
}

// gidAddr returns the sockaddr_ib of an IPv6 literal that is a GID: any partition, the service id
// of the port space and port. The port takes part in the comparison only when there is one.
func gidAddr(ip netip.Addr, port uint16, ps PortSpace) Addr {
	ib := &SockaddrIB{PKey: 0xFFFF, GID: ip.As16(), SID: uint64(ps)<<16 | uint64(port), SIDMask: ^uint64(0xFFFF)}
	if port != 0 {
		ib.SIDMask = ^uint64(0)
	}
	if index, err := zoneIndex(ip); err == nil {
		ib.ScopeID = uint64(index)
	}
	return Addr{IB: ib}
}

// PrivateData puts ai_connect before the caller's own private data, as rdma_getaddrinfo(3) requires
// for a connection with ai. Pass its result to Connect. Without ai_connect, which only InfiniBand
// addresses need, it is user itself.
func (ai *AddrInfo) PrivateData(user []byte) []byte {
	if len(ai.Connect) == 0 {
		return user
	}
	return slices.Concat(ai.Connect, user)
}
