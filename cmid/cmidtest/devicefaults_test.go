package cmidtest

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

func TestRunOut(t *testing.T) {
	both(t, func(w *sides.World, f *Fabric) {
		w.Listener(tcp, sides.Any4(0))
		id := w.Resolved(tcp, w.Target())
		f.RunOut(unix.EMFILE)
		_, err := w.A.Ch.CreateID(tcp)
		w.WantErr("create_id", err, unix.EMFILE)
		dev := id.Device()
		cq, err := dev.CreateCQ(4, nil)
		w.Must(err)
		attr := verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq}
		_, err = id.CreateQP(attr)
		w.WantErr("create_qp", err, unix.EMFILE)
		f.RunOut(0)
		_, err = id.CreateQP(attr)
		w.Must(err)
		w.A.Create(tcp)
	})
}

// TestRunOutOfMemory: without memory nothing can be made on a device. Nothing is left of what
// failed, and what exists still works.
func TestRunOutOfMemory(t *testing.T) {
	both(t, func(w *sides.World, f *Fabric) {
		c := w.Connected(1)
		dev := c.Active.Device()
		id := w.Resolved(tcp, w.Target())
		grh := verbs.AHAttr{Global: true, Port: 1, GRH: verbs.GlobalRoute{DGID: w.Address.As16()}}
		pd, err := dev.AllocPD()
		w.Must(err)
		before := f.Left()
		all := map[string]func() error{
			"create_id":  func() error { return sides.Err(w.A.Ch.CreateID(tcp)) },
			"create_qp":  func() error { return sides.Err(id.CreateQP(verbs.QPInitAttr{SendCQ: c.AQ.CQ, RecvCQ: c.AQ.CQ})) },
			"alloc_pd":   func() error { return sides.Err(dev.AllocPD()) },
			"reg_mr":     func() error { return sides.Err(dev.Alloc(1, 0)) },
			"in a pd":    func() error { return sides.Err(pd.Alloc(1, 0)) },
			"create_cq":  func() error { return sides.Err(dev.CreateCQ(1, nil)) },
			"create_srq": func() error { return sides.Err(dev.CreateSRQ(verbs.SRQInitAttr{PD: pd, MaxWR: 1})) },
		}
		if !w.IWARP {
			all["create_ah"] = func() error { return sides.Err(dev.CreateAH(pd, &grh)) }
		}
		f.RunOut(unix.ENOMEM)
		for what, make := range all {
			w.WantErr(what, make(), unix.ENOMEM)
		}
		if left := f.Left(); !slices.Equal(left, before) {
			t.Errorf("there are %v, want %v", left, before)
		}
		w.Barrier(c.AQ, c.BQ)
		f.RunOut(0)
		for what, make := range all {
			w.WantErr(what, make(), 0)
		}
	})
}

// TestRunShort: now and then something cannot be made, and the rest can.
func TestRunShort(t *testing.T) {
	both(t, func(w *sides.World, f *Fabric) {
		x := f.RunShort(unix.ENOMEM, 0.3)
		dev := w.B.Ch.Devices()[0]
		failed := 0
		for range 100 {
			if _, err := dev.Alloc(1, 0); err != nil {
				w.WantErr("reg_mr", err, unix.ENOMEM)
				failed++
			}
		}
		if failed < 10 || failed > 60 {
			t.Errorf("%d of 100 have failed, want some 30", failed)
		}
		if x.left != 0 {
			t.Error("the fault has not happened")
		}
	})
}

// TestDeviceComesBack: a wildcard listener hears devices that come after it.
func TestDeviceComesBack(t *testing.T) {
	both(t, func(w *sides.World, f *Fabric) {
		l := w.Listener(tcp, sides.Any4(0))
		f.RemoveDevice("mem1")
		id := w.A.Create(tcp)
		w.Must(id.ResolveAddr(cmid.Addr{}, w.Target(), time.Second))
		w.WantErr("while it is gone", sides.Next[*cmid.AddrError](w.A, id), unix.ETIMEDOUT)
		f.Host("b").AddDevice("mem1", w.Address.String())
		w.Reaches(w.Target())
		w.WantState("all the time", l, states.Listening)
	})
}

// TestResolveBehindRemoval: a command may find its device removed before the loop has handled the
// removal. Then DeviceRemoval is its answer, as for any command under way.
func TestResolveBehindRemoval(t *testing.T) {
	both(t, func(w *sides.World, f *Fabric) {
		id := w.A.Bound(tcp, cmid.MustAddr("10.0.0.5:0"))
		f.RemoveDevice("mem0")
		w.Must(id.ResolveAddr(cmid.Addr{}, w.Target(), time.Second))
		sides.Next[*cmid.DeviceRemoval](w.A, id)
		w.WantQuiet("which is all")
	})
}

// TestOverrun: a completion queue that cannot grow and is too short loses completions, and its
// queue pair fails.
func TestOverrun(t *testing.T) {
	for _, flavor := range []states.Flavor{states.IWARP, 0} {
		w, _ := twinWorld(t, Config{Flavor: flavor, Reserved: true})
		c := w.Connected(3)
		dev := c.Active.Device()
		w.Must(c.AQ.QP.Destroy())
		cq, err := dev.CreateCQ(1, nil)
		w.Must(err)
		qp, err := c.Active.CreateQP(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4})
		w.Must(err)
		for range 2 {
			w.Must(qp.PostSend(&verbs.SendWR{Flags: verbs.Signaled, Inline: []byte("x")}))
		}
		w.Settle()
		w.WantErr("after the overrun", qp.PostSend(&verbs.SendWR{}), unix.EINVAL)
	}
}

func TestAddDeviceTwice(t *testing.T) {
	f := NewFabric(Config{})
	f.AddDevice("mem0", "10.0.0.1", "fd00::1/48")
	for why, fn := range map[string]func(){
		"a name that is taken":     func() { f.AddDevice("mem0") },
		"an address that is taken": func() { f.Host("b").AddDevice("mem1", "fd00::1") },
		"not an address":           func() { f.AddDevice("mem2", "here") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", why)
				}
			}()
			fn()
		}()
	}
}
