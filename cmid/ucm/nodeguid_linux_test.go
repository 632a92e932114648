package ucm

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// fakeSysfs makes a sysfs of devices, which have these node GUIDs and indices. nil: the kernel does
// not report indices.
func fakeSysfs(t *testing.T, guids map[string]string, indices map[string]uint32) *sysfs {
	t.Helper()
	dir := t.TempDir()
	f := &sysfs{dir + "/infiniband/", dir + "/infiniband_verbs/", func() (map[string]uint32, error) {
		if indices == nil {
			return nil, unix.EPROTONOSUPPORT
		}
		return maps.Clone(indices), nil
	}}
	for name, guid := range guids {
		for attr, text := range map[string]string{"node_guid": guid, "node_type": "1: CA", "ports/1/link_layer": "Ethernet"} {
			file := filepath.Join(f.class, name, attr)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text+"\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

// attached makes the kernel answer that identifiers are at 10.0.0.7 on port 1 of a device.
func (b *bench) attached(guid uint64, index uint32) {
	b.k.answer = func(w wrote, response []byte) error {
		if w.cmd != uabi.CommandQuery {
			return nil
		}
		sa, err := kernelSockaddr(cmid.MustAddr("10.0.0.7:7471"))
		if err != nil {
			return err
		}
		r := (*uabi.QueryAddrResp)(unsafe.Pointer(&response[0]))
		r.NodeGUID, r.PortNum = guid, 1
		r.SrcAddr = sa.Data
		r.SrcSize = 16
		if index != noIndex { // a kernel before 5.9 does not write it
			r.IBDevIndex = index
		}
		return nil
	}
}

const noGUID = "0000:0000:0000:0000"

// TestDeviceWithoutGUID: functions of SR-IOV have the node GUID 0 until it is set. They are
// distinguished by the kernel's index.
func TestDeviceWithoutGUID(t *testing.T) {
	b := newBench(t)
	b.in.sys = fakeSysfs(t, map[string]string{"vf0": noGUID, "vf1": noGUID, "vf2": noGUID}, map[string]uint32{"vf0": 0, "vf1": 5, "vf2": 7})
	for name, index := range map[string]uint32{"vf0": 0, "vf1": 5, "vf2": 7} {
		b.attached(0, index)
		id := b.create()
		if err := id.Do(&cmid.BindAddr{Addr: cmid.MustAddr("10.0.0.7:7471")}); err != nil {
			t.Fatalf("index %d: %v", index, err)
		}
		if got := id.Info().Device; got != name {
			t.Errorf("index %d is %q, want %s", index, got, name)
		}
		if lim := id.Limits(); lim.ConnectData <= 0 {
			t.Errorf("%s: %d bytes of private data", name, lim.ConnectData)
		}
		got, ok, err := deviceFor(b.in.file, b.in.sys, cmid.MustAddr("10.0.0.7:0").Addr())
		if got != name || !ok || err != nil {
			t.Errorf("the device of the address is %q, %v, %v; want %s", got, ok, err, name)
		}
	}
	for range 2 { // each is opened once
		if list := b.in.Devices(); len(list) != 3 || len(b.in.devices) != 3 {
			t.Fatalf("%d devices are listed, %d known", len(list), len(b.in.devices))
		}
	}
}

// TestDeviceThatIsNotFound: a device that has neither GUID nor index is not taken for no device,
// nor for another one. The error names the problem and how to set a GUID.
func TestDeviceThatIsNotFound(t *testing.T) {
	for name, c := range map[string]struct {
		indices map[string]uint32
		index   uint32
	}{
		"a kernel before 5.9": {map[string]uint32{"vf0": 3, "vf1": 4}, noIndex},
		"no netlink":          {nil, 4},
		"it has gone":         {map[string]uint32{"vf0": 3, "vf1": 4}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.in.sys = fakeSysfs(t, map[string]string{"vf0": noGUID, "vf1": noGUID}, c.indices)
			b.attached(0, c.index)
			check := func(doing string, err error) {
				t.Helper()
				if e := (*NodeGUIDError)(nil); !errors.As(err, &e) || !errors.Is(err, unix.ENODEV) {
					t.Errorf("%s: %v, want a NodeGUIDError and ENODEV", doing, err)
				} else if !strings.Contains(err.Error(), noGUID) || !strings.Contains(err.Error(), "ip link set PF vf N node_guid") {
					t.Errorf("%s: %q names no GUID, or nothing that helps", doing, err)
				}
			}
			id := b.create()
			check("bind", id.Do(&cmid.BindAddr{Addr: cmid.MustAddr("10.0.0.7:7471")}))
			_, ok, err := deviceFor(b.in.file, b.in.sys, cmid.MustAddr("10.0.0.7:0").Addr())
			if check("the device of the address", err); ok {
				t.Error("a device was found")
			}
			id = b.create()
			b.happens(id.h, id.kid, uabi.EventAddrResolved)
			if n := len(b.up.events); n != 1 || b.up.events[0].ev.Kind != states.KindAddrError {
				t.Fatalf("reported: %+v", b.up.events)
			}
			check("resolve", b.up.events[0].ev.Err)
			if c.indices != nil {
				return
			}
			for _, d := range b.in.Devices() {
				if _, err := d.AllocPD(); !errors.Is(err, verbs.ErrNotSupported) {
					t.Errorf("%s: %v", d.Name(), err)
				}
				_, err := d.AllocPD()
				check(d.Name(), err)
			}
		})
	}
}
