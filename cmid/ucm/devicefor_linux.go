package ucm

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
)

// DeviceFor names the RDMA device that a local address belongs to, by asking rdma_cm. ok is false
// for every other address: one of an ordinary interface, a wildcard, loopback, one that is not
// this host's. The error is an *OpenError where rdma_cm cannot be asked: no address has a device
// then. It is a *NodeGUIDError if the address belongs to a device that cannot be identified. Any
// goroutine; it takes six system calls.
func DeviceFor(local netip.Addr) (name string, ok bool, err error) {
	f, err := openChannel("")
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }()
	return deviceFor(f, hostSysfs, local)
}

func deviceFor(f *uabi.File, sys *sysfs, local netip.Addr) (name string, ok bool, err error) {
	const uid = 1 // nothing will be reported
	id, err := f.CreateID(uid, uabi.PortSpaceTCP, uabi.QPTypeRC)
	if err != nil {
		return "", false, err
	}
	defer func() { _, _ = f.DestroyID(id) }()
	sa, err := kernelSockaddr(cmid.AddrFrom(local, 0))
	if err != nil {
		return "", false, err
	}
	switch err := f.Bind(id, &sa); {
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.EADDRNOTAVAIL):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	r, err := f.QueryAddr(id)
	if err != nil || !hasDevice(&r) {
		return "", false, err
	}
	ident := identOf(&r)
	s, found := sys.deviceOf(ident)
	if !found && ident.guid == 0 {
		return "", false, &NodeGUIDError{Err: unix.ENODEV}
	}
	return s.name, true, nil
}
