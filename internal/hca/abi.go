package hca

import "github.com/rdmactor/rdmactor/verbs"

// Structs and values that the kernel's commands and libibverbs have in common. The tests of both
// adapters compare them with the C headers.

// GlobalRoute is struct ib_uverbs_global_route and struct ibv_global_route.
type GlobalRoute struct {
	DGID         [16]byte
	FlowLabel    uint32
	SGIDIndex    uint8
	HopLimit     uint8
	TrafficClass uint8
	Reserved     uint8
}

// AHAttr is struct ib_uverbs_ah_attr and struct ibv_ah_attr.
type AHAttr struct {
	GRH         GlobalRoute
	DLID        uint16
	SL          uint8
	SrcPathBits uint8
	StaticRate  uint8
	IsGlobal    uint8
	PortNum     uint8
	Reserved    uint8
}

// AHAttrOf converts an address vector.
func AHAttrOf(a *verbs.AHAttr) AHAttr {
	x := AHAttr{
		GRH: GlobalRoute{
			DGID: a.GRH.DGID, FlowLabel: a.GRH.FlowLabel, SGIDIndex: a.GRH.SGIDIndex, HopLimit: a.GRH.HopLimit,
			TrafficClass: a.GRH.TrafficClass,
		},
		DLID: a.DLID, SL: a.SL, SrcPathBits: a.SrcPathBits, StaticRate: a.StaticRate, PortNum: a.Port,
	}
	if a.Global {
		x.IsGlobal = 1
	}
	return x
}

// RDMAWR and AtomicWR are members of the union in a work request (struct rxe_send_wr, struct
// ibv_send_wr).
type (
	RDMAWR struct {
		RemoteAddr uint64
		RKey       uint32
		Reserved   uint32
	}
	AtomicWR struct {
		RemoteAddr uint64
		CompareAdd uint64
		Swap       uint64
		RKey       uint32
		Reserved   uint32
	}
)

// AsyncEvent is struct ib_uverbs_async_event_desc and struct ibv_async_event.
type AsyncEvent struct {
	Element   uint64
	EventType uint32
	Reserved  uint32
}

// WC is struct ib_uverbs_wc, which is rxe's completion, and struct ibv_wc, which has padding at
// the end.
type WC struct {
	WRID         uint64
	Status       uint32
	Opcode       uint32
	VendorErr    uint32
	ByteLen      uint32
	Ex           [4]byte // immediate data, big endian, or the key that was invalidated
	QPNum        uint32
	SrcQP        uint32
	WCFlags      uint32
	PKeyIndex    uint16
	SLID         uint16
	SL           uint8
	DLIDPathBits uint8
	PortNum      uint8
	Reserved     uint8
}

// Values of WC.Opcode and WC.WCFlags (enum ibv_wc_opcode, enum ibv_wc_flags).
const (
	WCRecvWrite = 1<<7 | 1 // IBV_WC_RECV_RDMA_WITH_IMM
	WCGRH       = 1 << 0
	WCWithImm   = 1 << 1
	WCWithInv   = 1 << 3
)

// StatusOf converts a value of enum ibv_wc_status. Package verbs uses the same numbers.
func StatusOf(s uint32) verbs.Status {
	if s > uint32(verbs.StatusGeneral) {
		return verbs.StatusGeneral
	}
	return verbs.Status(s)
}

// Opcodes of work requests (enum ibv_wr_opcode).
const (
	WRWrite = iota
	WRWriteWithImm
	WRSend
	WRSendWithImm
	WRRead
	WRCmpSwap
	WRFetchAdd
)

var opcodes = [...]uint32{
	verbs.Send: WRSend, verbs.Write: WRWrite, verbs.Read: WRRead, verbs.SendWithImm: WRSendWithImm, verbs.AtomicCmpSwap: WRCmpSwap,
	verbs.AtomicFetchAdd: WRFetchAdd, verbs.WriteWithImm: WRWriteWithImm,
}

// OpcodeOf converts an opcode.
func OpcodeOf(op verbs.Opcode) uint32 { return opcodes[op] }

// Flags of work requests (enum ibv_send_flags).
const (
	SendFence = 1 << iota
	SendSignaled
	SendSolicited
	SendInline
)

// SendFlagsOf returns the flags of a work request. reported asks for a completion of its success.
func SendFlagsOf(wr *verbs.SendWR, reported bool) (f uint32) {
	if reported {
		f |= SendSignaled
	}
	if wr.Flags&verbs.Fence != 0 {
		f |= SendFence
	}
	if wr.Flags&verbs.Solicited != 0 {
		f |= SendSolicited
	}
	if len(wr.Inline) > 0 {
		f |= SendInline
	}
	return f
}

// Types of asynchronous events (enum ibv_event_type).
const (
	EventCQError = iota
	EventQPFatal
	EventQPReqErr
	EventQPAccess
	EventCommEst
	EventSQDrained
	EventPathMigrated
	EventPathMigErr
	EventDeviceFail
	EventPortActive
	EventPortError
	EventLIDChange
	EventPKeyChange
	EventSMChange
	EventSRQError
	EventSRQLimit
	EventLastWQE
	EventReregister
	EventGIDChange
)

// MTU4096 is the largest value of enum ibv_mtu. 1 is 256 bytes.
const MTU4096 = 5
