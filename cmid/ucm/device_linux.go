package ucm

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// findOrOpen finds a device, and opens it when it is met for the first time. A device that has a
// data path but could not be opened is not remembered: the next identifier tries again. A device
// without a GUID must be found by its index, because another one may have no GUID either.
func (in *instance) findOrOpen(ident deviceIdent) (*device, error) {
	if d := in.knownDevice(ident); d != nil {
		return d, nil
	}
	s, ok := in.sys.deviceOf(ident)
	switch {
	case ok:
		return in.openSysDevice(s), nil
	case ident.guid == 0:
		return nil, &NodeGUIDError{Err: unix.ENODEV}
	}
	return in.openAndKeep(&device{name: fmt.Sprintf("%016x", ident.guid), ident: ident, partitions: true}), nil
}

// knownDevice returns the device that is meant if it was met before, or nil.
func (in *instance) knownDevice(ident deviceIdent) *device {
	for _, d := range in.devices {
		if d.ident.isSame(ident) {
			return d
		}
	}
	return nil
}

// openSysDevice opens a device of sysfs.
func (in *instance) openSysDevice(s sysDevice) *device {
	return in.openAndKeep(&device{
		name: s.name, ident: s.ident, iwarp: s.iwarp, partitions: in.sys.readAttr(s.name, "ports/1/link_layer") != "Ethernet",
	})
}

// openAndKeep opens d and remembers it.
func (in *instance) openAndKeep(d *device) *device {
	if in.openDataPath(d) {
		in.devices = append(in.devices, d)
	}
	return d
}

// openDataPath opens d's data path, if there is one, and reports whether that is settled.
func (in *instance) openDataPath(d *device) (settled bool) {
	if in.drv.provider == nil {
		d.verbs = bare{d.name, fmt.Errorf("%s: the program has given the driver no data path: %w", d.name, verbs.ErrNotSupported)}
		return true
	}
	in.watchRemovals() // before: it may go while it is opened
	d.file = in.sys.findDataFile(d.name)
	data, err := in.drv.provider.Open(in.loop, verbs.DeviceIdent{Name: d.name, GUID: d.ident.guid})
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

// noDataPath reports why a device that has a data path cannot be used. errors.Is finds the cause
// and verbs.ErrNotSupported.
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

// Devices opens and lists the kernel's devices. One that no identifier could be matched with is
// listed without a data path.
func (in *instance) Devices() []verbs.Device {
	var list []verbs.Device
	for _, s := range in.sys.listDevices() {
		d := in.knownDevice(s.ident)
		switch {
		case d != nil:
		case s.ident == deviceIdent{0, noIndex}:
			list = append(list, bare{s.name, &noDataPath{s.name, &NodeGUIDError{Err: unix.ENODEV}}})
			continue
		default:
			d = in.openSysDevice(s)
		}
		list = append(list, d.verbs)
	}
	return list
}

// bare is a device without a data path: identifiers connect, and their owners supply queue pairs.
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
