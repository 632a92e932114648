package cmid

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// The meaning of an empty node, in glibc's order.
var (
	loopback = []netip.Addr{netip.IPv6Loopback(), netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	wildcard = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
)

// nodeAddrs returns node's addresses of the family that hints ask for; one at least.
func nodeAddrs(ctx context.Context, res resolver, node string, h *AddrInfo) ([]netip.Addr, *GAIError) {
	family := h.Family
	switch {
	case h.wantsGID():
		family = FamilyIPv6 // a GID is written as one
	case family == FamilyIB:
		family = FamilyAny // librdmacm ignores it here
	}
	if node == "" {
		if h.Flags&RAIPassive != 0 {
			return ofFamily(wildcard, family), nil
		}
		return ofFamily(loopback, family), nil
	}
	ips, err := parseLiteral(node, family)
	if err != nil {
		return nil, err
	}
	if ips == nil {
		if h.Flags&RAINumericHost != 0 {
			return nil, &GAIError{Code: EAINoName, Err: errors.New("it is no literal address"), Remedy: "give an IP address, or leave RAINumericHost out"}
		}
		if ips, err = lookupNode(ctx, res, node); err != nil {
			return nil, err
		}
	}
	found := ofFamily(ips, family)
	if len(found) == 0 {
		remedy := "leave the family out of the hints"
		if h.wantsGID() {
			remedy = "write the GID as an IPv6 address"
		}
		return nil, &GAIError{Code: EAIAddrFamily, Err: fmt.Errorf("it has %v", ips[0]), Remedy: remedy}
	}
	return found, nil
}

// ofFamily filters. The result is never list itself.
func ofFamily(list []netip.Addr, family Family) []netip.Addr {
	var out []netip.Addr
	for _, ip := range list {
		if family == FamilyAny || family == ipFamily(ip) {
			out = append(out, ip)
		}
	}
	return out
}

// parseLiteral parses a literal address. It gives nothing when node may be a name, and an error
// when it can be neither, so that no name server is asked for a mistyped address.
func parseLiteral(node string, family Family) ([]netip.Addr, *GAIError) {
	ip, err := netip.ParseAddr(node)
	if err != nil {
		if remedy := malformedRemedy(node); remedy != "" {
			return nil, &GAIError{Code: EAINoName, Err: errors.New("it is neither a name nor an address"), Remedy: remedy}
		}
		return nil, nil
	}
	if _, err := zoneIndex(ip); err != nil {
		return nil, &GAIError{Code: EAINoName, Err: err, Remedy: "name an interface that exists, after a link-local address only"}
	}
	if ip.Is4In6() && family == FamilyIPv4 {
		ip = ip.Unmap()
	}
	return []netip.Addr{nameZone(ip)}, nil
}

// malformedRemedy returns advice on a node that is not an address and cannot be a name; "" if it
// can be one.
func malformedRemedy(node string) string {
	switch {
	case strings.HasPrefix(node, "["):
		return "give the address without brackets, and the port as the service"
	case strings.Contains(node, ":"):
		return "check the IPv6 address; a port is given as the service"
	case strings.ContainsAny(node, "%/ \t\r\n\x00"):
		return "remove what belongs to no name: blanks, slashes, percent signs"
	case isNumber(node[strings.LastIndexByte(node, '.')+1:]):
		return "write an IPv4 address as four decimal numbers up to 255, without leading zeros"
	}
	return ""
}

// isNumber reports whether the last part of a node is a number, in one of the bases that
// inet_aton(3) knows. No name ends in one.
func isNumber(s string) bool {
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return isDigits(s)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// zoneIndex returns the scope id of an IPv6 address, 0 when it has no zone. A zone is an
// interface's name, which only link-local addresses may have, or a number.
func zoneIndex(ip netip.Addr) (uint32, error) {
	zone := ip.Zone()
	if zone == "" {
		return 0, nil
	}
	if ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() {
		if ifi, err := net.InterfaceByName(zone); err == nil {
			return uint32(ifi.Index), nil
		}
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n), nil
	}
	return 0, fmt.Errorf("no interface %q for %v", zone, ip.WithZone(""))
}

// lookupNode asks the resolver for all addresses of a name.
func lookupNode(ctx context.Context, res resolver, node string) ([]netip.Addr, *GAIError) {
	found, err := res.LookupIPAddr(ctx, node)
	if err != nil {
		e := lookupError(err, EAINoName)
		if e.Code == EAINoName {
			e.Remedy = "check the spelling, or give an IP address"
		}
		return nil, e
	}
	var ips []netip.Addr
	for _, f := range found {
		if ip, ok := netip.AddrFromSlice(f.IP); ok {
			// the resolver gives IPv4 addresses in 16 bytes
			ips = append(ips, nameZone(ip.Unmap().WithZone(f.Zone)))
		}
	}
	if len(ips) == 0 {
		return nil, &GAIError{Code: EAINoData, Remedy: "give the name an address, or give an IP address"}
	}
	return ips, nil
}
