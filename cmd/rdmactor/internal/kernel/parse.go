package kernel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rdmactor/rdmactor/internal/nldev"
)

// From the kernel's <rdma/rdma_netlink.h>, <linux/socket.h> and the address structs.
const (
	resCMID        = nldev.Client | 11 // RDMA_NLDEV_CMD_RES_CM_ID_GET
	attrPortIndex  = 3                 // RDMA_NLDEV_ATTR_PORT_INDEX
	attrLQPN       = 21                // RDMA_NLDEV_ATTR_RES_LQPN
	attrType       = 26                // RDMA_NLDEV_ATTR_RES_TYPE
	attrState      = 27                // RDMA_NLDEV_ATTR_RES_STATE
	attrPID        = 28                // RDMA_NLDEV_ATTR_RES_PID
	attrKernName   = 29                // RDMA_NLDEV_ATTR_RES_KERN_NAME
	attrCMID       = 30                // RDMA_NLDEV_ATTR_RES_CM_ID
	attrCMIDEntry  = 31                // RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY
	attrPS         = 32                // RDMA_NLDEV_ATTR_RES_PS
	attrSrc        = 33                // RDMA_NLDEV_ATTR_RES_SRC_ADDR
	attrDst        = 34                // RDMA_NLDEV_ATTR_RES_DST_ADDR
	attrCMIDN      = 63                // RDMA_NLDEV_ATTR_RES_CM_IDN
	familyInet     = 2                 // AF_INET
	familyInet6    = 10                // AF_INET6
	familyIB       = 27                // AF_IB
	sockaddrInLen  = 8                 // used bytes of struct sockaddr_in
	sockaddrIn6Len = 28                // struct sockaddr_in6
	sockaddrIBLen  = 40                // used bytes of struct sockaddr_ib
	mostIDs        = 1 << 20
)

// errChanged: the table changed while it was read.
var errChanged = errors.New("the kernel's table changes while it is read")

// ID is an identifier in the kernel. Names are those of `rdma --json resource show cm_id`, except
// process, which this package adds.
type ID struct {
	Device string `json:"ifname"`
	Port   uint32 `json:"port,omitempty"` // of the device
	CMIDN  uint32 `json:"cm-idn"`
	LQPN   uint32 `json:"lqpn,omitempty"` // number of the queue pair; 0: none
	Type   string `json:"qp-type,omitempty"`
	State  string `json:"state"`
	PS     string `json:"ps"`
	// of the thread that created it; 0: it belongs to the kernel or another namespace, or the
	// thread has ended
	PID     uint32 `json:"pid,omitempty"`
	Process uint32 `json:"process,omitempty"` // of that thread
	Command string `json:"comm"`
	Local   Addr   `json:"src-addr"`
	Peer    Addr   `json:"dst-addr"`
}

// Addr is an address and a port, or the fields that AF_IB has instead.
type Addr struct {
	netip.AddrPort
	SID uint64 // the service id of an AF_IB address, whose GID is AddrPort's address
	IB  bool
}

// String formats the address as identifiers print it, "" for none.
func (a Addr) String() string {
	switch {
	case a.IB:
		return fmt.Sprintf("[%v]/%#x", a.Addr(), a.SID)
	case !a.IsValid():
		return ""
	}
	return a.AddrPort.String()
}

// MarshalText returns String's text.
func (a Addr) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// names of the numbers, as rdma(8) prints them
var (
	states = []string{
		"IDLE", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED", "CONNECT", "DISCONNECT", "ADDR_BOUND", "LISTEN",
		"DEVICE_REMOVAL", "DESTROYING",
	}
	types  = []string{"SMI", "GSI", "RC", "UC", "UD", "RAW_IPV6", "RAW_ETHERTYPE", "", "RAW_PACKET", "XRC_INI", "XRC_TGT"}
	spaces = map[uint32]string{0x0002: "IPoIB", 0x013F: "IPoIB", 0x0106: "TCP", 0x0111: "UDP"}
)

func nameOf(names []string, n uint8) string {
	if int(n) < len(names) && names[n] != "" {
		return names[n]
	}
	return "UNKNOWN(" + strconv.Itoa(int(n)) + ")"
}

// parseIDs reads a message of RDMA_NLDEV_CMD_RES_CM_ID_GET, and appends its identifiers.
func parseIDs(payload []byte, ids []ID) ([]ID, error) {
	name, first := "", len(ids)
	err := nldev.Each(payload, func(kind uint16, value []byte) error {
		switch kind {
		case nldev.Name:
			name = nldev.Text(value)
		case attrCMID:
			return nldev.Each(value, func(kind uint16, value []byte) error {
				if kind != attrCMIDEntry {
					return nil
				}
				if len(ids) == mostIDs {
					return nldev.Protocol("more than %d identifiers", mostIDs)
				}
				id, err := parseID(value)
				ids = append(ids, id)
				return err
			})
		}
		return nil
	})
	if err != nil {
		return ids[:first], err
	}
	for i := range ids[first:] {
		ids[first+i].Device = name
	}
	return ids, nil
}

// parseID reads one identifier. Like rdma(8) it requires its state and its port space.
func parseID(entry []byte) (id ID, err error) {
	id = ID{State: "", PS: ""}
	err = nldev.Each(entry, func(kind uint16, value []byte) (err error) {
		switch kind {
		case attrSrc:
			id.Local, err = parseAddr(value)
			return err
		case attrDst:
			id.Peer, err = parseAddr(value)
			return err
		case attrKernName:
			id.Command = "[" + nldev.Text(value) + "]"
			return nil
		}
		return id.setNumber(kind, value)
	})
	if err == nil && (id.State == "" || id.PS == "") {
		err = nldev.Protocol("an identifier without a state or a port space")
	}
	return id, err
}

// setNumber sets a numeric field from the message.
func (id *ID) setNumber(kind uint16, value []byte) error {
	size := 4
	switch kind {
	case attrType, attrState:
		size = 1
	case attrPortIndex, attrCMIDN, attrLQPN, attrPID, attrPS:
	default:
		return nil // of a newer kernel
	}
	if len(value) < size {
		return nldev.Protocol("attribute %d has %d bytes", kind, len(value))
	}
	if size == 1 {
		if kind == attrType {
			id.Type = nameOf(types, value[0])
		} else {
			id.State = nameOf(states, value[0])
		}
		return nil
	}
	switch n := binary.NativeEndian.Uint32(value); kind {
	case attrPortIndex:
		id.Port = n
	case attrCMIDN:
		id.CMIDN = n
	case attrLQPN:
		id.LQPN = n
	case attrPID:
		id.PID = n
	case attrPS:
		id.PS = cmp.Or(spaces[n], fmt.Sprintf("UNKNOWN(%#x)", n))
	}
	return nil
}

// parseAddr reads a struct sockaddr_storage. For other families it returns no address.
func parseAddr(b []byte) (a Addr, err error) {
	if len(b) < 2 {
		return a, nldev.Protocol("an address of %d bytes", len(b))
	}
	family := binary.NativeEndian.Uint16(b)
	if least := map[uint16]int{familyInet: sockaddrInLen, familyInet6: sockaddrIn6Len, familyIB: sockaddrIBLen}[family]; len(b) < least {
		return a, nldev.Protocol("an address of family %d has %d bytes", family, len(b))
	}
	e := binary.BigEndian
	switch family {
	case familyInet:
		a.AddrPort = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), e.Uint16(b[2:]))
	case familyInet6:
		ip := netip.AddrFrom16([16]byte(b[8:24]))
		if scope := binary.NativeEndian.Uint32(b[24:]); scope != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
		}
		a.AddrPort = netip.AddrPortFrom(ip, e.Uint16(b[2:]))
	case familyIB:
		a = Addr{netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), 0), e.Uint64(b[24:]), true}
	}
	return a, nil
}

// processOf returns the process in a thread's /proc/PID/status, or 0 if there is none.
func processOf(status []byte) uint32 {
	for l := range strings.Lines(string(status)) {
		if number, ok := strings.CutPrefix(l, "Tgid:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
			if err != nil {
				return 0
			}
			return uint32(n)
		}
	}
	return 0
}
