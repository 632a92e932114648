package verbs

import "github.com/rdmactor/rdmactor/internal/enum"

// Device is one RDMA device as seen by one loop. Its memory, completion queues and shared receive
// queues work only with queue pairs of the same Device. Loop goroutine only.
//
// A Device makes no queue pairs. The driver that owns the identifier makes them
// (rdma_create_qp(3)), because each of our queue pairs belongs to an rdma_cm_id.
type Device interface {
	// Name is the device's name as rdma_get_devices(3) lists it: "iwarp0", "rxe0", "mem0".
	Name() string
	// Attr returns the device's limits.
	Attr() DeviceAttr
	// PD is the protection domain of queue pairs and memory for which none is given.
	PD() PD
	// AllocPD makes another protection domain (ibv_alloc_pd(3)). A peer can reach memory that is
	// registered there only through a queue pair of that domain, even if it knows the key.
	AllocPD() (PD, error)
	// Alloc is PD().Alloc.
	Alloc(n int, access Access) (*MR, error)
	// Free deregisters mr (ibv_dereg_mr(3)) and releases its memory. No outstanding work request
	// may refer to it. Later accesses by a peer are refused. If a peer's Read is being answered,
	// the bytes may still be sent, so do not reuse mr.Bytes.
	Free(mr *MR) error
	// CreateCQ makes a completion queue of at least cqe entries. notify is called on the loop when
	// completions were added to a queue that was empty or has just been polled. Only an owner that
	// polls until Poll returns 0 can rely on another call. notify must not be nil; an owner that
	// polls without notifications passes an empty function. See CQ.ReqNotify.
	CreateCQ(cqe int, notify func()) (CQ, error)
	// CreateSRQ makes a shared receive queue.
	CreateSRQ(attr SRQInitAttr) (SRQ, error)
	// CreateAH makes an address handle for datagrams (ibv_create_ah(3)). A nil pd means Device.PD.
	// The error is ErrNotSupported if the device has no datagrams. CreateAH may block: see AHMaker.
	CreateAH(pd PD, attr *AHAttr) (AH, error)
	// InitAHFromWC returns the address vector of a datagram's sender, taken from the receive's
	// completion and the GRHLen bytes in front of the payload (ibv_init_ah_from_wc(3)). The error
	// is EINVAL if they do not contain it, and ErrNotSupported as for CreateAH.
	InitAHFromWC(wc *WC, grh []byte) (AHAttr, error)
}

// DeviceAttr is a device's limits (ibv_query_device(3)).
type DeviceAttr struct {
	MaxQP      int    // queue pairs
	MaxQPWR    int    // work requests outstanding per queue
	MaxSGE     int    // scatter/gather elements per work request; a Read has one at most
	MaxInline  int    // bytes of inline data
	MaxMessage uint32 // bytes of one message
	MaxRDAtom  int    // reads and atomic operations outstanding per queue pair, each direction
	// entries of a completion queue, which must not overflow; 0: completion queues grow as needed
	MaxCQE int
	// MaxDatagram is the largest length of a datagram's payload in bytes, without GRHLen. 0 means
	// that the device has no datagrams.
	MaxDatagram int
	// Immediate: the device has SendWithImm and WriteWithImm. Invalidates: it has
	// SendWithInvalidate.
	Immediate, Invalidates bool
	// Atomics: the device has AtomicCmpSwap and AtomicFetchAdd (ibv_device_attr.atomic_cap). They
	// are atomic only with respect to other atomic operations on the same device. They are not
	// atomic with respect to Writes or to a processor's accesses.
	Atomics bool
	// AsksForReceives: the device calls SRQInitAttr.OnEmpty when a message finds a shared receive
	// queue empty, and the message waits at its sender if OnEmpty posts nothing. The queue pairs of
	// such a device are Pausers. On other devices enough receives must be posted beforehand: on
	// iWARP a message that finds none ends its connection.
	AsksForReceives bool
	// SharesMemory: queue pairs of every domain may send from memory of Device.PD, receive and read
	// into it, and use shared receive queues of Device.PD. On other devices a queue pair uses only
	// its own domain. On every device, memory that a peer accesses must be in the queue pair's
	// domain.
	SharesMemory bool
	// QPAccess: each queue pair has its own access rights (QP.SetAccess).
	QPAccess bool
	// NotifiesAll: notify is called for every completion, regardless of CQ.ReqNotify.
	NotifiesAll bool
	// OverlooksFirst: the device may overlook a message that arrives while it sets up a connection,
	// until another one arrives. The sender's device completes that message as sent.
	OverlooksFirst bool
}

// Access is a set of access rights to a memory region (ibv_access_flags).
type Access uint8

// Access rights. Local reading is always allowed.
const (
	LocalWrite  Access = 1 << iota // IBV_ACCESS_LOCAL_WRITE
	RemoteWrite                    // IBV_ACCESS_REMOTE_WRITE
	RemoteRead                     // IBV_ACCESS_REMOTE_READ
	// IBV_ACCESS_REMOTE_ATOMIC. ErrNotSupported without DeviceAttr.Atomics
	RemoteAtomic
)

// PD is a protection domain. Loop goroutine only.
type PD interface {
	// Alloc makes a registered memory region of n bytes. The memory belongs to the device and stays
	// valid until Device.Free. As with ibv_reg_mr(3), RemoteWrite or RemoteAtomic without
	// LocalWrite is EINVAL.
	Alloc(n int, access Access) (*MR, error)
	// Close destroys the domain (ibv_dealloc_pd(3)). It fails with EBUSY while a queue pair, a
	// shared receive queue or memory is in it, and with EINVAL for Device.PD.
	Close() error
}

// Registrar is a PD that can register memory of the caller's (ibv_reg_mr(3)). Only a device inside
// the process has one. Other devices register only memory that they allocated themselves, because
// Go's heap cannot be pinned for a kernel.
type Registrar interface {
	PD
	// Register makes a memory region of b, which is not copied. Do not use b for anything else
	// while it is registered. If a peer is reading it, b must stay unchanged even after
	// Device.Free, until a send that was posted after Device.Free has been sent. Errors as for
	// Alloc.
	Register(b []byte, access Access) (*MR, error)
	// Local makes a memory region of b that is only for sending. It has no key, so it costs nothing
	// and must not be freed. b must not change while a send from it is outstanding. b may have any
	// size: an SGE must begin below 4 GiB, but may end above.
	Local(b []byte) MR
}

// MR is a registered memory region.
type MR struct {
	// PD is the domain in which the region is registered; nil once the region is freed.
	PD PD
	// Bytes is the memory. While a receive or a Read into it is outstanding, the device owns it.
	// While a send from it is outstanding, do not change it. If a peer may write to it, see the
	// section Ownership of the package documentation.
	Bytes []byte
	// Addr is the address that a peer uses for the first byte. It is opaque, not a pointer.
	Addr uint64
	// LKey and RKey are the keys. On iWARP both are the STag.
	LKey, RKey uint32
	// Access is the argument of Alloc or Register.
	Access Access
}

// SGE is one scatter/gather element: Length bytes of MR from Offset.
type SGE struct {
	MR             *MR
	Offset, Length uint32
}

// Opcode is the operation of a send work request (ibv_wr_opcode) or of a completion
// (ibv_wc_opcode). The numbers are specific to this package.
type Opcode uint8

// The opcodes. Recv and RecvWrite appear in completions only.
const (
	Send Opcode = iota // IBV_WR_SEND
	// IBV_WR_SEND_WITH_INV: a Send that invalidates the peer's RKey. ErrNotSupported without
	// DeviceAttr.Invalidates
	SendWithInvalidate
	// IBV_WR_RDMA_WRITE: SGL, or Inline, to RemoteAddr. Its completion does not mean that the peer
	// has the data, only that it was handed over
	Write
	// IBV_WR_RDMA_READ: from RemoteAddr to SGL, which is one element with LocalWrite, or none
	Read
	Recv // IBV_WC_RECV: also for failed receives
	// IBV_WR_SEND_WITH_IMM: a Send with SendWR.Imm. ErrNotSupported without DeviceAttr.Immediate
	SendWithImm
	// IBV_WR_ATOMIC_CMP_AND_SWP: Swap replaces the value at RemoteAddr if that equals CompareAdd
	AtomicCmpSwap
	// IBV_WR_ATOMIC_FETCH_AND_ADD: adds CompareAdd to the value at RemoteAddr, modulo 2^64
	AtomicFetchAdd
	// IBV_WR_RDMA_WRITE_WITH_IMM: a Write with SendWR.Imm, which uses up a receive of the peer's
	// and completes it when the bytes are there, but puts nothing into it. Without bytes it is only
	// the immediate data, and needs no key. ErrNotSupported without DeviceAttr.Immediate
	WriteWithImm
	// IBV_WC_RECV_RDMA_WITH_IMM: the receive that the peer's WriteWithImm has used up
	RecvWrite
)

// Atomic is true for AtomicCmpSwap and AtomicFetchAdd. Both change an integer of AtomicLen bytes at
// RemoteAddr, in the target's byte order. RemoteAddr must be a multiple of AtomicLen, else the
// status is StatusRemInvReq. The previous value goes to SGL in host byte order. SGL is one element
// of AtomicLen bytes with LocalWrite. Atomic operations count as Reads, also for Fence and
// DeviceAttr.MaxRDAtom. Without DeviceAttr.Atomics they fail with ErrNotSupported.
func (o Opcode) Atomic() bool { return o == AtomicCmpSwap || o == AtomicFetchAdd }

// Writes is true for Write and WriteWithImm.
func (o Opcode) Writes() bool { return o == Write || o == WriteWithImm }

// AtomicLen is the size of an atomic operation's integer in bytes.
const AtomicLen = 8

var opcodeNames = []string{
	"send", "send with invalidate", "write", "read", "recv", "send with immediate", "compare and swap",
	"fetch and add", "write with immediate", "receive of a write with immediate",
}

// String describes the operation in words.
func (o Opcode) String() string { return enum.At(opcodeNames, o, "unknown opcode %d") }

// MarshalText returns String's text.
func (o Opcode) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// SendFlags modify a send work request (ibv_send_flags).
type SendFlags uint8

// The flags.
const (
	Signaled  SendFlags = 1 << iota // report a completion also on success
	Fence                           // wait for earlier Reads and atomics
	Solicited                       // ask the peer for a solicited event
)

// SendWR is a work request for the send queue (ibv_post_send(3)).
type SendWR struct {
	ID     uint64 // is returned in the WC
	Op     Opcode
	Flags  SendFlags
	Inline []byte // copied by PostSend instead of SGL; at most DeviceAttr.MaxInline bytes
	// PostSend copies the list; the device uses the memory until the completion
	SGL []SGE
	// Writes, Read, atomics: MR.Addr of the peer's region, plus the offset in it. Ignored if the
	// length is 0
	RemoteAddr uint64
	// Writes, Read, atomics: the region's key, ignored if the length is 0; SendWithInvalidate: the
	// key to invalidate
	RKey uint32
	// SendWithImm, WriteWithImm: four bytes for the receive's completion, in host byte order
	Imm        uint32
	CompareAdd uint64 // AtomicCmpSwap: the expected value; AtomicFetchAdd: the summand
	Swap       uint64 // AtomicCmpSwap: the new value

	// Datagram queue pairs only: where the Send goes. Do not close the handle before the
	// completion.
	AH         AH
	RemoteQPN  uint32
	RemoteQKey uint32
}

// RecvWR is a work request for a receive queue (ibv_post_recv(3)).
type RecvWR struct {
	ID  uint64 // is returned in the WC
	SGE SGE
}

// WC is a completion (ibv_poll_cq(3)).
type WC struct {
	ID     uint64 // ID of the work request
	Status Status
	Op     Opcode
	// Bytes is the number of bytes received, sent, written or read; AtomicLen for an atomic
	// operation. For RecvWrite it is the length of the peer's Write, which is not in the receive's
	// buffer and may be larger.
	Bytes uint32
	// InvalidatedRKey, on a receive, is the key that the peer's SendWithInvalidate invalidated
	// (IBV_WC_WITH_INV); 0: none.
	InvalidatedRKey uint32
	QP              QP     // the queue pair of the work request
	Imm             uint32 // the peer's SendWR.Imm in host byte order, if HasImm
	HasImm          bool   // IBV_WC_WITH_IMM

	// Received datagrams only: the sender, and whether the GRHLen bytes in front of the payload
	// hold the routing header (IBV_WC_GRH).
	SrcQPN uint32
	GRH    bool
}

// CQ is a completion queue. Loop goroutine only.
type CQ interface {
	// Poll removes up to len(wc) completions from the queue, oldest first, and returns their
	// number.
	Poll(wc []WC) int
	// ReqNotify chooses the completions for which notify is called (ibv_req_notify_cq(3)). With
	// solicitedOnly these are failures, and receives of messages that were sent with Solicited.
	// Otherwise, and before the first call, they are all completions. Unlike the C call, ReqNotify
	// stays in effect.
	ReqNotify(solicitedOnly bool)
	// Close destroys the queue. Queue pairs that use it must be gone: EBUSY.
	Close() error
}

// SRQInitAttr describes a shared receive queue (ibv_create_srq(3)).
type SRQInitAttr struct {
	PD    PD  // nil: Device.PD
	MaxWR int // outstanding receives
	// OnEmpty is called on the loop when a message for qp found the queue empty. Completions were
	// notified before, so that the owner can post again what they release. It may then post a
	// receive, or Pause qp. If it does neither, the message waits at its sender until a receive is
	// posted; nothing more of its stream is read until then. Waiting queue pairs are served in the
	// order in which they started to wait, and OnEmpty is called once for each. Only a device with
	// AsksForReceives calls OnEmpty. If OnEmpty is nil, a message that finds no receive ends its
	// connection. On InfiniBand that happens once the sender's retries are used up.
	OnEmpty func(qp QP)
	// OnLimit is called on the loop, once per Arm, when fewer receives are posted than the limit of
	// Arm (IBV_EVENT_SRQ_LIMIT_REACHED). May be nil.
	OnLimit func()
}

// SRQ is a shared receive queue. Loop goroutine only.
type SRQ interface {
	// PostRecv adds a receive. ENOMEM when MaxWR are outstanding.
	PostRecv(wr RecvWR) error
	// Arm requests a call of OnLimit when fewer than limit receives are posted (ibv_modify_srq(3)
	// with IBV_SRQ_LIMIT). If that is already the case, the call follows immediately. A limit of 0
	// cancels the request. A limit above MaxWR is EINVAL.
	Arm(limit int) error
	// Close destroys the queue. Queue pairs that use it must be gone: EBUSY. Receives still posted
	// are dropped.
	Close() error
}

// QPInitAttr describes a queue pair (rdma_create_qp(3)).
type QPInitAttr struct {
	PD             PD // nil: Device.PD
	SendCQ, RecvCQ CQ
	SRQ            SRQ // must be of the same domain; nil: the queue pair has its own receive queue
	MaxSendWR      int // outstanding work requests on the send queue
	MaxRecvWR      int // outstanding receives; ignored with SRQ
	MaxSGE         int // scatter/gather elements per send work request; 0: 1
	Context        any // value for the owner, found from a WC
}

// QP is a queue pair. It is for datagrams if its identifier's port space is, and otherwise reliable
// and connected. Loop goroutine only.
type QP interface {
	// Num is the queue pair number, unique on its device while it lives.
	Num() uint32
	// Context returns the value of QPInitAttr.Context.
	Context() any
	// PostSend queues wr. The error is ENOMEM if the queue is full. It is ErrQPState if the queue
	// pair is not connected or has ended (nothing will complete). It is EINVAL if wr is malformed,
	// if its memory is freed or belongs to another protection domain, and for a Read or an atomic
	// operation if the peer serves none.
	PostSend(wr *SendWR) error
	// PostRecv queues wr. It may be called from creation on, before the connection is established.
	// It fails with ENOMEM if the queue is full.
	PostRecv(wr RecvWR) error
	// SetAccess sets the peer's rights in the memory of the queue pair's domain (ibv_modify_qp(3)
	// with IBV_QP_ACCESS_FLAGS): RemoteWrite, RemoteRead and RemoteAtomic. A region's own rights
	// apply as well. A new queue pair allows all three. An access without the right ends the
	// connection, and the peer sees StatusRemInvReq, on iWARP a Terminate. Without any right it
	// cannot invalidate keys either (SendWithInvalidate). An operation without bytes may pass.
	//
	// When SetAccess returns, the change applies to every request that the device handles from then
	// on. The error is ErrNotSupported without DeviceAttr.QPAccess, EINVAL for a destroyed queue
	// pair, else the device's; after an error nothing has changed.
	SetAccess(access Access) error
	// Destroy flushes outstanding work (each posted work request completes once, with
	// StatusFlushed) and frees the queue pair. On the kernel's devices it may block until packets
	// in flight are done: 3 s if a host has died, at most 50 s. Destroying the identifier also
	// destroys the queue pair, without blocking; it is gone when that is reported (cmid's Closed).
	// If that destruction is under way, Destroy waits for it.
	Destroy() error
}

// Mover is a QP that knows the progress of its transport in bytes. So its owner can distinguish a
// large message that is under way from a silent peer. Other queue pairs know only of whole work
// requests. Loop goroutine only.
type Mover interface {
	QP
	// Came is the number of bytes of any kind that have arrived from the peer.
	Came() uint64
	// Went is the number of our bytes that the peer's transport has acknowledged. It may make a
	// system call.
	Went() uint64
	// Watched announces that from now on the owner itself checks whether the peer is alive. The
	// transport then no longer gives up a peer that answers but has no room for messages.
	Watched()
}

// Pauser is a QP of a device with AsksForReceives. Loop goroutine only.
type Pauser interface {
	QP
	// Pause(true) makes the peer's messages wait at their sender, beginning with the next one that
	// needs a receive. Pause(false) lets them come again. Everything behind a waiting message in
	// the stream waits too: Writes, the data of Reads, and the end of the stream. On the embedded
	// device the messages that had arrived before a connection was lost wait as well, for a limited
	// time (iwarp.Config.UserTimeout). Sending goes on.
	Pause(on bool)
	// Waiting is true while a message of the peer waits because of Pause or because there is no
	// receive. Nothing that the peer sends is read then.
	Waiting() bool
	// Contained reports that a receive contained n messages of the owner's protocol, at least one.
	// They count as so many when the device bounds what a connection receives in a turn.
	Contained(n int)
}
