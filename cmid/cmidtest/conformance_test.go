package cmidtest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/internal/conformance"
	"github.com/rdmactor/rdmactor/states"
)

// twinRig returns two hosts in memory.
func twinRig(flavor states.Flavor) conformance.Rig {
	rig, _ := twin(Config{Flavor: flavor, Seed: 7})
	return rig
}

func twin(cfg Config) (conformance.Rig, *Fabric) {
	f := NewFabric(cfg)
	f.Host("a").AddDevice("mem0", "10.0.0.5")
	f.Host("b").AddDevice("mem1", "10.0.0.7", "10.0.0.8")
	f.Host("b").AddDevice("mem2", "10.0.0.6")
	f.Host("b").AddAddress("192.168.1.1")
	return conformance.Rig{
		Active:       f.Host("a").Driver(),
		Passive:      f.Host("b").Driver(),
		Clock:        eventlooptest.NewClock(time.Unix(1_700_000_000, 0)),
		Address:      netip.MustParseAddr("10.0.0.7"),
		Second:       netip.MustParseAddr("10.0.0.8"),
		Other:        netip.MustParseAddr("10.0.0.6"),
		Local:        netip.MustParseAddr("10.0.0.5"),
		NotLocal:     netip.MustParseAddr("10.0.0.99"),
		Silent:       netip.MustParseAddr("10.0.0.98"),
		NoRoute:      netip.MustParseAddr("2001:db8::1"),
		Plain:        netip.MustParseAddr("192.168.1.1"),
		Datagrams:    cfg.Flavor&states.IWARP == 0,
		Group:        netip.MustParseAddr("239.1.2.4"),
		RemoveDevice: func() { f.RemoveDevice("mem1") },
		Differences: []conformance.Difference{
			{What: conformance.LoopbackOnly, Why: "who binds to loopback wants to be reached from nowhere else (rdma_listen(3))"},
		},
	}, f
}

func TestConformance(t *testing.T) {
	t.Run("InfiniBand", func(t *testing.T) { conformance.Run(t, func(*testing.T) conformance.Rig { return twinRig(0) }) })
	t.Run("iWARP", func(t *testing.T) {
		conformance.Run(t, func(*testing.T) conformance.Rig { return twinRig(states.IWARP) })
	})
	for name, flavor := range map[string]states.Flavor{"reserved InfiniBand": 0, "reserved iWARP": states.IWARP} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(*testing.T) conformance.Rig {
				rig, _ := twin(Config{Flavor: flavor, Reserved: true, Seed: 7})
				return rig
			})
		})
	}
	t.Run("embedded", func(t *testing.T) {
		conformance.Run(t, func(*testing.T) conformance.Rig {
			rig := embeddedRig()
			rig.Differences = append(rig.Differences, conformance.Difference{What: conformance.OnlyTrafficClass, Why: "TCP does the rest"})
			return rig
		})
	})
	t.Run("without options", func(t *testing.T) {
		conformance.Run(t, func(*testing.T) conformance.Rig {
			rig := embeddedRig()
			rig.Active, rig.Passive = plain{rig.Active}, plain{rig.Passive}
			rig.Differences = append(rig.Differences, conformance.Difference{What: conformance.NoMigration, Why: "a driver need not have it"})
			return rig
		})
	})
}

func embeddedRig() conformance.Rig {
	rig, f := twin(Config{Flavor: states.IWARP, Embedded: true, Seed: 7})
	rig.Reset = func(id *cmid.ID) { f.Disconnect(id.Handle()) }
	rig.Differences = append(rig.Differences,
		conformance.Difference{What: conformance.RefusedIsRejected, Why: "the embedded device's connect does not wait"},
		conformance.Difference{What: conformance.LoopbackHasDevice, Why: "the embedded device's streams run over loopback as well"},
		conformance.Difference{What: conformance.BacklogIsTCPs, Why: "it listens with a TCP socket"},
		conformance.Difference{What: conformance.NoQPAttr, Why: "its queue pairs have no states to drive"},
		conformance.Difference{What: conformance.NoPath, Why: "TCP finds the way"},
		conformance.Difference{What: conformance.NoUserEvent, Why: "as on a kernel before 2025"},
	)
	return rig
}

// plain is a driver whose instances and identifiers implement only the required interfaces.
type plain struct{ cmid.Driver }

func (p plain) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in, err := p.Driver.Open(l, plainUpcalls{up})
	return plainInstance{in}, err
}

type plainInstance struct{ cmid.Instance }

func (in plainInstance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	id, err := in.Instance.CreateID(h, ps, t)
	return struct{ cmid.DriverID }{id}, err
}

type plainUpcalls struct{ cmid.Upcalls }

func (up plainUpcalls) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	if ev.Child != nil {
		ev.Child = struct{ cmid.DriverID }{ev.Child}
	}
	up.Upcalls.Event(h, ev)
}
