package cmid

import (
	"fmt"

	"golang.org/x/sys/unix"
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

// Family is an address family in Linux's numbering.
type Family uint16

// The families.
const (
	FamilyAny  Family = 0
	FamilyIPv4 Family = 2
	FamilyIPv6 Family = 10
	FamilyIB   Family = 27
)

// kind gives what an identifier for ai is created with. Neither result is zero.
func (ai *AddrInfo) kind() (PortSpace, QPType, error) {
	ps, t := ai.PortSpace, ai.QPType
	switch t {
	case QPTypeAny, QPTypeRC, QPTypeUD:
	default:
		return 0, 0, fmt.Errorf("queue pairs of type %d, only RC (%d) and UD (%d): %w", t, QPTypeRC, QPTypeUD, unix.EPROTONOSUPPORT)
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
		return 0, 0, fmt.Errorf("port space %v has queue pairs of type %d, not %d: %w", ps, has, t, unix.EINVAL)
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
