//go:build linux && rdma

package ucm_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/cmid/ucm"
)

// addDevice makes another device, which goes with the test if it is still there.
func addDevice(t *testing.T, name, kind, netdev string) {
	t.Helper()
	rdma(t, "link", "add", name, "type", kind, "netdev", netdev)
	command(t, "rig-active", name)
	// fails when the test has deleted it
	t.Cleanup(func() { _ = exec.Command("rdma", "link", "del", name).Run() })
}

// exchange sends messages there and back.
func exchange(s *side, a, b *conn) {
	s.Helper()
	there, back := b.received+slots, a.received+slots
	a.talk(slots)
	s.until("messages there", func() bool { return b.received == there })
	b.talk(0)
	s.until("messages back", func() bool { return a.received == back })
}

// Two devices of one interface have one node GUID. Each identifier uses the one that the kernel has
// given it, whichever comes first by name, and both are listed.
func TestFaultTwoDevicesOfOneInterface(t *testing.T) {
	leavesNothing(t)
	mine := env(t, "RDMA_DEVICE")
	other := map[string]string{"rxe": "siw", "siw": "rxe"}[env(t, "RDMA_KIND")]
	for _, name := range []string{"a_" + other, "z_" + other} {
		t.Run(name, func(t *testing.T) {
			addDevice(t, name, other, env(t, "RDMA_NETDEV"))
			s := newSide(t)
			defer s.close()
			a, b := pair(s, s, s.listen("RDMA_ADDR", 0))
			exchange(s, a, b)
			for _, c := range []*conn{a, b} {
				if got := c.id.Info().Device; got != mine || c.dev.Name() != mine {
					t.Errorf("the identifier is on %s, and its queue pair on %s, want %s", got, c.dev.Name(), mine)
				}
			}
			if got, ok, err := ucm.DeviceFor(addr(t, "RDMA_ADDR")); got != mine || !ok || err != nil {
				t.Errorf("the address is %q's, %v, %v; want %s", got, ok, err, mine)
			}
			var names []string
			for _, d := range s.ch.Devices() {
				names = append(names, d.Name())
			}
			for _, want := range []string{mine, name} {
				if list := strings.Join(names, " "); strings.Count(" "+list+" ", " "+want+" ") != 1 {
					t.Errorf("the devices are %q, want %s among them once", list, want)
				}
			}
		})
	}
}

// A device that was renamed is still the same: another one's removal does not concern it, its own
// does.
func TestFaultDeviceRenamed(t *testing.T) {
	leavesNothing(t)
	name, kind, netdev := env(t, "RDMA_DEVICE"), env(t, "RDMA_KIND"), env(t, "RDMA_NETDEV")
	renamed, other := "renamed_"+kind, "other_"+kind
	addDevice(t, other, kind, strings.TrimSuffix(netdev, "0")+"1")
	s := newSide(t)
	defer s.close()
	a, b := pair(s, s, s.listen("RDMA_ADDR", 0))
	exchange(s, a, b)
	rdma(t, "dev", "set", name, "name", renamed)
	back := func() { _ = exec.Command("rdma", "dev", "set", renamed, "name", name).Run() }
	defer back()
	rdma(t, "link", "del", other)
	s.quiet()
	exchange(s, a, b)
	s.wantDelivered(a.id, "AddrResolved RouteResolved Established")
	if got := a.id.Info().Device; got != renamed {
		t.Errorf("the identifier is on %s, want %s", got, renamed)
	}
	wait := startRDMA(t, "link", "del", renamed)
	for _, c := range []*conn{a, b} { // it may be notified of its peer's end first
		s.until("the removal", func() bool { return strings.Contains(s.of(c.id.Handle()), "DeviceRemoval") })
	}
	s.must(wait())
	plug(t)
}
