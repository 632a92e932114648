package uverbs

// siwVendor is the vendor ID in siw's answer to query_device: "bmt".
const siwVendor = 0x626d74

// siwMaxSGE is the number of scatter/gather elements that a work request has room for. siwMaxInline
// is the number of inline bytes that fit behind the first element.
const (
	siwMaxSGE    = 6
	siwMaxInline = (siwMaxSGE - 1) * 16
)

// The structs of rdma/siw-abi.h.

type siwRegMR struct {
	STagKey  uint8
	Reserved [3]uint8
	Pad      uint32
}

type siwCreateCQResp struct {
	CQID   uint32
	NumCQE uint32
	CQKey  uint64
}

type siwCreateQPResp struct {
	QPID   uint32
	NumSQE uint32
	NumRQE uint32
	Pad    uint32
	SQKey  uint64
	RQKey  uint64
}

type siwCreateSRQResp struct {
	NumRQE uint32
	Pad    uint32
	SRQKey uint64
}

// siwHead is the word that hands a work request over to the device. It is written last, in one
// atomic store.
type siwHead struct {
	Flags  uint16
	NumSGE uint8
	Opcode uint8
}

type siwSQE struct {
	ID    uint64
	Head  siwHead
	RKey  uint32
	RAddr uint64
	SGE   [siwMaxSGE]place // inline data begins at the second element
}

type siwRQE struct {
	ID     uint64
	Head   siwHead
	Unused uint32
	SGE    [siwMaxSGE]place
}

// siwCQEHead is the word that marks a completion as present.
type siwCQEHead struct {
	Flags  uint8
	Opcode uint8
	Status uint16
}

type siwCQE struct {
	ID    uint64
	Head  siwCQEHead
	Bytes uint32
	Imm   uint64
	QPID  uint64
}

// siwCQCtrl follows the last completion in memory.
type siwCQCtrl struct {
	Flags uint32
	Pad   uint32
}

// Flags of work requests and completions (enum siw_wqe_flags), opcodes (enum siw_opcode), and
// arming flags of a queue (enum siw_notify_flags).
const (
	siwValid     = 1 << 0
	siwInline    = 1 << 1
	siwSignalled = 1 << 2
	siwSolicited = 1 << 3

	siwOpWrite   = 0
	siwOpRead    = 1
	siwOpSend    = 3
	siwOpReceive = 8

	siwNotifyAll = 7
)
