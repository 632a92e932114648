package ucm

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Of the kernel's <rdma/rdma_netlink.h>.
const (
	nlRDMA           = 20            // NETLINK_RDMA
	nldevGetChardev  = 5<<10 | 15    // RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV
	attrChardevType  = 69            // RDMA_NLDEV_ATTR_CHARDEV_TYPE
	attrChardevName  = 70            // RDMA_NLDEV_ATTR_CHARDEV_NAME
	attrChardevABI   = 71            // RDMA_NLDEV_ATTR_CHARDEV_ABI
	nlHeader, nlAttr = 16, 4         // struct nlmsghdr, struct nlattr
	nlWait           = 2             // s: loading the module takes its time
	clientName       = "rdma_cm\x00" // what is asked for
	nlAligned        = 4             //
	nlTypeMask       = 1<<14 - 1     // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	nlMessageRoom    = 4096          //
)

// chardev is a device file as the kernel knows it.
type chardev struct {
	name string // in /dev/infiniband
	abi  uint32
}

// askChardev asks the kernel for rdma_cm's device file, which loads the module if there is one.
func askChardev() (chardev, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, nlRDMA)
	if err != nil {
		return chardev{}, fmt.Errorf("netlink socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: nlWait}); err != nil {
		return chardev{}, err
	}
	if err := unix.Sendto(fd, chardevRequest(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return chardev{}, fmt.Errorf("netlink send: %w", err)
	}
	reply := make([]byte, nlMessageRoom)
	n, _, err := unix.Recvfrom(fd, reply, 0)
	if err != nil {
		return chardev{}, fmt.Errorf("netlink receive: %w", err)
	}
	return parseChardev(reply[:n])
}

func chardevRequest() []byte {
	e := binary.NativeEndian
	b := make([]byte, nlHeader+nlAttr, nlHeader+nlAttr+len(clientName))
	b = append(b, clientName...)
	e.PutUint32(b, uint32(len(b)))
	e.PutUint16(b[4:], nldevGetChardev)
	e.PutUint16(b[6:], unix.NLM_F_REQUEST)
	e.PutUint16(b[nlHeader:], uint16(nlAttr+len(clientName)))
	e.PutUint16(b[nlHeader+2:], attrChardevType)
	return b
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
	for b = b[nlHeader:]; len(b) >= nlAttr; {
		n, kind := int(e.Uint16(b)), e.Uint16(b[2:])&nlTypeMask
		if n < nlAttr || n > len(b) {
			return c, fmt.Errorf("netlink: an attribute of %d bytes in %d: %w", n, len(b), unix.EPROTO)
		}
		value := b[nlAttr:n]
		switch {
		case kind == attrChardevName:
			c.name = cString(value)
		case kind == attrChardevABI && len(value) >= 8:
			c.abi = uint32(e.Uint64(value))
		}
		b = b[min((n+nlAligned-1)&^(nlAligned-1), len(b)):]
	}
	if c.name == "" {
		return c, fmt.Errorf("netlink: no name in the answer: %w", unix.EPROTO)
	}
	return c, nil
}

func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
