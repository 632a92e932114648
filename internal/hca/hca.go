// Package hca is the seam between the bookkeeping of a device's queues and their implementation. An
// [Adapter] is an open device (a host channel adapter, in InfiniBand's words): the kernel's
// commands and mapped queues (package verbs/uverbs), or libibverbs (module native). Package
// verbs/uverbs does the bookkeeping for both: outstanding work requests, the order of completions,
// notifications.
//
// # Ownership
//
// An Adapter and its queues belong to the goroutine of the device's loop, except during Aside.
package hca

import (
	"errors"
	"time"

	"github.com/rdmactor/rdmactor/verbs"
)

// ErrRefused is a result of Adapter.Announce.
var ErrRefused = errors.New("the device refuses a send")

// Handle names an object of an adapter: the kernel's number, or the library's address.
type Handle uint64

// Caps has the identity and capabilities of a device.
type Caps struct {
	Attr verbs.DeviceAttr
	GUID uint64 // node GUID in host byte order
	// IWARP: the device is an RNIC. Siw: it is the kernel's soft-iWARP, whose Reads need care.
	IWARP, Siw bool
	MaxCQE     int // entries of a completion queue
	MaxSRQWR   int // receives of a shared receive queue
	MaxCQ      int // completion queues
	MaxMR      int // memory regions
}

// Place is one scatter/gather element, as the device finds it: struct ibv_sge, rxe_sge and siw_sge.
type Place struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// SendQueue is a send queue.
type SendQueue interface {
	// Put takes a work request of total bytes, copying it. reported asks the device to report its
	// success. The device sees it with the next Adapter.Announce at the latest. The result is false
	// if there is no room.
	Put(cookie uint64, wr *verbs.SendWR, list []Place, total uint32, reported bool) bool
	// Taken reports whether the device is known to have taken the n'th work request that was put.
	// It may be asked only of work requests that are not known to be done.
	Taken(n uint64) bool
	// Drop discards sends that were put and not announced. Nothing is put or announced afterwards:
	// the queue pair will be destroyed off the loop.
	Drop()
	Close() error
}

// RecvQueue is a receive queue, shared or a queue pair's own.
type RecvQueue interface {
	// Put posts a receive. The result is false if there is no room.
	Put(cookie uint64, p Place) bool
	// Left returns how many receives the device has not taken yet. 0 may mean that this is not
	// known.
	Left() int
	Close() error
}

// Completions is a completion queue.
type Completions interface {
	// Take removes the oldest completion. The result is false if there is none.
	Take(c *CQE) bool
	Empty() bool
	Close() error
}

// CQE is a completion as the device reports it. The fields after Status are valid only with
// StatusSuccess.
type CQE struct {
	Cookie uint64
	QPN    uint32
	Status verbs.Status
	Bytes  uint32
	Imm    uint32
	SrcQPN uint32
	HasImm bool
	Write  bool // the receive was used up by a Write with immediate data
	GRH    bool
	// Last: no completion followed it when the adapter last polled.
	Last bool
	// InvalidatedRKey is the key that the peer's message invalidated, or 0.
	InvalidatedRKey uint32
}

// MR is a registered memory region.
type MR struct {
	Handle     Handle
	LKey, RKey uint32
}

// CQ is a new completion queue.
type CQ struct {
	Handle  Handle
	Entries int // at least the requested number
	Queue   Completions
}

// SRQ is a new shared receive queue.
type SRQ struct {
	Handle Handle
	Queue  RecvQueue
}

// QPInit describes a queue pair to make.
type QPInit struct {
	Event          uint64 // identifies the queue in events
	Type           verbs.QPType
	PD             Handle
	SendCQ, RecvCQ Handle
	HasSRQ         bool
	SRQ            Handle
	MaxSendWR      int
	MaxRecvWR      int // without SRQ
	MaxSGE         int
	MaxInline      int
}

// QP is a new queue pair.
type QP struct {
	Handle Handle
	Num    uint32
	Sends  SendQueue
	Recvs  RecvQueue // nil with a shared one
}

// AH is a new address handle.
type AH struct {
	Handle Handle
	Num    uint32 // number in work requests, if the device has such numbers
}

// Addressed is a verbs.AH that was made of an AH.
type Addressed interface {
	verbs.AH
	Made() AH
}

// Channels are the descriptors that are readable when there are events.
type Channels struct {
	Completions, Async int
}

// Event is an asynchronous event.
type Event struct {
	Type uint32 // enum ibv_event_type
	// Object identifies a queue, as given at its creation. For a port's event it is the port's
	// number. For other events it has no meaning.
	Object uint64
}

// Adapter is an open device.
type Adapter interface {
	// Query gives the device's limits.
	Query() (Caps, error)
	// Channels gives the descriptors of events, which do not block and belong to the adapter.
	Channels() (Channels, error)
	// NextCompletion reads an event of the completion channel and returns the identification of its
	// queue. EAGAIN means that there is none, EIO that the device is gone.
	NextCompletion() (event uint64, err error)
	// NextEvent reads an asynchronous event. Errors as for NextCompletion.
	NextEvent() (Event, error)

	AllocPD() (Handle, error)
	DeallocPD(pd Handle) error
	// RegMR registers mapped memory.
	RegMR(pd Handle, mem []byte, access verbs.Access) (MR, error)
	DeregMR(mr Handle) error

	CreateCQ(entries int, event uint64) (CQ, error)
	// Foresee announces that ReqNotify will be called at the end of this turn unless there is a
	// completion. It is called before the announcement of sends, so that the adapter may request
	// the event together with it.
	Foresee(cq Handle, queue Completions, solicitedOnly bool)
	// ReqNotify asks for an event with the next completion.
	ReqNotify(cq Handle, queue Completions, solicitedOnly bool) error
	DestroyCQ(cq Handle) error

	CreateSRQ(pd Handle, maxWR int, event uint64) (SRQ, error)
	// ArmSRQ asks for an event when fewer than limit receives are left.
	ArmSRQ(srq Handle, limit int) error
	DestroySRQ(srq Handle) error

	CreateQP(init *QPInit) (QP, error)
	ModifyQP(qp Handle, attr *verbs.QPAttr, mask verbs.QPAttrMask) error
	DestroyQP(qp Handle) error
	Attach(qp Handle, gid [16]byte, lid uint16) error
	Detach(qp Handle, gid [16]byte, lid uint16) error
	// Announce makes the device process the sends that were put into a send queue. ErrRefused means
	// that it refused some of them, which is reported in their completions.
	Announce(qp Handle, queue SendQueue) error
	// Connected reports whether the driver of an RNIC has brought a queue pair to RTS.
	Connected(qp Handle) bool

	CreateAH(pd Handle, attr *verbs.AHAttr) (AH, error)
	DestroyAH(ah Handle) error

	// Aside calls use off the loop, where calls may wait. Any goroutine may call it. use may call
	// ModifyQP, DestroyQP and CreateAH of the adapter that it gets. The error is ENODEV when the
	// adapter was closed.
	Aside(use func(Adapter) error) error
	// Close releases the device and its objects, memory included. It waits no longer than wait: the
	// rest happens when the kernel is done.
	Close(wait time.Duration) error
}
