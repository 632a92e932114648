//go:build amd64 || arm64

package native

import "github.com/rdmactor/rdmactor/internal/hca"

// The structs of infiniband/verbs.h that are passed between Go and C, with similar names. Addresses
// are uint64. No field has moved since libibverbs 1.1, and new ones were added at the ends: a
// struct of the newest size suits every version.

type deviceAttr struct {
	FWVer                [64]byte
	NodeGUID             uint64 // big endian
	SysImageGUID         uint64
	MaxMRSize            uint64
	PageSizeCap          uint64
	VendorID             uint32
	VendorPartID         uint32
	HWVer                uint32
	MaxQP                int32
	MaxQPWR              int32
	DeviceCapFlags       uint32
	MaxSGE               int32
	MaxSGERd             int32
	MaxCQ                int32
	MaxCQE               int32
	MaxMR                int32
	MaxPD                int32
	MaxQPRdAtom          int32
	MaxEERdAtom          int32
	MaxResRdAtom         int32
	MaxQPInitRdAtom      int32
	MaxEEInitRdAtom      int32
	AtomicCap            int32
	MaxEE                int32
	MaxRDD               int32
	MaxMW                int32
	MaxRawIPv6QP         int32
	MaxRawEthyQP         int32
	MaxMcastGrp          int32
	MaxMcastQPAttach     int32
	MaxTotalMcastQPAttch int32
	MaxAH                int32
	MaxFMR               int32
	MaxMapPerFMR         int32
	MaxSRQ               int32
	MaxSRQWR             int32
	MaxSRQSGE            int32
	MaxPKeys             uint16
	LocalCAAckDelay      uint8
	PhysPortCnt          uint8
	_                    [4]byte
}

type portAttr struct {
	State        uint32
	MaxMTU       uint32
	ActiveMTU    uint32
	GIDTblLen    int32
	PortCapFlags uint32
	MaxMsgSz     uint32
	BadPKeyCntr  uint32
	QKeyViolCntr uint32
	PKeyTblLen   uint16
	LID          uint16
	SMLID        uint16
	LMC          uint8
	MaxVLNum     uint8
	SMSL         uint8
	SubnetTO     uint8
	InitType     uint8
	ActiveWidth  uint8
	ActiveSpeed  uint8
	PhysState    uint8
	LinkLayer    uint8
	Flags        uint8
	_            [16]byte // fields of later versions
}

type sendWR struct {
	WRID      uint64
	Next      uint64
	SGList    uint64
	NumSGE    int32
	Opcode    uint32
	SendFlags uint32
	Imm       [4]byte // big endian
	WR        [32]byte
	_         [56]byte
}

// udWR is a member of sendWR's union, as are hca.RDMAWR and hca.AtomicWR.
type udWR struct {
	AH         uint64
	RemoteQPN  uint32
	RemoteQKey uint32
}

type recvWR struct {
	WRID   uint64
	Next   uint64
	SGList uint64
	NumSGE int32
	_      uint32
}

type qpCap struct {
	MaxSendWR     uint32
	MaxRecvWR     uint32
	MaxSendSGE    uint32
	MaxRecvSGE    uint32
	MaxInlineData uint32
}

type qpInitAttr struct {
	QPContext uint64
	SendCQ    uint64
	RecvCQ    uint64
	SRQ       uint64
	Cap       qpCap
	QPType    uint32
	SQSigAll  int32
	_         uint32
}

type srqAttr struct {
	MaxWR    uint32
	MaxSGE   uint32
	SRQLimit uint32
}

type srqInitAttr struct {
	SRQContext uint64
	Attr       srqAttr
	_          uint32
}

type qpAttr struct {
	QPState         uint32
	CurQPState      uint32
	PathMTU         uint32
	PathMigState    uint32
	QKey            uint32
	RQPSN           uint32
	SQPSN           uint32
	DestQPNum       uint32
	QPAccessFlags   uint32
	Cap             qpCap
	AHAttr          hca.AHAttr
	AltAHAttr       hca.AHAttr
	PKeyIndex       uint16
	AltPKeyIndex    uint16
	EnSQDAsync      uint8
	SQDraining      uint8
	MaxRDAtomic     uint8
	MaxDestRDAtomic uint8
	MinRNRTimer     uint8
	PortNum         uint8
	Timeout         uint8
	RetryCnt        uint8
	RNRRetry        uint8
	AltPortNum      uint8
	AltTimeout      uint8
	_               uint8
	RateLimit       uint32
	_               uint32
}

// Offsets in structs of the library's memory. The fields that are read precede the first mutex,
// whose size depends on the architecture and the C library.
const (
	deviceNodeType   = 16 // ibv_device
	deviceName       = 24
	deviceNameLen    = 64
	contextDevice    = 0 // ibv_context
	contextPollCQ    = 96
	contextReqNotify = 104
	contextPostSRQ   = 168
	contextPostSend  = 208
	contextPostRecv  = 216
	contextCmdFD     = 264
	contextAsyncFD   = 268
	pdContext        = 0 // ibv_pd
	mrAddr           = 16
	mrLength         = 24
	mrLKey           = 36
	mrRKey           = 40
	channelContext   = 0 // ibv_comp_channel
	channelFD        = 8
	cqContext        = 16 // ibv_cq: the event argument of CreateCQ
	cqEntries        = 28
	srqContext       = 8 // ibv_srq
	srqPD            = 16
	qpContext        = 8 // ibv_qp
	qpPD             = 16
	qpHandle         = 48
	qpNum            = 52
)

// Values of enums that package hca does not have.
const (
	nodeRNIC   = 4 // IBV_NODE_RNIC
	qpStateRTS = 3
	srqLimit   = 1 << 1 // IBV_SRQ_LIMIT
)
