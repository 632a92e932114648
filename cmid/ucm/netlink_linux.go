package ucm

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/ucm/uabi"
)

// Of the kernel's <rdma/rdma_netlink.h>.
const (
	nlRDMA           = 20            // NETLINK_RDMA
	nldevGet         = 5<<10 | 1     // RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET
	nldevGetChardev  = 5<<10 | 15    // RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV
	attrDevIndex     = 1             // RDMA_NLDEV_ATTR_DEV_INDEX
	attrDevName      = 2             // RDMA_NLDEV_ATTR_DEV_NAME
	attrChardevType  = 69            // RDMA_NLDEV_ATTR_CHARDEV_TYPE
	attrChardevName  = 70            // RDMA_NLDEV_ATTR_CHARDEV_NAME
	attrChardevABI   = 71            // RDMA_NLDEV_ATTR_CHARDEV_ABI
	nlHeader, nlAttr = 16, 4         // struct nlmsghdr, struct nlattr
	nlWait           = 2             // s: loading the module takes its time
	clientName       = "rdma_cm\x00" // what is asked for
	nlAligned        = 4             //
	nlTypeMask       = 1<<14 - 1     // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	nlMessageRoom    = 1 << 15       // as much as a dump's part may have
)

// chardev is a device file as the kernel knows it.
type chardev struct {
	name string // in /dev/infiniband
	abi  uint32
}

// askChardev asks the kernel for rdma_cm's device file, which loads the module if there is one.
func askChardev() (c chardev, err error) {
	attr := make([]byte, nlAttr, nlAttr+len(clientName))
	binary.NativeEndian.PutUint16(attr, uint16(nlAttr+len(clientName)))
	binary.NativeEndian.PutUint16(attr[2:], attrChardevType)
	err = ask(nldevGetChardev, 0, append(attr, clientName...), func(reply []byte) (more bool, err error) {
		c, err = parseChardev(reply)
		return false, err
	})
	return c, err
}

// askIndices asks the kernel for its devices' names and indices. An index is one device's, and no
// later one's.
func askIndices() (map[string]uint32, error) {
	all := make(map[string]uint32)
	err := ask(nldevGet, unix.NLM_F_DUMP, nil, func(reply []byte) (more bool, err error) { return parseIndices(reply, all) })
	return all, err
}

// ask sends a request and has take read what comes, until it says that there is no more.
func ask(command, flags uint16, attrs []byte, take func(reply []byte) (more bool, err error)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, nlRDMA)
	if err != nil {
		return fmt.Errorf("netlink socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: nlWait}); err != nil {
		return err
	}
	request := make([]byte, nlHeader, nlHeader+len(attrs))
	request = append(request, attrs...)
	e := binary.NativeEndian
	e.PutUint32(request, uint32(len(request)))
	e.PutUint16(request[4:], command)
	e.PutUint16(request[6:], unix.NLM_F_REQUEST|flags)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("netlink send: %w", err)
	}
	reply := make([]byte, nlMessageRoom)
	for more := true; more; {
		n, _, err := unix.Recvfrom(fd, reply, 0)
		if err != nil {
			return fmt.Errorf("netlink receive: %w", err)
		}
		if more, err = take(reply[:n]); err != nil {
			return err
		}
	}
	return nil
}

// parseChardev reads the answer. Its errno is the kernel's; EPROTO for what cannot be read.
func parseChardev(b []byte) (c chardev, err error) {
	e := binary.NativeEndian
	if len(b) < nlHeader {
		return c, fmt.Errorf("netlink: %d bytes: %w", len(b), unix.EPROTO)
	}
	if e.Uint16(b[4:]) == unix.NLMSG_ERROR && len(b) >= nlHeader+4 {
		return c, fmt.Errorf("netlink: %w", unix.Errno(-int32(e.Uint32(b[nlHeader:]))))
	}
	err = eachAttr(b[nlHeader:], func(kind uint16, value []byte) {
		switch {
		case kind == attrChardevName:
			c.name = cString(value)
		case kind == attrChardevABI && len(value) >= 8:
			c.abi = uint32(e.Uint64(value))
		}
	})
	if err != nil {
		return chardev{}, err
	}
	if c.name == "" {
		return c, fmt.Errorf("netlink: no name in the answer: %w", unix.EPROTO)
	}
	return c, nil
}

// parseIndices reads a part of the devices' dump, which has a message for each device, and one at
// its end.
func parseIndices(b []byte, all map[string]uint32) (more bool, err error) {
	e := binary.NativeEndian
	for len(b) >= nlHeader {
		n, kind := int(e.Uint32(b)), e.Uint16(b[4:])
		switch {
		case n < nlHeader || n > len(b):
			return false, fmt.Errorf("netlink: a message of %d bytes in %d: %w", n, len(b), unix.EPROTO)
		case kind == unix.NLMSG_DONE:
			return false, nil
		case kind == unix.NLMSG_ERROR && n >= nlHeader+4:
			return false, fmt.Errorf("netlink: %w", unix.Errno(-int32(e.Uint32(b[nlHeader:]))))
		}
		name, index := "", noIndex
		err := eachAttr(b[nlHeader:n], func(kind uint16, value []byte) {
			switch {
			case kind == attrDevName:
				name = cString(value)
			case kind == attrDevIndex && len(value) >= 4:
				index = e.Uint32(value)
			}
		})
		if err != nil {
			return false, err
		}
		if name != "" {
			all[name] = index
		}
		b = b[min((n+nlAligned-1)&^(nlAligned-1), len(b)):]
	}
	return true, nil
}

// eachAttr calls f with each attribute's number and value.
func eachAttr(b []byte, f func(kind uint16, value []byte)) error {
	e := binary.NativeEndian
	for len(b) >= nlAttr {
		n := int(e.Uint16(b))
		if n < nlAttr || n > len(b) {
			return fmt.Errorf("netlink: an attribute of %d bytes in %d: %w", n, len(b), unix.EPROTO)
		}
		f(e.Uint16(b[2:])&nlTypeMask, b[nlAttr:n])
		b = b[min((n+nlAligned-1)&^(nlAligned-1), len(b)):]
	}
	return nil
}

func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

const noIndex = uabi.NoDevice
