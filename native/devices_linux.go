//go:build amd64 || arm64

package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// foundDevice is a device in the library's list.
type foundDevice struct {
	lib  *library
	list uintptr
	addr uintptr // ibv_device
}

func (d foundDevice) freeList(p *page) { p.invoke(d.lib.freeDeviceList.addr, d.list) }

// findDevice finds the device in the library's list, which contains the devices that the library
// has a driver for.
func (a *adapter) findDevice() (foundDevice, error) {
	p := a.page
	n, at := scratchVar[int32](p, 0)
	list, err := p.callObject(a.getDeviceList, at)
	if err != nil {
		return foundDevice{}, fmt.Errorf("%w (is the module ib_uverbs loaded?)", err)
	}
	found := foundDevice{lib: a.library, list: list}
	for i := range uintptr(*n) {
		found.addr = peek[uintptr](list, i*8)
		name, _ := p.invoke(a.getDeviceName.addr, found.addr)
		if stringAt(name, deviceNameLen) != a.name {
			continue
		}
		if stringAt(found.addr+deviceName, deviceNameLen) != a.name {
			found.freeList(p)
			return foundDevice{}, a.unknownLayout("ibv_device.name")
		}
		return found, nil
	}
	found.freeList(p)
	return foundDevice{}, a.noDriver(int(*n))
}

// noDriver returns why the library does not list a device.
func (a *adapter) noDriver(others int) error {
	file := deviceFile(a.name)
	if file == "" {
		return fmt.Errorf("%s: there is no device %s: %w", a.file, a.name, unix.ENODEV)
	}
	if err := tryFile(file); errors.Is(err, unix.ENOENT) {
		return err
	}
	return &LibraryError{
		Library: a.file, Err: fmt.Errorf("has no driver for %s, only for %d other devices: %w", a.name, others, unix.ENODEV),
		Remedy: "install the drivers (ibverbs-providers on Debian and Ubuntu, libibverbs or rdma-core elsewhere, or the vendor's), " +
			"with their files in /etc/libibverbs.d",
	}
}

// notOpened returns the error of ibv_open_device. The library reports ENOENT whatever is wrong with
// the device's file, so open(2) is tried.
func (a *adapter) notOpened(err error) error {
	if file := deviceFile(a.name); file != "" {
		if why := tryFile(file); why != nil {
			return fmt.Errorf("%w: %w", err, why)
		}
	}
	return err
}

// deviceFile returns the device's file, or "" if there is no such device.
func deviceFile(name string) string {
	names, _ := filepath.Glob("/sys/class/infiniband_verbs/*/ibdev") // the pattern is right
	for _, n := range names {
		if text, err := os.ReadFile(n); err == nil && strings.TrimSpace(string(text)) == name {
			return "/dev/infiniband/" + filepath.Base(filepath.Dir(n))
		}
	}
	return ""
}

// tryFile returns why a device's file cannot be opened, and a remedy.
func tryFile(file string) error {
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("open %s: %w (read and write permission is needed)", file, err)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("open %s: %w (devices are made by udev, or must be given to a container)", file, err)
	}
	return fmt.Errorf("open %s: %w", file, err)
}
