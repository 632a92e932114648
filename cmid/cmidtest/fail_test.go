package cmidtest

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// statuses returns the completions' statuses in order.
func statuses(wc []verbs.WC, recv bool) (all []verbs.Status) {
	for _, c := range wc {
		if (c.ID >= 100) == recv {
			all = append(all, c.Status)
		}
	}
	return all
}

// A work request that FailNext makes fail completes in order. Those before it succeed, and those
// behind it are flushed. On InfiniBand rdma_cm does not notice. On iWARP the connection ends.
func TestFailNext(t *testing.T) {
	flavors(t, func(t *testing.T, flavor states.Flavor) {
		for _, op := range []verbs.Opcode{verbs.Send, verbs.Recv} {
			p := connected(t, flavor)
			p.a.must(func() error { return p.activeQ.send(1, "fine") })
			q, h := p.activeQ, p.active.Handle()
			if op == verbs.Recv {
				q, h = p.passiveQ, p.passive.Handle()
			}
			p.f.FailNext(h, op, verbs.StatusLocProt)
			synctest.Wait()
			p.a.must(func() error { return errors.Join(p.activeQ.send(2, "fails"), p.activeQ.send(3, "is behind")) })
			want := []verbs.Status{verbs.StatusSuccess, verbs.StatusLocProt, verbs.StatusFlushed}
			if op == verbs.Recv {
				want = append(want, verbs.StatusFlushed) // four were posted
			}
			if got := statuses(q.wc, op == verbs.Recv); !slices.Equal(got, want) {
				t.Errorf("%v: completed with %v, want %v", op, got, want)
			}
			if iwarp := flavor != 0; iwarp {
				only[*cmid.Disconnected](p.a)
				only[*cmid.Disconnected](p.b)
			} else if got := append(p.a.take(), p.b.take()...); len(got) != 0 {
				t.Errorf("%v: events %v", op, got)
			}
			p.close()
		}
	})
}

// A queue pair that fails flushes its work requests. QPFailed follows after that.
func TestFailQP(t *testing.T) {
	flavors(t, func(t *testing.T, flavor states.Flavor) {
		p := connected(t, flavor)
		defer p.close()
		flushed := -1
		p.a.onEvent = func(e delivered) {
			if _, ok := e.ev.(*cmid.QPFailed); ok {
				flushed = len(statuses(p.activeQ.wc, true))
			}
		}
		p.f.FailQP(p.active.Handle())
		synctest.Wait()
		if flushed != 4 {
			t.Errorf("%d receives were flushed before the event, want 4", flushed)
		}
		var kinds []states.Kind
		for _, e := range p.a.take() {
			kinds = append(kinds, e.ev.Kind())
		}
		want := []states.Kind{states.KindQPFailed}
		if flavor != 0 {
			want = append(want, states.KindDisconnected)
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("events %v, want %v", kinds, want)
		}
		p.f.FailQP(p.active.Handle()) // fails once
		if got := p.a.take(); len(got) != 0 {
			t.Errorf("events %v", got)
		}
	})
}
