//go:build linux && rdma

package native

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/kernelrig"
	"github.com/rdmactor/rdmactor/verbs"
)

// theAdapter opens the machine's device.
func theAdapter(t *testing.T) *adapter {
	t.Helper()
	lib, err := libibverbs()
	if err != nil {
		t.Fatal(err)
	}
	a, err := openAdapter(lib, kernelrig.Env(t, "RDMA_DEVICE"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(0) })
	return a
}

// TestAdapter opens the device, and registers memory on it.
func TestAdapter(t *testing.T) {
	a := theAdapter(t)
	caps, err := a.Query()
	if err != nil {
		t.Fatal(err)
	}
	siw := kernelrig.Env(t, "RDMA_KIND") == "siw"
	t.Logf("%s: %+v", a.file, caps)
	if caps.GUID == 0 || caps.IWARP != siw || caps.Siw != siw || caps.Attr.MaxInline < 32 || caps.Attr.MaxMessage == 0 || caps.MaxCQE == 0 {
		t.Errorf("%+v", caps)
	}
	if d := caps.Attr.MaxDatagram; siw != (d == 0) {
		t.Errorf("datagrams of %d", d)
	}
	pd, err := a.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	mem, err := mapMemory(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	defer unmapOnce(&mem)
	mr, err := a.RegMR(pd, mem, verbs.LocalWrite|verbs.RemoteRead)
	if err != nil || mr.LKey == 0 {
		t.Fatalf("%+v, %v", mr, err)
	}
	if err := a.DeallocPD(pd); err == nil {
		t.Error("a domain with memory was destroyed")
	} else if e := (*CallError)(nil); !errors.As(err, &e) || e.Symbol != "ibv_dealloc_pd" || !errors.Is(err, unix.EBUSY) {
		t.Errorf("a domain with memory: %v", err)
	}
	if err := errors.Join(a.DeregMR(mr.Handle), a.DeallocPD(pd)); err != nil {
		t.Error(err)
	}
}

func TestNoSuchDevice(t *testing.T) {
	lib, err := libibverbs()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openAdapter(lib, "mlx5_7"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("%v", err)
	}
}

// TestManyQueues makes queues of a page each: one at every place that the kernel gives to those of
// twenty connections.
func TestManyQueues(t *testing.T) {
	a := theAdapter(t)
	if _, err := a.Query(); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if _, err := a.CreateCQ(1, 0); err != nil {
			t.Fatalf("completion queue %d: %v", i, err)
		}
	}
}
