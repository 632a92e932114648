package nldev

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Of the kernel's <rdma/rdma_netlink.h> and <linux/netlink.h>.
const (
	// Client is RDMA_NL_NLDEV, as a command has it.
	Client = 5 << 10
	// Index is RDMA_NLDEV_ATTR_DEV_INDEX, Name RDMA_NLDEV_ATTR_DEV_NAME.
	Index, Name = 1, 2

	get           = Client | 1 // RDMA_NLDEV_CMD_GET
	typeMask      = 1<<14 - 1  // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	nlmsgError    = 2          // NLMSG_ERROR
	nlmsgDone     = 3          // NLMSG_DONE
	flagRequest   = 1          // NLM_F_REQUEST
	flagDump      = 0x300      // NLM_F_DUMP
	flagInterrupt = 0x10       // NLM_F_DUMP_INTR: the table changed during the dump
	headerLen     = 16         // struct nlmsghdr
	attrLen       = 4          // struct nlattr
	aligned       = 4
	mostDevices   = 4096
	mostPorts     = 4096
)

// Device is a device's name, and its index, which no later one gets.
type Device struct {
	Name  string
	Index uint32
}

// Attr appends an attribute.
func Attr(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(attrLen+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&(aligned-1))...)
}

// newRequest returns a message to the kernel.
func newRequest(command uint16, dump bool, attrs []byte) []byte {
	e, flags := binary.NativeEndian, uint16(flagRequest)
	if dump {
		flags |= flagDump
	}
	b := e.AppendUint32(nil, uint32(headerLen+len(attrs)))
	b = e.AppendUint16(b, command)
	b = e.AppendUint16(b, flags)
	return append(append(b, make([]byte, headerLen-len(b))...), attrs...)
}

// answer reads the messages that follow a request.
type answer struct {
	dump    bool
	message func(payload []byte) error
	changed bool
}

// parseReceive parses the bytes of one receive. more is false at the answer's end.
func (a *answer) parseReceive(b []byte) (more bool, err error) {
	e := binary.NativeEndian
	for len(b) >= headerLen {
		n, kind := int(e.Uint32(b)), e.Uint16(b[4:])
		if n < headerLen || n > len(b) {
			return false, Protocol("a message of %d bytes in %d", n, len(b))
		}
		payload, flags := b[headerLen:n], e.Uint16(b[6:])
		b = b[min((n+aligned-1)&^(aligned-1), len(b)):]
		a.changed = a.changed || flags&flagInterrupt != 0
		switch kind {
		case nlmsgDone:
			return false, statusError(payload, true)
		case nlmsgError:
			return false, statusError(payload, false)
		}
		if err := a.message(payload); err != nil || !a.dump {
			return false, err
		}
	}
	if len(b) > 0 {
		return false, Protocol("%d bytes too many", len(b))
	}
	return true, nil
}

// statusError returns the errno of an error, or of a dump's end, which may have none.
func statusError(payload []byte, mayBeEmpty bool) error {
	if len(payload) < 4 {
		if mayBeEmpty {
			return nil
		}
		return Protocol("an error of %d bytes", len(payload))
	}
	switch code := int32(binary.NativeEndian.Uint32(payload)); {
	case code == 0 && mayBeEmpty:
		return nil
	case code < 0 && code > -4096:
		return fmt.Errorf("netlink: %w", unix.Errno(-code))
	default:
		return Protocol("the error %d", code)
	}
}

// Protocol returns the error for a malformed answer.
func Protocol(format string, args ...any) error {
	return fmt.Errorf("netlink: "+format+": %w", append(args, unix.EPROTO)...)
}

// parseDevice reads a message of RDMA_NLDEV_CMD_GET.
func parseDevice(payload []byte) (d Device, err error) {
	has := false
	err = Each(payload, func(kind uint16, value []byte) error {
		switch {
		case kind == Name:
			d.Name = Text(value)
		case kind == Index && len(value) >= 4:
			d.Index, has = binary.NativeEndian.Uint32(value), true
		}
		return nil
	})
	if err == nil && (!has || d.Name == "") {
		err = Protocol("a device without a name or an index")
	}
	return d, err
}

// Each calls f with each attribute's number and value.
func Each(b []byte, f func(kind uint16, value []byte) error) error {
	e := binary.NativeEndian
	for len(b) >= attrLen {
		n := int(e.Uint16(b))
		if n < attrLen || n > len(b) {
			return Protocol("an attribute of %d bytes in %d", n, len(b))
		}
		if err := f(e.Uint16(b[2:])&typeMask, b[attrLen:n]); err != nil {
			return err
		}
		b = b[min((n+aligned-1)&^(aligned-1), len(b)):]
	}
	if len(b) > 0 {
		return Protocol("%d bytes too many", len(b))
	}
	return nil
}

// Text returns a string of the kernel's, without its end.
func Text(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}
