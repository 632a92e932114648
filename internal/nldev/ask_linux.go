package nldev

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	family = 20      // NETLINK_RDMA
	wait   = 5       // s, for one message: the kernel may load a module first
	room   = 1 << 16 // more than the kernel fills
)

// Devices returns the kernel's devices.
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

// AskChardev asks for a client's device file ("rdma_cm"), which loads its module if there is one.
func AskChardev(client string) (Chardev, error) {
	return askChardev(Attr(nil, attrChardevType, append([]byte(client), 0)))
}

// DataFile asks for the device file of a device's data path, and for its driver.
func DataFile(index uint32) (Chardev, error) {
	return askChardev(Attr(encodeIndex(index), attrChardevType, []byte("uverbs\x00")))
}

func askChardev(attrs []byte) (c Chardev, err error) {
	_, err = Ask(getChardev, false, attrs, func(payload []byte) (err error) {
		c, err = parseChardev(payload)
		return err
	})
	return c, err
}

// Netdevs returns the network interfaces of a device's ports, by the port's number.
func Netdevs(index uint32) (map[uint32]string, error) {
	ports := make(map[uint32]string)
	_, err := Ask(portGet, true, encodeIndex(index), func(payload []byte) error {
		port, netdev, err := parsePort(payload)
		if ports[port] = netdev; err == nil && len(ports) > mostPorts {
			err = Protocol("more than %d ports", mostPorts)
		}
		return err
	})
	return ports, err
}

// Counts returns the number of a device's objects of each kind, of all processes: "qp", "cm_id" and
// so on.
func Counts(index uint32) (counts map[string]uint64, err error) {
	_, err = Ask(resGet, false, encodeIndex(index), func(payload []byte) (err error) {
		counts, err = parseCounts(payload)
		return err
	})
	return counts, err
}

// Ask sends a request, and calls message with the payload of each message of the answer: several
// for a dump, or else one. changed: the table changed during a dump.
func Ask(command uint16, dump bool, attrs []byte, message func(payload []byte) error) (changed bool, err error) {
	fd, err := openSocket()
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, newRequest(command, dump, attrs), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
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
		if more, err = a.parseReceive(b[:n]); err != nil {
			return false, err
		}
	}
	return a.changed, nil
}

func openSocket() (fd int, err error) {
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
