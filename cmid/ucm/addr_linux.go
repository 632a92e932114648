package ucm

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
)

// The sizes of the sockaddrs.
const (
	sizeofIn  = 16
	sizeofIn6 = 28
	sizeofIB  = 48
)

// kernelSockaddr returns a as the kernel takes it; the zero Addr is all zeros. EINVAL for a family
// it does not know, ENODEV for an unknown zone.
func kernelSockaddr(a cmid.Addr) (sa uabi.Sockaddr, err error) {
	if a.IB != nil {
		putIB(&sa, a.IB)
		return sa, nil
	}
	b, ip := sa.Data[:], a.Addr()
	switch {
	case a.IsZero():
	case ip.Is4():
		sa.Len = sizeofIn
		binary.NativeEndian.PutUint16(b, unix.AF_INET)
		binary.BigEndian.PutUint16(b[2:], a.Port())
		v4 := ip.As4()
		copy(b[4:], v4[:])
	case ip.Is6():
		sa.Len = sizeofIn6
		binary.NativeEndian.PutUint16(b, unix.AF_INET6)
		binary.BigEndian.PutUint16(b[2:], a.Port())
		v6 := ip.As16()
		copy(b[8:], v6[:])
		scope, err := scopeID(ip.Zone())
		if err != nil {
			return sa, err
		}
		binary.NativeEndian.PutUint32(b[24:], scope)
	default:
		return sa, fmt.Errorf("ucm: %q is not an address: %w", a.String(), unix.EINVAL)
	}
	return sa, nil
}

func putIB(sa *uabi.Sockaddr, ib *cmid.SockaddrIB) {
	b := sa.Data[:]
	sa.Len = sizeofIB
	binary.NativeEndian.PutUint16(b, uabi.AFIB)
	binary.BigEndian.PutUint16(b[2:], ib.PKey)
	binary.BigEndian.PutUint32(b[4:], ib.FlowInfo)
	copy(b[8:], ib.GID[:])
	binary.BigEndian.PutUint64(b[24:], ib.SID)
	binary.BigEndian.PutUint64(b[32:], ib.SIDMask)
	binary.NativeEndian.PutUint64(b[40:], ib.ScopeID)
}

// addrOf converts a sockaddr of the kernel's: to the zero Addr for none, and for a family that
// Addr does not know.
func addrOf(b *[128]byte) cmid.Addr {
	port := binary.BigEndian.Uint16(b[2:])
	switch binary.NativeEndian.Uint16(b[:]) {
	case unix.AF_INET:
		return cmid.AddrFrom(netip.AddrFrom4([4]byte(b[4:])), port)
	case unix.AF_INET6:
		ip := netip.AddrFrom16([16]byte(b[8:]))
		if scope := binary.NativeEndian.Uint32(b[24:]); scope != 0 {
			ip = ip.WithZone(zoneName(scope))
		}
		return cmid.AddrFrom(ip, port)
	case uabi.AFIB:
		return cmid.Addr{IB: &cmid.SockaddrIB{
			PKey: port, FlowInfo: binary.BigEndian.Uint32(b[4:]), GID: [16]byte(b[8:]),
			SID: binary.BigEndian.Uint64(b[24:]), SIDMask: binary.BigEndian.Uint64(b[32:]), ScopeID: binary.NativeEndian.Uint64(b[40:]),
		}}
	}
	return cmid.Addr{}
}

// scopeID returns the number of an interface, 0 for no zone.
func scopeID(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n), nil
	}
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("ucm: zone %q: %w", zone, unix.ENODEV)
	}
	return uint32(i.Index), nil
}

// zoneName returns the name of an interface, or its number when it has gone.
func zoneName(scope uint32) string {
	if i, err := net.InterfaceByIndex(int(scope)); err == nil {
		return i.Name
	}
	return strconv.FormatUint(uint64(scope), 10)
}
