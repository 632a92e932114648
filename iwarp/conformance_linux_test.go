package iwarp_test

import (
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/conformance"
	"github.com/rdmactor/rdmactor/iwarp"
)

// TestConformance compares the embedded device with Linux's rdma_cm over iWARP.
func TestConformance(t *testing.T) {
	addr := hostAddress(t)
	conformance.Run(t, func(t *testing.T) conformance.Rig {
		named := func(name string) *iwarp.Driver { return iwarp.New(iwarp.Config{Device: name}) }
		// an address that every host has and that no route selects
		loopback := netip.AddrFrom4([4]byte{127, 0, 0, 2})
		return conformance.Rig{
			Active: named("iwarp0"), Passive: named("iwarp1"), // two devices in one process
			Address: addr, Second: loopback, Local: loopback,
			NotLocal: netip.MustParseAddr("203.0.113.77"),
			// regardless of routes, because no connection leads to a group
			NoRoute: netip.MustParseAddr("ff0e::7471"),
			// this depends on net.ipv4.ip_unprivileged_port_start and the user
			Privileged: true,
			Reset:      func(id *cmid.ID) { reset(t, id) },
			Differences: []conformance.Difference{
				{What: conformance.LoopbackOnly, Why: "it is a TCP socket's address; rdma_listen(3) says the same"},
				{What: conformance.RefusedIsRejected, Why: "connect does not wait, so the refusal comes as an event"},
				{What: conformance.LoopbackHasDevice, Why: "the device's streams run over loopback as well"},
				{What: conformance.BacklogIsTCPs, Why: "it listens with a TCP socket"},
				{What: conformance.OnlyTrafficClass, Why: "TCP does the rest"},
				{What: conformance.NoQPAttr, Why: "its queue pairs have no states to drive"},
				{What: conformance.NoPath, Why: "TCP finds the way"},
				{What: conformance.NoUserEvent, Why: "as on a kernel before 2025"},
			},
		}
	})
}

// reset resets an identifier's TCP connection. It finds the socket by its addresses.
func reset(t *testing.T, id *cmid.ID) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	at := func(sa unix.Sockaddr, err error) uint16 {
		if in, ok := sa.(*unix.SockaddrInet4); ok && err == nil {
			return uint16(in.Port)
		}
		return 0
	}
	info := id.Info()
	for _, e := range fds {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || at(unix.Getsockname(fd)) != info.Local.Port() || at(unix.Getpeername(fd)) != info.Peer.Port() {
			continue
		}
		// connect(2) to AF_UNSPEC dissolves the association
		to := unix.RawSockaddr{Family: unix.AF_UNSPEC}
		if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to)), unsafe.Sizeof(to)); errno != 0 {
			t.Fatal(errno)
		}
		return
	}
	t.Fatalf("no socket of %v and %v", info.Local, info.Peer)
}

// hostAddress returns an IPv4 address of this host that is not loopback. Without one, a listener on
// loopback cannot be distinguished from others.
func hostAddress(t *testing.T) netip.Addr {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr()
		}
	}
	t.Skip("this host has no IPv4 address but loopback")
	return netip.Addr{}
}
