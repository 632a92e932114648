//go:build linux && rdma

package ucm_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// talks makes both ends talk for a while.
func (s *side) talks(a, b *conn) {
	s.Helper()
	had := a.received
	s.until("messages both ways", func() bool {
		if a.received < had+slots {
			a.talk(1)
		}
		b.talk(0)
		return a.received == had+slots || a.failures+b.failures > 0
	})
}

// peerOf returns the other end of the machine's veth pair.
func peerOf(t *testing.T) string { return env(t, "RDMA_NETDEV")[:2] + "1" }

// An interface that goes down under connections: they are notified at most once, or live on;
// resolutions under way fail in time; up again everything works on the same channel.
func TestFaultInterfaceDown(t *testing.T) {
	leavesNothing(t)
	netdev := env(t, "RDMA_NETDEV")
	s := newSide(t)
	defer s.close()
	l := s.listen("RDMA_ADDR", 0)
	a, b := pair(s, s, l)
	s.talks(a, b)
	var events []verbs.DeviceEvent // of port 1
	l.Device().(verbs.Reporter).OnDeviceEvent(func(ev verbs.DeviceEvent, port int) {
		if port == 1 {
			events = append(events, ev)
		}
	})
	resolving := s.create(cmid.PortSpaceTCP)
	const timeout = 2 * time.Second
	begin := time.Now()
	s.must(resolving.ResolveAddr(cmid.Addr{}, cmid.AddrFrom(addr(t, "RDMA_NOARP_ADDR"), 1), timeout))

	command(t, "ip", "link", "set", netdev, "down")
	down := s.create(cmid.PortSpaceTCP)
	if err := down.ResolveAddr(cmid.Addr{}, cmid.AddrFrom(addr(t, "RDMA_NOARP_ADDR"), 1), timeout); err == nil {
		await[*cmid.AddrError](s, down)
	} else if !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("resolving without an interface: %v", err)
	}
	await[*cmid.AddrError](s, resolving)
	// an emulated machine is slow, not this slow
	if took := time.Since(begin); took > timeout+8*time.Second {
		t.Errorf("a timeout of %v has taken %v", timeout, took)
	}
	s.quiet()
	command(t, "ip", "link", "set", netdev, "up")
	command(t, "ip", "neigh", "replace", addr(t, "RDMA_SILENT_ADDR").String(), "lladdr", silentMAC(t), "nud", "permanent", "dev", netdev)
	command(t, "rig-active", env(t, "RDMA_DEVICE"))

	s.until("the port's events", func() bool {
		return slices.Contains(events, verbs.PortError) && slices.Contains(events, verbs.PortActive)
	})
	s.wantDelivered(resolving, "AddrError")
	s.wantDelivered(l, "")
	const connected = "AddrResolved RouteResolved Established"
	if s.of(a.id.Handle()) == connected {
		s.talks(a, b)
		t.Log("the connection lives on")
	}
	s.wantDelivered(a.id, connected, connected+" Disconnected")
	s.wantDelivered(b.id, "ConnectRequest Established", "ConnectRequest Established Disconnected")
	s.talks(pair(s, s, l))
}

// silentMAC returns the link address of RDMA_SILENT_ADDR.
func silentMAC(t *testing.T) string {
	t.Helper()
	return map[string]string{"rx1": "02:00:00:00:01:01", "sw1": "02:00:00:00:02:01"}[peerOf(t)]
}

// An address that goes from under a connection and a listener, and comes back: there is no
// notification. iWARP's TCP waits for it; rxe fails a send for which there is no route, and the
// connection's end is its owner's. A bind to the missing address fails: it is not there.
func TestFaultAddressGoes(t *testing.T) {
	leavesNothing(t)
	netdev, ip := env(t, "RDMA_NETDEV"), addr(t, "RDMA_ADDR2")
	s := newSide(t)
	defer s.close()
	l := s.listen("RDMA_ADDR2", 0)
	a, b := pair(s, s, l)
	s.talks(a, b)
	resolving := s.create(cmid.PortSpaceTCP)
	s.must(resolving.ResolveAddr(cmid.AddrFrom(ip, anyPort), cmid.AddrFrom(addr(t, "RDMA_NOARP_ADDR"), 1), time.Second))

	command(t, "ip", "addr", "del", ip.String()+"/24", "dev", netdev)
	a.talk(1)
	id := s.create(cmid.PortSpaceTCP)
	wantErrno(t, id.BindAddr(cmid.AddrFrom(ip, anyPort)), unix.EADDRNOTAVAIL)
	s.destroy(id)
	await[*cmid.AddrError](s, resolving)
	s.quiet()
	command(t, "ip", "addr", "add", ip.String()+"/24", "dev", netdev)

	s.wantDelivered(resolving, "AddrError")
	s.wantDelivered(l, "")
	s.wantDelivered(a.id, "AddrResolved RouteResolved Established")
	s.wantDelivered(b.id, "ConnectRequest Established")
	if a.failures == 0 {
		s.talks(a, b)
	} else {
		t.Log("a send without an address has failed")
		s.must(a.id.Disconnect())
		await[*cmid.Disconnected](s, b.id)
		s.must(b.id.Disconnect())
		await[*cmid.Disconnected](s, a.id)
		s.until("the flush of all that was posted", func() bool { return a.flushed() && b.flushed() })
	}
	s.talks(pair(s, s, l))
}

// A next hop that gets another link-layer address: rxe's route is over, which is reported once;
// iWARP's TCP does not care.
func TestFaultNeighbourChanges(t *testing.T) {
	leavesNothing(t)
	s := newSide(t)
	defer s.close()
	silent := cmid.AddrFrom(addr(t, "RDMA_SILENT_ADDR"), 1)
	id := s.resolved(silent)
	neigh := func(mac string) {
		command(t, "ip", "neigh", "replace", silent.Addr().String(), "lladdr", mac, "nud", "permanent", "dev", env(t, "RDMA_NETDEV"))
	}
	neigh("02:00:00:00:09:09")
	defer neigh(silentMAC(t))
	if env(t, "RDMA_KIND") == "rxe" {
		await[*cmid.NeighbourChanged](s, id)
	}
	s.quiet()
	s.wantDelivered(id, "AddrResolved RouteResolved", "AddrResolved RouteResolved NeighbourChanged")
	s.destroy(id)
}
