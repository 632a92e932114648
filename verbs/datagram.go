package verbs

// GlobalRoute is the route of a packet with a global routing header (struct ibv_global_route). On
// RoCE every packet has one.
type GlobalRoute struct {
	DGID         [16]byte // the destination, an IPv6 or an IPv4-mapped address on RoCE v2
	FlowLabel    uint32   // 20 bits
	SGIDIndex    uint8    // index of the source address in the port's table of GIDs
	HopLimit     uint8
	TrafficClass uint8
}

// AHAttr is an address vector (struct ibv_ah_attr): the way to a queue pair on another port.
type AHAttr struct {
	Global      bool // GRH is valid
	GRH         GlobalRoute
	DLID        uint16 // InfiniBand only
	SL          uint8
	SrcPathBits uint8
	StaticRate  uint8
	Port        uint8 // the local port, from 1
}

// AH is an address handle (ibv_create_ah(3)): an address vector that is registered with the
// device. Loop goroutine only.
type AH interface {
	// Close destroys the handle (ibv_destroy_ah(3)). No outstanding work request may refer to it.
	Close() error
}

// GRHLen is the number of bytes in front of a datagram's payload in its receive buffer. They hold
// the global routing header if WC.GRH is true. They are reserved even if it is false, and WC.Bytes
// counts them.
const GRHLen = 40
