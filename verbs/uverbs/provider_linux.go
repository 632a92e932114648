package uverbs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/internal/nldev"
	"github.com/rdmactor/rdmactor/verbs"
)

// Provider opens rxe and siw devices. The zero value is ready.
type Provider struct{}

// Open opens the device of that name. An error names the missing part: the device's file (module
// ib_uverbs), or the permission to open it. A device of another driver than rxe and siw is opened
// through libibverbs if the program imports the module native, else the error is an
// *OtherDeviceError.
func (Provider) Open(l *eventloop.Loop, id verbs.DeviceIdent) (verbs.ProviderDevice, error) {
	if library := hca.Preferred(); library != nil {
		return openIn(library, l, id)
	}
	d, err := openKernelDevice(l, id)
	if err != nil {
		return openElsewhere(l, id, err)
	}
	return d, nil
}

// openElsewhere opens a device of another driver through libibverbs. err is why it was not opened
// here.
func openElsewhere(l *eventloop.Loop, id verbs.DeviceIdent, err error) (verbs.ProviderDevice, error) {
	var other *OtherDeviceError
	if library := hca.Library(); library != nil && errors.As(err, &other) {
		return openIn(library, l, id)
	}
	return nil, fmt.Errorf("uverbs: %s: %w", id.Name, err)
}

// openIn opens a device through libibverbs.
func openIn(library verbs.Provider, l *eventloop.Loop, id verbs.DeviceIdent) (verbs.ProviderDevice, error) {
	d, err := library.Open(l, id)
	if err != nil && !errors.As(err, new(*CgroupError)) {
		err = cgroupError(os.DirFS("/"), id.Name, handles, err)
	}
	return d, err
}

const (
	sysClass = "/sys/class/infiniband_verbs"
	devDir   = "/dev/infiniband"
)

// findFile returns the file of the device called name.
func findFile(name string) (string, error) {
	entries, err := os.ReadDir(sysClass)
	if errors.Is(err, unix.ENOENT) {
		return "", fmt.Errorf("no %s: is the module ib_uverbs loaded? %w", sysClass, unix.ENODEV)
	}
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		ibdev, err := os.ReadFile(filepath.Join(sysClass, e.Name(), "ibdev"))
		if err == nil && strings.TrimSpace(string(ibdev)) == name {
			return filepath.Join(devDir, e.Name()), nil
		}
	}
	return "", fmt.Errorf("not among the %d devices of %s: %w", len(entries), sysClass, unix.ENODEV)
}

func openKernelDevice(l *eventloop.Loop, id verbs.DeviceIdent) (*device, error) {
	path, err := findFile(id.Name)
	if err != nil {
		return nil, err
	}
	if driver := driverOf(id.Name); !isDriven(driver) {
		return nil, &OtherDeviceError{Driver: nldev.DriverName(driver)}
	}
	k, err := openKernel(path)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, fmt.Errorf("%w (devices are made by udev, or must be given to a container)", err)
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("%w (read and write permission is needed)", err)
	case err != nil:
		return nil, err
	}
	d, err := openDevice(l, id, k)
	if err != nil {
		return nil, err
	}
	d.file = filepath.Base(path)
	return d, nil
}

// openDevice makes a device of an open adapter, which it closes if that fails.
func openDevice(l *eventloop.Loop, id verbs.DeviceIdent, hw hca.Adapter) (*device, error) {
	d := &device{
		loop: l, name: id.Name, hw: hw,
		handles: make(map[uint64]any), qps: make(map[uint32]*queuePair), domains: make(map[*domain]struct{}),
		cqs: make(map[*completionQueue]struct{}),
	}
	if err := d.initDevice(id.GUID); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// initDevice queries the device and registers its fds with the loop.
func (d *device) initDevice(guid uint64) (err error) {
	if d.channels, err = d.hw.Channels(); err != nil {
		return cgroupError(os.DirFS("/"), d.name, handles, err)
	}
	if err := d.queryDevice(guid); err != nil {
		return err
	}
	if d.pd, err = d.newDomain(); err != nil {
		return err
	}
	if d.asyncReg, err = d.loop.Add(d.channels.Async, eventloop.Readable, asyncEvents{d}); err != nil {
		return err
	}
	d.compReg, err = d.loop.Add(d.channels.Completions, eventloop.Readable, compEvents{d})
	return err
}

// Over makes a device of an adapter, which belongs to the device from then on, also if there is an
// error. It is for this project's own providers.
func Over(l *eventloop.Loop, id verbs.DeviceIdent, hw hca.Adapter) (verbs.ProviderDevice, error) {
	d, err := openDevice(l, id, hw)
	if err != nil {
		return nil, err
	}
	if path, err := findFile(id.Name); err == nil {
		d.file = filepath.Base(path)
	}
	return d, nil
}
