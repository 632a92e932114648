//go:build amd64 || arm64

package native

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// foundDevice is a device in the library's list.
type foundDevice struct {
	lib  *library
	list uintptr
	addr uintptr // ibv_device
}

func (d foundDevice) free(p *page) { p.invoke(d.lib.freeDeviceList.addr, d.list) }

// findDevice finds the device in the library's list, which has the devices that the library has a
// driver for.
func (a *adapter) findDevice() (foundDevice, error) {
	p := a.page
	n, at := scratch[int32](p, 0)
	list, err := p.object(a.getDeviceList, at)
	if err != nil {
		return foundDevice{}, fmt.Errorf("%w (is the module ib_uverbs loaded?)", err)
	}
	found := foundDevice{lib: a.library, list: list}
	for i := range uintptr(*n) {
		found.addr = peek[uintptr](list, i*8)
		name, _ := p.invoke(a.getDeviceName.addr, found.addr)
		if text(name, deviceNameLen) != a.name {
			continue
		}
		if text(found.addr+deviceName, deviceNameLen) != a.name {
			found.free(p)
			return foundDevice{}, a.unknownLayout("ibv_device.name")
		}
		return found, nil
	}
	found.free(p)
	return foundDevice{}, a.noDriver(int(*n))
}

// noDriver says why the library does not know a device.
func (a *adapter) noDriver(others int) error {
	if _, err := os.Stat("/sys/class/infiniband/" + a.name); err != nil {
		return fmt.Errorf("%s: there is no device %s: %w", a.file, a.name, unix.ENODEV)
	}
	return &LibraryError{
		Library: a.file, Err: fmt.Errorf("has no driver for %s, only for %d other devices: %w", a.name, others, unix.ENODEV),
		Remedy: "install the drivers (ibverbs-providers on Debian and Ubuntu, libibverbs or rdma-core elsewhere, or the vendor's), " +
			"with their files in /etc/libibverbs.d",
	}
}
