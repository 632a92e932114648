package uverbs

import "github.com/rdmactor/rdmactor/internal/hca"

// Commands (enum ib_uverbs_write_cmds).
const (
	cmdGetContext        = 0
	cmdQueryDevice       = 1
	cmdQueryPort         = 2
	cmdAllocPD           = 3
	cmdDeallocPD         = 4
	cmdCreateAH          = 5
	cmdDestroyAH         = 8
	cmdRegMR             = 9
	cmdDeregMR           = 13
	cmdCreateCompChannel = 17
	cmdCreateCQ          = 18
	cmdDestroyCQ         = 20
	cmdReqNotifyCQ       = 23
	cmdCreateQP          = 24
	cmdModifyQP          = 26
	cmdDestroyQP         = 27
	cmdPostSend          = 28
	cmdAttachMcast       = 30
	cmdDetachMcast       = 31
	cmdCreateSRQ         = 32
	cmdModifySRQ         = 33
	cmdDestroySRQ        = 35
)

// The structs are those of rdma/ib_user_verbs.h and have similar names. The parts that a driver
// adds are at their ends. Every field has the same offset on every architecture.

type cmdHdr struct {
	Command  uint32
	InWords  uint16
	OutWords uint16
}

// ask is the struct of commands that have only a response: get_context, query_device, alloc_pd,
// create_comp_channel.
type ask struct {
	Response uint64
}

// giveBack is the struct of dealloc_pd, dereg_mr and destroy_ah, whose response is empty.
type giveBack struct {
	Handle uint32
}

// destroy is the struct of destroy_cq, destroy_qp and destroy_srq.
type destroy struct {
	Response uint64
	Handle   uint32
	Reserved uint32
}

// destroyed is the response to destroy_qp and destroy_srq.
type destroyed struct {
	EventsReported uint32
}

type getContextResp struct {
	AsyncFD        uint32
	NumCompVectors uint32
	Driver         [8]byte // siw requires room for its device number
}

type queryDeviceResp struct {
	FwVer                 uint64
	NodeGUID              [8]byte // big endian
	SysImageGUID          [8]byte
	MaxMRSize             uint64
	PageSizeCap           uint64
	VendorID              uint32
	VendorPartID          uint32
	HwVer                 uint32
	MaxQP                 uint32
	MaxQPWR               uint32
	DeviceCapFlags        uint32
	MaxSGE                uint32
	MaxSGERd              uint32
	MaxCQ                 uint32
	MaxCQE                uint32
	MaxMR                 uint32
	MaxPD                 uint32
	MaxQPRdAtom           uint32
	MaxEERdAtom           uint32
	MaxResRdAtom          uint32
	MaxQPInitRdAtom       uint32
	MaxEEInitRdAtom       uint32
	AtomicCap             uint32
	MaxEE                 uint32
	MaxRDD                uint32
	MaxMW                 uint32
	MaxRawIPv6QP          uint32
	MaxRawEthyQP          uint32
	MaxMcastGrp           uint32
	MaxMcastQPAttach      uint32
	MaxTotalMcastQPAttach uint32
	MaxAH                 uint32
	MaxFMR                uint32
	MaxMapPerFMR          uint32
	MaxSRQ                uint32
	MaxSRQWR              uint32
	MaxSRQSGE             uint32
	MaxPKeys              uint16
	LocalCAAckDelay       uint8
	PhysPortCnt           uint8
	Reserved              [4]uint8
}

type queryPort struct {
	Response uint64
	PortNum  uint8
	Reserved [7]uint8
}

type queryPortResp struct {
	PortCapFlags  uint32
	MaxMsgSz      uint32
	BadPKeyCntr   uint32
	QKeyViolCntr  uint32
	GIDTblLen     uint32
	PKeyTblLen    uint16
	LID           uint16
	SMLID         uint16
	State         uint8
	MaxMTU        uint8
	ActiveMTU     uint8
	LMC           uint8
	MaxVLNum      uint8
	SMSL          uint8
	SubnetTimeout uint8
	InitTypeReply uint8
	ActiveWidth   uint8
	ActiveSpeed   uint8
	PhysState     uint8
	LinkLayer     uint8
	Flags         uint8
	Reserved      uint8
}

type allocPDResp struct {
	PDHandle uint32
}

type regMR struct {
	Response    uint64
	Start       uint64
	Length      uint64
	HCAVA       uint64
	PDHandle    uint32
	AccessFlags uint32
	Driver      siwRegMR // rxe ignores it
}

type regMRResp struct {
	MRHandle uint32
	LKey     uint32
	RKey     uint32
	Driver   [8]byte // siw repeats the key
}

type createCompChannelResp struct {
	FD uint32
}

type createCQ struct {
	Response    uint64
	UserHandle  uint64
	CQE         uint32
	CompVector  uint32
	CompChannel int32
	Reserved    uint32
}

type createCQResp struct {
	CQHandle uint32
	CQE      uint32
	Driver   [16]byte // rxeCreateCQResp or siwCreateCQResp
}

type reqNotifyCQ struct {
	CQHandle      uint32
	SolicitedOnly uint32
}

type destroyCQResp struct {
	CompEventsReported  uint32
	AsyncEventsReported uint32
}

type createQP struct {
	Response      uint64
	UserHandle    uint64
	PDHandle      uint32
	SendCQHandle  uint32
	RecvCQHandle  uint32
	SRQHandle     uint32
	MaxSendWR     uint32
	MaxRecvWR     uint32
	MaxSendSGE    uint32
	MaxRecvSGE    uint32
	MaxInlineData uint32
	SQSigAll      uint8
	QPType        uint8
	IsSRQ         uint8
	Reserved      uint8
}

type createQPResp struct {
	QPHandle      uint32
	QPN           uint32
	MaxSendWR     uint32
	MaxRecvWR     uint32
	MaxSendSGE    uint32
	MaxRecvSGE    uint32
	MaxInlineData uint32
	Reserved      uint32
	Driver        [32]byte // rxeCreateQPResp or siwCreateQPResp
}

type qpDest struct {
	DGID         [16]byte
	FlowLabel    uint32
	DLID         uint16
	Reserved     uint16
	SGIDIndex    uint8
	HopLimit     uint8
	TrafficClass uint8
	SL           uint8
	SrcPathBits  uint8
	StaticRate   uint8
	IsGlobal     uint8
	PortNum      uint8
}

type modifyQP struct {
	Dest             qpDest
	AltDest          qpDest
	QPHandle         uint32
	AttrMask         uint32
	QKey             uint32
	RQPSN            uint32
	SQPSN            uint32
	DestQPNum        uint32
	QPAccessFlags    uint32
	PKeyIndex        uint16
	AltPKeyIndex     uint16
	QPState          uint8
	CurQPState       uint8
	PathMTU          uint8
	PathMigState     uint8
	EnSQDAsyncNotify uint8
	MaxRdAtomic      uint8
	MaxDestRdAtomic  uint8
	MinRNRTimer      uint8
	PortNum          uint8
	Timeout          uint8
	RetryCnt         uint8
	RNRRetry         uint8
	AltPortNum       uint8
	AltTimeout       uint8
	Reserved         [2]uint8
}

type postSend struct {
	Response uint64
	QPHandle uint32
	WRCount  uint32
	SGECount uint32
	WQESize  uint32
}

type postSendResp struct {
	BadWR uint32
}

// sendWRSize is sizeof(struct ib_uverbs_send_wr). postSend.WQESize must not be less, even though no
// work request follows.
const sendWRSize = 56

type createAH struct {
	Response   uint64
	UserHandle uint64
	PDHandle   uint32
	Reserved   uint32
	Attr       hca.AHAttr
}

type createAHResp struct {
	AHHandle uint32
	AHNum    uint32 // struct rxe_create_ah_resp
	Reserved uint32
}

// attachMcast is also the struct of detach_mcast.
type attachMcast struct {
	GID      [16]byte
	QPHandle uint32
	MLID     uint16
	Reserved uint16
}

type createSRQ struct {
	Response   uint64
	UserHandle uint64
	PDHandle   uint32
	MaxWR      uint32
	MaxSGE     uint32
	SRQLimit   uint32
}

type createSRQResp struct {
	SRQHandle uint32
	MaxWR     uint32
	MaxSGE    uint32
	SRQN      uint32
	Driver    [24]byte // rxeCreateSRQResp or siwCreateSRQResp
}

// srqAttrLimit is IB_SRQ_LIMIT.
const srqAttrLimit = 2

type modifySRQ struct {
	SRQHandle uint32
	AttrMask  uint32
	MaxWR     uint32
	SRQLimit  uint32
	Driver    uint64 // struct rxe_modify_srq_cmd: used only for a change of size, but required
}

type compEventDesc struct {
	CQHandle uint64
}
