package uverbs

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestRemovedDevice: received data on a removed device can be read until its owner frees it. After
// that nothing remains mapped, and all objects of the device can be closed in the usual order.
func TestRemovedDevice(t *testing.T) {
	f := newFake(t)
	d := f.d
	loop, err := eventloop.New()
	f.must(err)
	defer func() { f.must(loop.Shutdown(t.Context())) }()
	d.loop = loop
	d.hw, err = openKernel("/dev/null")
	f.must(err)
	d.domains = map[*domain]struct{}{}
	pd := &domain{dev: d, mrs: map[*verbs.MR]region{}}
	mem, err := mapMemory(4096)
	f.must(err)
	mr := &verbs.MR{PD: pd, Bytes: mem[:100:100]}
	pd.mrs[mr] = region{mem: mem}
	srq := &sharedQueue{dev: d, pd: pd}
	srq.event = d.addHandle(srq)
	pd.users = 2
	copy(mr.Bytes, "received")

	d.Removed()
	if string(mr.Bytes[:8]) != "received" {
		t.Errorf("the memory of a removed device has %q", mr.Bytes[:8])
	}
	if wc := f.poll(); len(wc) != 0 {
		t.Errorf("polled %+v, and nothing was outstanding", wc)
	}
	if _, err := pd.Alloc(1, 0); !errors.Is(err, unix.ENODEV) {
		t.Errorf("more memory of it: %v, want ENODEV", err)
	}
	at := &mem[0]
	f.must(d.Free(mr))
	if mr.Bytes != nil || mapped(t, addressOf(mem)) {
		t.Errorf("freed memory at %p is still mapped", at)
	}
	f.must(srq.Close())
	f.must(srq.Close())
	f.must(pd.Close())
	if err := d.Free(mr); !errors.Is(err, unix.EINVAL) {
		t.Errorf("freed twice: %v", err)
	}
	d.Removed() // called twice
	f.must(d.Close())
}

// TestClosedDeviceLeavesMemory: memory that was not freed before the device was closed can be read
// until it is freed.
func TestClosedDeviceLeavesMemory(t *testing.T) {
	f := newFake(t)
	d := f.d
	d.hw = kernelOf(t, os.DevNull)
	d.domains = map[*domain]struct{}{d.pd: {}}
	mr, err := d.Alloc(100, verbs.LocalWrite)
	f.must(err)
	mem := mr.Bytes
	copy(mem, "received")
	f.must(d.Close())
	if !mapped(t, addressOf(mem)) || string(mr.Bytes[:8]) != "received" {
		t.Fatalf("the memory of a closed device has %q", mr.Bytes)
	}
	if _, err := d.Alloc(1, 0); !errors.Is(err, unix.ENODEV) {
		t.Errorf("more memory of it: %v, want ENODEV", err)
	}
	f.must(d.Free(mr))
	if mr.Bytes != nil || mapped(t, addressOf(mem)) {
		t.Errorf("freed memory of a closed device is still mapped")
	}
	if err := d.Free(mr); !errors.Is(err, unix.EINVAL) {
		t.Errorf("freed twice: %v, want EINVAL", err)
	}
}

// mapped reports whether memory of the process is mapped at addr.
func mapped(t *testing.T, addr uint64) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		from, to, _ := strings.Cut(strings.Fields(line)[0], "-")
		if parseHex(t, from) <= addr && addr < parseHex(t, to) {
			return true
		}
	}
	return false
}

func parseHex(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
