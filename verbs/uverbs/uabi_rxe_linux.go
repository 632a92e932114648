package uverbs

// rxeVendor is the vendor ID in rxe's answer to query_device.
const rxeVendor = 0xffffff

// The structs of rdma/rdma_user_rxe.h.

type rxeMinfo struct {
	Offset uint64
	Size   uint32
	Pad    uint32
}

type rxeCreateCQResp struct {
	MI rxeMinfo
}

type rxeCreateQPResp struct {
	RQ rxeMinfo
	SQ rxeMinfo
}

type rxeCreateSRQResp struct {
	MI       rxeMinfo
	SRQNum   uint32
	Reserved uint32
}

// rxeQueueBuf begins a mapped queue. Both indices are below the number of elements, index_mask+1.
type rxeQueueBuf struct {
	Log2ElemSize  uint32
	IndexMask     uint32
	Pad1          [30]uint32
	ProducerIndex uint32
	Pad2          [31]uint32
	ConsumerIndex uint32
	Pad3          [31]uint32
}

type rxeDMAInfo struct {
	Length    uint32
	Resid     uint32
	CurSGE    uint32
	NumSGE    uint32
	SGEOffset uint32
	Reserved  uint32
}

// rxeSendWR is a work request. WR is the union wr, of which only the members below are used.
type rxeSendWR struct {
	WRID      uint64
	Reserved  uint32
	Opcode    uint32
	SendFlags uint32
	Ex        [4]byte // immediate data, big endian
	// hca.RDMAWR, hca.AtomicWR or rxeUD, and an address vector that only old programs fill in
	WR [15]uint64
}

type rxeUD struct {
	RemoteQPN  uint32
	RemoteQKey uint32
	PKeyIndex  uint16
	Reserved   uint16
	AHNum      uint32
}

type rxeSendWQE struct {
	WR          rxeSendWR
	Status      uint32
	State       uint32
	IOVA        uint64
	Mask        uint32
	FirstPSN    uint32
	LastPSN     uint32
	AckLength   uint32
	SSN         uint32
	HasRdAtomic uint32
	DMA         rxeDMAInfo
	// the scatter/gather list or inline data follow
}

type rxeRecvWQE struct {
	WRID     uint64
	Reserved uint32
	Padding  uint32
	DMA      rxeDMAInfo
	SGE      place // as many as the queue was made for: one
}
