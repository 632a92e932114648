package cmidtest

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// A kernel's device goes on without its program. It accepts messages and acknowledges them, and
// answers a disconnect. When the program goes on, it is notified of everything in order.
func TestFrozenProgram(t *testing.T) {
	flavors(t, func(t *testing.T, flavor states.Flavor) {
		p := connected(t, flavor)
		defer p.close()
		p.f.Delay(3 * time.Second)
		p.f.Host("b").Freeze()
		p.f.Host("b").Freeze() // does nothing
		p.a.must(func() error { return errors.Join(p.activeQ.send(1, "one"), p.activeQ.send(2, "two")) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := p.activeQ.wc; len(got) != 2 || got[0].Status != verbs.StatusSuccess || got[1].Status != verbs.StatusSuccess {
			t.Errorf("sends %+v", got)
		}
		p.a.must(p.active.Disconnect)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := p.passiveQ.wc; len(got) != 0 {
			t.Errorf("events of the frozen program: %+v", got)
		}
		p.f.Host("b").Thaw()
		synctest.Wait()
		if got := p.passiveQ.wc; len(got) < 2 || got[0].Status != verbs.StatusSuccess || got[1].Status != verbs.StatusSuccess {
			t.Errorf("receives %+v", got)
		}
		only[*cmid.Disconnected](p.b)
	})
}

// An embedded device is part of its program. While that is frozen, nothing is handled and nothing
// is lost.
func TestFrozenEmbeddedDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFabric(Config{Flavor: states.IWARP, Embedded: true})
		f.Host("a").AddDevice("mem0", addrA)
		f.Host("b").AddDevice("mem1", addrB)
		a, b := newSide(t, f.Host("a").Driver()), newSide(t, f.Host("b").Driver())
		defer b.close()
		defer a.close()
		b.listen(cmid.PortSpaceTCP, "0.0.0.0:7471", 0)
		id := a.resolve(cmid.PortSpaceTCP, dstB)
		a.queues(id, 0)
		f.Host("b").Freeze()
		a.must(func() error { return id.Connect(nil, nil) })
		time.Sleep(5 * time.Second)
		f.Host("b").Thaw()
		only[*cmid.ConnectRequest](b)
	})
}

// The peers of a crashed program get the kernel's messages. When the program's loops go on,
// nothing of it is left.
func TestCrashedProgram(t *testing.T) {
	flavors(t, func(t *testing.T, flavor states.Flavor) {
		p := connected(t, flavor)
		p.f.Host("b").Crash()
		p.f.Host("b").Thaw() // is for the frozen
		synctest.Wait()
		if e, _ := only[*cmid.Disconnected](p.a); e.Err != nil {
			t.Errorf("disconnected because of %v", e.Err)
		}
		if n := len(p.b.events); n != 0 {
			t.Errorf("events of the dead: %v", p.b.events)
		}
		p.f.Host("b").AddDevice("mem1", addrB)
		b := newSide(t, p.f.Host("b").Driver())
		b.listen(cmid.PortSpaceTCP, "0.0.0.0:7471", 0)
		id := p.a.resolve(cmid.PortSpaceTCP, dstB)
		p.a.queues(id, 0)
		p.a.must(func() error { return id.Connect(nil, nil) })
		only[*cmid.ConnectRequest](b)
		p.f.Host("b").Unwind()
		synctest.Wait()
		for _, e := range p.b.take() {
			if _, ok := e.ev.(*cmid.DeviceRemoval); !ok {
				t.Errorf("an event of the crashed program: %T", e.ev)
			}
		}
		b.close()
		p.close()
	})
}

// Messages that wait for a link are dropped when their queue pair or stream ends. They do not
// arrive afterwards.
func TestCutTooLong(t *testing.T) {
	flavors(t, func(t *testing.T, flavor states.Flavor) {
		p := connected(t, flavor)
		defer p.close()
		a, b := p.f.Host("a"), p.f.Host("b")
		p.f.Cut(a, b)
		p.f.Cut(b, a) // is cut already
		p.a.must(func() error { return p.activeQ.send(1, "lost") })
		begin, limit := time.Now(), retryTimeout
		if flavor != 0 {
			limit = kernelGiveUp
		}
		time.Sleep(limit - time.Second)
		p.a.do(func() {
			if len(p.a.events) != 0 || flavor == 0 && len(p.activeQ.wc) != 0 {
				t.Errorf("events %v and completions %v after %v", p.a.events, p.activeQ.wc, time.Since(begin))
			}
		})
		time.Sleep(time.Second)
		synctest.Wait()
		if flavor != 0 {
			if e, _ := only[*cmid.Disconnected](p.a); !errors.Is(e.Err, unix.ETIMEDOUT) {
				t.Errorf("disconnected because of %v", e.Err)
			}
		} else if got := p.activeQ.wc; len(got) == 0 || got[0].Status != verbs.StatusRetryExc {
			t.Errorf("the send completes with %v", got)
		}
		if !p.f.Heal(b, a) || p.f.Heal(a, b) {
			t.Error("a link was not cut, or healed twice")
		}
		synctest.Wait()
		if n := len(p.passiveQ.wc); n != 0 {
			t.Errorf("%+v came after its sender had given up", p.passiveQ.wc)
		}
	})
}

// A link that is healed in time only costs time.
func TestCutHealedInTime(t *testing.T) {
	flavors(t, func(t *testing.T, flavor states.Flavor) {
		p := connected(t, flavor)
		defer p.close()
		a, b := p.f.Host("a"), p.f.Host("b")
		for range 2 {
			p.f.Cut(a, b)
			p.a.must(func() error { return errors.Join(p.activeQ.send(1, "one"), p.activeQ.send(2, "two")) })
			time.Sleep(16 * time.Second)
			p.f.Heal(a, b)
			synctest.Wait()
		}
		got := slices.Concat(p.activeQ.wc, p.passiveQ.wc)
		if len(got) != 8 {
			t.Errorf("%d completions of 4 messages", len(got))
		}
		for _, wc := range got {
			if wc.Status != verbs.StatusSuccess {
				t.Errorf("%+v", wc)
			}
		}
	})
}
