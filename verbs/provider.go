package verbs

import (
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/enum"
)

// Provider opens the data path of devices that the kernel's rdma_cm attaches identifiers to.
// Package verbs/uverbs is the provider for soft-RoCE and soft-iWARP. Another provider could use a
// vendor's library.
type Provider interface {
	// Open opens a device and registers its fds with l. It is called on l. If the provider does not
	// support the device, the error wraps ErrNotSupported and states why.
	Open(l *eventloop.Loop, dev DeviceIdent) (ProviderDevice, error)
}

// DeviceIdent identifies a device by the values that rdma_cm and sysfs share.
type DeviceIdent struct {
	Name string // name in /sys/class/infiniband: "rxe0"
	GUID uint64 // node GUID in host byte order
}

// ProviderDevice is a Device with the verbs that librdmacm calls on a queue pair's behalf. Loop
// goroutine only.
type ProviderDevice interface {
	Device
	// IWARP reports whether the device is an RNIC: its driver moves queue pairs to RTS itself.
	IWARP() bool
	// CreateQP is ibv_create_qp(3): the queue pair is in the state RESET.
	CreateQP(t QPType, attr QPInitAttr) (ProviderQP, error)
	// Close closes the device. It removes the device's fds from the loop and destroys every object
	// that was made on the device. Memory that was not freed stays mapped until it is freed.
	Close() error
}

// ProviderQP is a queue pair whose state its owner drives.
type ProviderQP interface {
	QP
	// Modify is ibv_modify_qp(3). A transition to QPError flushes outstanding work requests. A
	// transition to QPRTR may block, and so may [QP.Destroy]. A driver that shares its loop with
	// others uses ModifyLater and DestroyLater.
	Modify(attr *QPAttr, mask QPAttrMask) error
	// ModifyLater is Modify split into parts, and DestroyLater is QP.Destroy split into parts: see
	// Later.
	//
	// Messages received while a change is under way are delivered, in order, by the End of the last
	// change. The reason is that the peer may send as soon as the kernel has brought the queue pair
	// to RTS, before this side knows. An owner that answers such a message immediately needs a
	// queue pair that can send.
	//
	// After DestroyLater nothing can be posted (EINVAL) and no event is delivered. Its End flushes
	// outstanding work requests and releases the domain and the queues. Until then PD.Close,
	// SRQ.Close and CQ.Close fail with EBUSY. Destroy waits for a DestroyLater that is in progress.
	ModifyLater(attr *QPAttr, mask QPAttrMask) Later
	DestroyLater() Later
	// Attach and Detach are ibv_attach_mcast(3) and ibv_detach_mcast(3), for datagram queue pairs.
	Attach(gid [16]byte, lid uint16) error
	Detach(gid [16]byte, lid uint16) error
	// OnEvent makes the device call f, on the loop, for each asynchronous event of the queue pair
	// (ibv_get_async_event(3)). If f is nil, the default, events are not reported.
	OnEvent(f func(QPEvent))
}

// Later is a call that may wait in the kernel, split into parts. The function that returns a Later
// has done the first part on the loop. The caller then calls Wait, or skips it, and then End,
// unless the device was closed.
type Later struct {
	// Wait is the call itself. Any goroutine may call it, because it uses nothing that belongs to
	// the loop. There may be one at a time for each queue pair. In the meantime the completion
	// queue may be polled, receives may be posted, and the queue pair may be modified to QPError.
	// After ProviderDevice.Close it fails, or has no effect.
	Wait func() error
	// End takes the error that Wait returned, or the reason why it was not called, and returns the
	// result of the whole call. It is called on the loop. A queue pair cannot be destroyed before
	// the End of every change (EBUSY).
	End func(error) error
}

// QPEvent is an asynchronous event of a queue pair (enum ibv_event_type).
type QPEvent uint8

// The events.
const (
	// IBV_EVENT_COMM_EST: a message arrived before the state RTS; report it with rdma_notify(3)
	QPCommEst QPEvent = iota
	QPFatal           // IBV_EVENT_QP_FATAL, _REQ_ERR, _ACCESS_ERR: the state is QPError
	// IBV_EVENT_QP_LAST_WQE_REACHED: the queue pair takes no more receives from its shared receive
	// queue
	QPLastWQE
)

var qpEventNames = []string{"communication established", "fatal", "last work request reached"}

// String describes the event in words (ibv_event_type_str(3)).
func (e QPEvent) String() string { return enum.At(qpEventNames, e, "QPEvent(%d)") }

// MarshalText returns String's text.
func (e QPEvent) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// QPType is a queue pair's transport service (enum ibv_qp_type). The numbers are the uABI's.
type QPType uint8

// The types that rdmactor knows.
const (
	RC QPType = 2 // IBV_QPT_RC: reliable, connected
	UD QPType = 4 // IBV_QPT_UD: datagrams
)

var qpTypeNames = map[QPType]string{RC: "RC", UD: "UD"}

// String returns the name of the C constant without its prefix IBV_QPT_.
func (t QPType) String() string { return enum.Name(qpTypeNames, t, "QPType(%d)") }

// MarshalText returns String's text.
func (t QPType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// QPState is a queue pair's state (enum ibv_qp_state). The numbers are the uABI's.
type QPState uint32

// The states.
const (
	QPReset QPState = iota // IBV_QPS_RESET
	QPInit                 // IBV_QPS_INIT: receives may be posted
	QPRTR                  // IBV_QPS_RTR: ready to receive
	QPRTS                  // IBV_QPS_RTS: ready to send
	QPSQD                  // IBV_QPS_SQD: the send queue drains
	QPSQE                  // IBV_QPS_SQE: the send queue has failed
	QPError                // IBV_QPS_ERR: everything is flushed
)

var qpStateNames = []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// String returns the name of the C constant without its prefix IBV_QPS_.
func (s QPState) String() string { return enum.At(qpStateNames, s, "QPState(%d)") }

// MarshalText returns String's text.
func (s QPState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// QPAttrMask selects fields of a QPAttr (enum ibv_qp_attr_mask). The numbers are the uABI's.
type QPAttrMask uint32

// The bits.
const (
	QPAttrState           QPAttrMask = 1 << 0  // IBV_QP_STATE
	QPAttrCurState        QPAttrMask = 1 << 1  // IBV_QP_CUR_STATE
	QPAttrAccessFlags     QPAttrMask = 1 << 3  // IBV_QP_ACCESS_FLAGS
	QPAttrPKeyIndex       QPAttrMask = 1 << 4  // IBV_QP_PKEY_INDEX
	QPAttrPort            QPAttrMask = 1 << 5  // IBV_QP_PORT
	QPAttrQKey            QPAttrMask = 1 << 6  // IBV_QP_QKEY
	QPAttrAV              QPAttrMask = 1 << 7  // IBV_QP_AV
	QPAttrPathMTU         QPAttrMask = 1 << 8  // IBV_QP_PATH_MTU
	QPAttrTimeout         QPAttrMask = 1 << 9  // IBV_QP_TIMEOUT
	QPAttrRetryCount      QPAttrMask = 1 << 10 // IBV_QP_RETRY_CNT
	QPAttrRNRRetry        QPAttrMask = 1 << 11 // IBV_QP_RNR_RETRY
	QPAttrRQPSN           QPAttrMask = 1 << 12 // IBV_QP_RQ_PSN
	QPAttrMaxRDAtomic     QPAttrMask = 1 << 13 // IBV_QP_MAX_QP_RD_ATOMIC
	QPAttrMinRNRTimer     QPAttrMask = 1 << 15 // IBV_QP_MIN_RNR_TIMER
	QPAttrSQPSN           QPAttrMask = 1 << 16 // IBV_QP_SQ_PSN
	QPAttrMaxDestRDAtomic QPAttrMask = 1 << 17 // IBV_QP_MAX_DEST_RD_ATOMIC
	QPAttrDestQPN         QPAttrMask = 1 << 20 // IBV_QP_DEST_QPN
)

// QPAttr holds the attributes of a queue pair (struct ibv_qp_attr) that rdma_init_qp_attr(3) fills
// in.
type QPAttr struct {
	State           QPState
	CurState        QPState
	PathMTU         uint32 // enum ibv_mtu: 1 is 256 bytes, 5 is 4096
	QKey            uint32
	RQPSN           uint32
	SQPSN           uint32
	DestQPN         uint32
	AccessFlags     uint32 // enum ibv_access_flags
	AH              AHAttr
	PKeyIndex       uint16
	MaxRDAtomic     uint8 // outstanding Reads as requester
	MaxDestRDAtomic uint8 // outstanding Reads as responder
	MinRNRTimer     uint8
	Port            uint8
	Timeout         uint8
	RetryCount      uint8
	RNRRetry        uint8
}

// AHMaker is a Device whose CreateAH may block while the kernel looks up the destination's link
// address. Without an answer, that takes a second. The sender of a datagram can forge its source
// address, so anyone can cause such delays. A program that answers unknown senders on a loop with
// other connections should use CreateAHLater.
type AHMaker interface {
	Device
	// CreateAHLater is CreateAH split into parts, as in Later. Do not close the domain before End.
	CreateAHLater(pd PD, attr *AHAttr) LaterAH
}

// LaterAH is a Later that makes an address handle.
type LaterAH struct {
	Wait func() error            // may be called on any goroutine
	End  func(error) (AH, error) // is called on the loop
}
