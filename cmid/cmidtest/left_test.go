package cmidtest

import (
	"slices"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Left counts existing objects, and forgets freed ones, once.
func TestLeft(t *testing.T) {
	flavors(t, func(t *testing.T, flavor states.Flavor) {
		p := connected(t, flavor)
		left := func(want ...string) {
			t.Helper()
			if got := p.f.Left(); !slices.Equal(got, want) {
				t.Errorf("left %q, want %q", got, want)
			}
		}
		left(
			"1 completion queue on mem0", "1 completion queue on mem1", "1 identifier on the host a",
			"1 memory region on mem0", "1 memory region on mem1", "1 queue pair on mem0", "1 queue pair on mem1",
			"2 identifiers on the host b",
		)
		dev := p.active.Device()
		var srq verbs.SRQ
		p.a.must(func() (err error) {
			srq, err = dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1})
			return err
		})
		if !slices.Contains(p.f.Left(), "1 shared receive queue on mem0") {
			t.Errorf("left %q, with a shared receive queue", p.f.Left())
		}
		p.a.must(srq.Close)
		var pd verbs.PD
		p.a.must(func() (err error) {
			pd, err = dev.AllocPD()
			return err
		})
		if !slices.Contains(p.f.Left(), "1 protection domain on mem0") {
			t.Errorf("left %q, with a protection domain", p.f.Left())
		}
		p.a.must(pd.Close)
		p.a.must(p.activeQ.qp.Destroy)
		p.a.must(p.active.Destroy)
		p.b.must(p.passive.Destroy)
		p.b.must(p.listener.Destroy)
		left("1 completion queue on mem0", "1 completion queue on mem1", "1 memory region on mem0", "1 memory region on mem1")
		p.b.create(cmid.PortSpaceTCP) // the channel's Close ends it
		for range 2 {
			p.a.must(p.activeQ.cq.Close)
			p.b.must(p.passiveQ.cq.Close)
		}
		p.a.must(func() error { return dev.Free(p.activeQ.mr) })
		p.b.must(func() error { return p.b.ch.Devices()[0].Free(p.passiveQ.mr) })
		left("1 identifier on the host b")
		p.close()
		left()
	})
}
