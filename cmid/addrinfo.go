package cmid

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/enum"
)

// AddrInfo is struct rdma_addrinfo: what GetAddrInfo found, or the hints it is given.
type AddrInfo struct {
	Flags     AddrInfoFlags
	Family    Family
	QPType    QPType
	PortSpace PortSpace
	Src, Dst  Addr
	Route     []byte // ai_route: path records
	Connect   []byte // ai_connect: to be put before the private data
}

// AddrInfoFlags are rdma_getaddrinfo(3)'s ai_flags.
type AddrInfoFlags uint32

// The flags.
const (
	RAIPassive     AddrInfoFlags = 1 << iota // RAI_PASSIVE
	RAINumericHost                           // RAI_NUMERICHOST
	RAINoRoute                               // RAI_NOROUTE
	RAIFamily                                // RAI_FAMILY
	RAISA                                    // RAI_SA
	RAIDNS                                   // RAI_DNS
)

// portSpaceAndQPType returns port space and type of an identifier for ai, which may be nil. Neither
// is zero.
func (ai *AddrInfo) portSpaceAndQPType() (PortSpace, QPType, error) {
	if ai == nil {
		ai = &AddrInfo{}
	}
	ps, t := ai.PortSpace, ai.QPType
	switch t {
	case QPTypeAny, QPTypeRC, QPTypeUD:
	default:
		return 0, 0, fmt.Errorf("no device here has queue pairs of type %v, only RC and UD: %w", t, unix.EPROTONOSUPPORT)
	}
	switch {
	case ps == 0 && t == QPTypeUD:
		ps = PortSpaceUDP
	case ps == 0:
		ps = PortSpaceTCP
	}
	has := QPTypeRC
	if ps.Datagram() || ps == PortSpaceIB && t == QPTypeUD {
		has = QPTypeUD
	}
	if t != QPTypeAny && t != has {
		return 0, 0, fmt.Errorf("port space %v has queue pairs of type %v, not %v: %w", ps, has, t, unix.EINVAL)
	}
	return ps, has, nil
}

// QPType is enum ibv_qp_type.
type QPType uint8

// The queue pair types that rdma_getaddrinfo(3) knows. Identifiers have RC and UD.
const (
	QPTypeAny       QPType = 0
	QPTypeRC        QPType = 2
	QPTypeUC        QPType = 3
	QPTypeUD        QPType = 4
	QPTypeRawPacket QPType = 8
	QPTypeXRCSend   QPType = 9
	QPTypeXRCRecv   QPType = 10
)

var qpTypeNames = map[QPType]string{
	QPTypeAny: "ANY", QPTypeRC: "RC", QPTypeUC: "UC", QPTypeUD: "UD", QPTypeRawPacket: "RAW_PACKET", QPTypeXRCSend: "XRC_SEND",
	QPTypeXRCRecv: "XRC_RECV",
}

// String is the type as ibv_qp_type(3)'s constants end.
func (t QPType) String() string { return enum.Name(qpTypeNames, t, "QPType(%d)") }

// MarshalText is String's text.
func (t QPType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
