package nldev

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	family = 20      // NETLINK_RDMA
	wait   = 5       // s, for one message: the kernel may load a module meanwhile
	room   = 1 << 16 // more than the kernel fills
)

// Devices are the kernel's devices.
func Devices() (all []Device, err error) {
	_, err = Ask(get, true, nil, func(payload []byte) error {
		d, err := parseDevice(payload)
		if all = append(all, d); len(all) > mostDevices {
			return Protocol("more than %d devices", mostDevices)
		}
		return err
	})
	return all, err
}

// Ask sends a request, and has message read what each message of the answer has in it: those of a
// dump, or else one. changed: what a dump lists has changed meanwhile.
func Ask(command uint16, dump bool, attrs []byte, message func(payload []byte) error) (changed bool, err error) {
	fd, err := open()
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, request(command, dump, attrs), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, fmt.Errorf("netlink send: %w", err)
	}
	a := &answer{dump: dump, message: message}
	b := make([]byte, room)
	for more := true; more; {
		n, from, err := unix.Recvfrom(fd, b, unix.MSG_TRUNC)
		switch at, ok := from.(*unix.SockaddrNetlink); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false, fmt.Errorf("netlink receive: %w", err)
		case !ok || at.Pid != 0:
			continue // not of the kernel
		case n > len(b):
			return false, Protocol("a message of %d bytes", n)
		}
		if more, err = a.take(b[:n]); err != nil {
			return false, err
		}
	}
	return a.changed, nil
}

func open() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return -1, fmt.Errorf("this kernel has no RDMA devices (module ib_core is not loaded): %w", err)
	}
	if err != nil {
		return -1, fmt.Errorf("netlink socket: %w", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: wait}); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
