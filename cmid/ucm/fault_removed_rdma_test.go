//go:build linux && rdma

package ucm_test

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
)

// plug makes the device again.
func plug(t *testing.T) {
	t.Helper()
	rdma(t, "link", "add", env(t, "RDMA_DEVICE"), "type", env(t, "RDMA_KIND"), "netdev", env(t, "RDMA_NETDEV"))
	command(t, "rig-active", env(t, "RDMA_DEVICE"))
}

// A device that goes while identifiers of two channels are in every state: each of them is notified
// once, the others not at all; all that was posted is flushed; the device that is added anew works
// on the same channels.
func TestFaultDeviceRemoved(t *testing.T) {
	leavesNothing(t)
	siw := env(t, "RDMA_KIND") == "siw"
	a, b := newSide(t), newSide(t)
	defer a.close()
	defer b.close()
	wild := b.create(cmid.PortSpaceTCP)
	b.must(wild.BindAddr(cmid.AddrFrom(netip.IPv4Unspecified(), anyPort)))
	b.must(wild.Listen(0))
	idle := a.create(cmid.PortSpaceTCP)
	l := b.listen("RDMA_ADDR", 0)
	bound := a.create(cmid.PortSpaceTCP)
	a.must(bound.BindAddr(cmid.AddrFrom(addr(t, "RDMA_ADDR2"), anyPort)))
	resolved := a.resolved(l.LocalAddr())
	active, passive := pair(a, b, l)
	active.talk(slots / 2)
	half := a.connect(l.LocalAddr())
	asked := b.request()
	unread := a.connect(l.LocalAddr())
	b.readable(faultPatience)
	removed := []*cmid.ID{bound, resolved, active.id, half.id, unread.id}
	if !siw {
		u := a.create(cmid.PortSpaceUDP)
		a.must(u.BindAddr(cmid.AddrFrom(addr(t, "RDMA_ADDR"), anyPort)))
		removed = append(removed, u)
	}

	begin := time.Now()
	wait := startRDMA(t, "link", "del", env(t, "RDMA_DEVICE"))
	delivered := func(s *side, ids ...*cmid.ID) bool {
		for _, id := range ids {
			if !strings.Contains(s.of(id.Handle()), "DeviceRemoval") {
				return false
			}
		}
		return true
	}
	a.until("DeviceRemoval of all", func() bool {
		b.turn(10 * time.Millisecond)
		return delivered(a, removed...) && delivered(b, l, passive.id)
	})
	if err := wait(); err != nil {
		t.Errorf("rdma link del: %v", err)
	}
	t.Logf("removed %v after it was asked for", time.Since(begin))
	a.quiet()
	b.quiet()
	for _, end := range []struct {
		s   *side
		ids []*cmid.ID
	}{{a, removed}, {b, []*cmid.ID{l, passive.id, asked.id}}} {
		for _, id := range end.ids {
			got := end.s.of(id.Handle())
			if n := strings.Count(got, "DeviceRemoval"); n > 1 || n == 0 && id != asked.id {
				t.Errorf("got %q, want DeviceRemoval once", got)
			}
			if n := strings.Count(got, "Disconnected") + strings.Count(got, "Rejected") + strings.Count(got, "Unreachable"); n > 1 {
				t.Errorf("got %q, want one end besides the removal at most", got)
			}
			if id != asked.id {
				wantErrno(t, id.Disconnect(), unix.ENXIO)
			}
			end.s.destroy(id)
		}
	}
	for _, c := range []*conn{active, passive} {
		c.poll()
		if !c.flushed() {
			t.Errorf("of %d receives and %d sends %d and %d have succeeded, and %d failed", c.posted, c.issued, c.received, c.sent, c.failures)
		}
	}
	for _, e := range b.delivered { // the request that was not fetched in time, if it was not lost
		if r, ok := e.ev.(*cmid.ConnectRequest); ok && !e.taken {
			e.taken = true
			b.destroy(b.ch.ID(r.ID))
		}
	}
	a.wantDelivered(idle, "")
	b.wantDelivered(wild, "")
	wantErrno(t, idle.BindAddr(cmid.AddrFrom(addr(t, "RDMA_ADDR"), anyPort)), unix.ENODEV)
	a.destroy(idle)

	plug(t)
	again, _ := pair(a, b, b.listen("RDMA_ADDR", 0))
	again.talk(1)
	a.until("the send", func() bool { b.turn(time.Millisecond); return again.sent == 1 })
	// the wildcard listener has the new device too
	to := cmid.AddrFrom(addr(t, "RDMA_ADDR"), wild.SrcPort())
	c := a.connect(to)
	b.must(b.request().id.Reject(nil))
	await[*cmid.Rejected](a, c.id)
}

// A module cannot be unloaded while its device's data path is open, and the attempt is not
// reported. Without a data path it can, and every identifier is notified once.
func TestFaultModuleUnloaded(t *testing.T) {
	leavesNothing(t)
	module := map[string]string{"rxe": "rdma_rxe", "siw": "siw"}[env(t, "RDMA_KIND")]
	s := newSide(t)
	a, b := pair(s, s, s.listen("RDMA_ADDR", 0))
	if out, err := exec.Command("rmmod", module).CombinedOutput(); err == nil {
		t.Fatalf("the module has gone although it is in use: %s", out)
	}
	a.talk(1)
	s.until("a message after the attempt", func() bool { b.talk(0); return a.received == 1 })
	s.wantDelivered(a.id, "AddrResolved RouteResolved Established")
	s.close()

	s = newSideOf(t, ucm.New(ucm.Config{NoProvider: true}))
	defer s.close()
	l := s.listen("RDMA_ADDR", 0)
	ids := []*cmid.ID{l, s.resolved(l.LocalAddr())}
	if module == "rdma_rxe" { // iWARP does not connect without a queue pair
		id := s.resolved(l.LocalAddr())
		s.must(id.Connect(nil, &cmid.ConnParam{QPNum: 77}))
		p := s.ch.ID(await[*cmid.ConnectRequest](s, nil).ID)
		s.must(p.Accept(nil, &cmid.ConnParam{QPNum: 78}))
		await[*cmid.ConnectResponse](s, id)
		s.must(id.Establish())
		await[*cmid.Established](s, p)
		ids = append(ids, id, p)
	}
	unloaded := make(chan error, 1)
	go func() { unloaded <- exec.Command("rmmod", module).Run() }()
	for _, id := range ids {
		s.until("DeviceRemoval", func() bool { return strings.Contains(s.of(id.Handle()), "DeviceRemoval") })
	}
	select {
	case err := <-unloaded:
		s.must(err)
	case <-time.After(faultPatience):
		t.Fatal("rmmod does not end")
	}
	s.quiet()
	for _, id := range ids {
		if got := s.of(id.Handle()); strings.Count(got, "DeviceRemoval") != 1 {
			t.Errorf("got %q, want DeviceRemoval once", got)
		}
		s.destroy(id)
	}
	command(t, "modprobe", module)
	plug(t)
	works(t)
}
