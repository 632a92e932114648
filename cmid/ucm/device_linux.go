package ucm

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/ucm/uabi"
	"github.com/rdmactor/rdmactor/verbs"
)

// device is one RDMA device on this loop.
type device struct {
	name  string // as it is called now
	ident deviceIdent
	iwarp bool
	// partitions says that it is an InfiniBand port's pkey table that decides who hears whom, for all that is known.
	partitions bool
	file       dataFile             // of the data path in sysfs
	verbs      verbs.Device         // never nil
	data       verbs.ProviderDevice // nil: no queue pairs
}

// deviceIdent says which device is meant, by what a name's change leaves as it is. Those of one
// network interface have one node GUID. The index is a device's own for the kernel's life.
type deviceIdent struct {
	guid  uint64
	index uint32 // noIndex where the kernel does not tell: before 5.9, or without netlink
}

const noIndex = uabi.NoDevice

func (a deviceIdent) is(b deviceIdent) bool {
	return a.guid == b.guid && (a.index == b.index || a.index == noIndex || b.index == noIndex)
}

// device finds a device, and opens it when it is met for the first time. One that could not be
// opened although it has a data path is good for this once: the next identifier may have better
// luck.
func (in *instance) device(ident deviceIdent) *device {
	for _, d := range in.devices {
		if d.ident.is(ident) {
			return d
		}
	}
	d := &device{name: fmt.Sprintf("%016x", ident.guid), ident: ident, partitions: true}
	if s, ok := sysDeviceOf(ident); ok {
		d.name, d.iwarp, d.partitions = s.name, s.iwarp, sysText(s.name, "ports/1/link_layer") != "Ethernet"
	}
	if in.open(d) {
		in.devices = append(in.devices, d)
	}
	return d
}

// open gives d its data path, if there is one, and reports whether that is settled.
func (in *instance) open(d *device) (settled bool) {
	if in.drv.cfg.provider == nil {
		d.verbs = bare{d.name, fmt.Errorf("%s: the program has given the driver no data path: %w", d.name, verbs.ErrNotSupported)}
		return true
	}
	in.watch() // before: it may go while it is opened
	d.file = findDataFile(d.name)
	data, err := in.drv.cfg.provider.Open(in.loop, verbs.DeviceIdent{Name: d.name, GUID: d.ident.guid})
	if err != nil {
		var e unix.Errno
		settled = errors.Is(err, verbs.ErrNotSupported) && !errors.As(err, &e)
		if !errors.Is(err, verbs.ErrNotSupported) {
			err = &noDataPath{d.name, err}
		}
		d.verbs = bare{d.name, err}
		return settled
	}
	d.data, d.verbs, d.iwarp = data, data, data.IWARP()
	return true
}

// noDataPath says why a device that has a data path cannot be used. errors.Is finds the cause and verbs.ErrNotSupported.
type noDataPath struct {
	device string
	err    error
}

func (e *noDataPath) Error() string {
	return fmt.Sprintf("%s has no data path here: %v", e.device, e.err)
}
func (e *noDataPath) Unwrap() []error { return []error{e.err, verbs.ErrNotSupported} }

func (d *device) createQP(t verbs.QPType, attr verbs.QPInitAttr) (verbs.ProviderQP, error) {
	if d.data == nil {
		return nil, d.verbs.(bare).err
	}
	return d.data.CreateQP(t, attr)
}

func (d *device) close() error {
	if d.data == nil {
		return nil
	}
	return d.data.Close()
}

// drop forgets a device that is being removed, and lets go of what the kernel waits for: another one may come under the same name and
// GUID. Memory of it stays its owners' until Close. Which of rdma_cm and the data path's file the kernel ends first depends on the order
// in which its modules were loaded.
func (in *instance) drop(d *device) {
	i := slices.Index(in.devices, d)
	if i < 0 { // those of d's time: who comes next may have a data path
		in.devices = slices.DeleteFunc(in.devices, func(at *device) bool { return at.ident.is(d.ident) && at.data == nil })
		return
	}
	in.devices = slices.Delete(in.devices, i, i+1)
	in.gone = append(in.gone, d)
	if l, ok := d.data.(leaver); ok {
		l.Removed()
	}
}

// Devices opens and lists the kernel's devices.
func (in *instance) Devices() []verbs.Device {
	var list []verbs.Device
	for _, s := range sysDevices() {
		list = append(list, in.device(s.ident).verbs)
	}
	return list
}

// sysDevice is a device as sysfs shows it.
type sysDevice struct {
	name  string
	ident deviceIdent
	iwarp bool
}

// sysDeviceOf is the device that is meant.
func sysDeviceOf(ident deviceIdent) (s sysDevice, ok bool) {
	list := sysDevices()
	i := slices.IndexFunc(list, func(s sysDevice) bool { return s.ident.is(ident) })
	if i < 0 {
		return sysDevice{}, false
	}
	return list[i], true
}

// sysDevices lists the devices, by name.
func sysDevices() []sysDevice {
	entries, err := os.ReadDir(classDir)
	if err != nil {
		return nil // the directory is there when ib_core is loaded
	}
	indices, _ := askIndices() // without them the node GUIDs must do
	var list []sysDevice
	for _, e := range entries {
		guid, ok := parseGUID(sysText(e.Name(), "node_guid"))
		if !ok {
			continue
		}
		index, known := indices[e.Name()]
		if !known {
			index = noIndex
		}
		const rnic = "4" // RDMA_NODE_RNIC
		list = append(list, sysDevice{e.Name(), deviceIdent{guid, index}, strings.HasPrefix(sysText(e.Name(), "node_type"), rnic)})
	}
	return list
}

// sysText is an attribute of a device, "" when it has gone.
func sysText(device, attr string) string {
	text, err := os.ReadFile(classDir + device + "/" + attr)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// parseGUID reads "0a00:27ff:fe12:3456".
func parseGUID(s string) (uint64, bool) {
	guid, err := strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64)
	return guid, err == nil && guid != 0
}

// bare is a device without a data path: identifiers connect, and their owners bring queue pairs of their own.
type bare struct {
	name string
	err  error // wraps verbs.ErrNotSupported
}

func (b bare) Name() string                                         { return b.name }
func (b bare) Attr() verbs.DeviceAttr                               { return verbs.DeviceAttr{} }
func (b bare) PD() verbs.PD                                         { return barePD{b} }
func (b bare) AllocPD() (verbs.PD, error)                           { return nil, b.err }
func (b bare) Alloc(int, verbs.Access) (*verbs.MR, error)           { return nil, b.err }
func (b bare) Free(*verbs.MR) error                                 { return b.err }
func (b bare) CreateCQ(int, func()) (verbs.CQ, error)               { return nil, b.err }
func (b bare) CreateSRQ(verbs.SRQInitAttr) (verbs.SRQ, error)       { return nil, b.err }
func (b bare) CreateAH(verbs.PD, *verbs.AHAttr) (verbs.AH, error)   { return nil, b.err }
func (b bare) InitAHFromWC(*verbs.WC, []byte) (verbs.AHAttr, error) { return verbs.AHAttr{}, b.err }

// barePD is such a device's protection domain.
type barePD struct{ b bare }

func (p barePD) Alloc(int, verbs.Access) (*verbs.MR, error) { return nil, p.b.err }
func (p barePD) Close() error                               { return unix.EINVAL }
