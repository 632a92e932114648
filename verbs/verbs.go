package verbs

import (
	"errors"

	"github.com/rdmactor/rdmactor/internal/enum"
)

// Device is one RDMA device as a loop sees it. Memory, completion queues and shared receive queues
// of one Device work with the queue pairs of that Device only. Loop goroutine only.
//
// Queue pairs are made by the driver that owns the identifier (rdma_create_qp(3)), not here: on
// every kind of device a queue pair of ours is tied to an rdma_cm_id.
type Device interface {
	// Name is the device's name as rdma_get_devices(3) lists it: "iwarp0", "rxe0", "mem0".
	Name() string
	// Attr gives the device's limits.
	Attr() DeviceAttr
	// PD is the protection domain that queue pairs and memory have when none is named.
	PD() PD
	// AllocPD makes another protection domain (ibv_alloc_pd(3)): what is registered there, peers
	// of queue pairs of other domains cannot reach, even if they know its key.
	AllocPD() (PD, error)
	// Alloc is PD().Alloc.
	Alloc(n int, access Access) (*MR, error)
	// Free deregisters mr (ibv_dereg_mr(3)) and gives its memory back. No posted work request may
	// name it. A peer's access that comes later is refused; the bytes of a Read that is being
	// answered may still be sent, so do not reuse mr.Bytes.
	Free(mr *MR) error
	// CreateCQ makes a completion queue of at least cqe entries. notify is called on the loop when
	// completions were added to an empty or a just polled queue; to be called again it must Poll
	// until 0. It is not nil, but an empty function does for an owner that polls by itself. See
	// CQ.ReqNotify.
	CreateCQ(cqe int, notify func()) (CQ, error)
	// CreateSRQ makes a shared receive queue.
	CreateSRQ(attr SRQInitAttr) (SRQ, error)
	// CreateAH makes an address handle for datagrams (ibv_create_ah(3)); a nil pd is Device.PD.
	// ErrNotSupported where there are none. It may wait: see AHMaker.
	CreateAH(pd PD, attr *AHAttr) (AH, error)
	// InitAHFromWC fills in the way back to a datagram's sender from its completion and the GRHLen
	// bytes in front of it (ibv_init_ah_from_wc(3)). EINVAL when they do not say it;
	// ErrNotSupported as CreateAH.
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
	// entries of a completion queue, which must not overflow; 0: completion queues grow as they
	// need to
	MaxCQE int
	// MaxDatagram is the bytes of one datagram's payload, without GRHLen; 0: the device has none.
	MaxDatagram int
	// Immediate says that SendWithImm exists, and Invalidates that SendWithInvalidate does.
	Immediate, Invalidates bool
	// Atomics says that AtomicCmpSwap and AtomicFetchAdd exist (ibv_device_attr.atomic_cap). They
	// are atomic with regard to one another on one device: not to Writes, and not to what a
	// processor does to the same memory.
	Atomics bool
	// AsksForReceives says that a message which finds a shared receive queue empty has OnEmpty
	// called, and waits at its sender if that posts nothing. Queue pairs are Pausers. Otherwise
	// enough receives must be posted beforehand: on iWARP a message that finds none ends its
	// connection.
	AsksForReceives bool
	// SharesMemory says that memory and shared receive queues of Device.PD serve the queue pairs
	// of every domain, for what they send from and what they receive and read into. Elsewhere a
	// queue pair touches its own domain only. What a peer names must be in the queue pair's domain
	// in any case.
	SharesMemory bool
	// NotifiesAll says that completion queues are notified of every completion, whatever
	// CQ.ReqNotify has chosen.
	NotifiesAll bool
}

// Access is what a memory region may be used for (ibv_access_flags).
type Access uint8

// Access rights. Local read is always granted.
const (
	LocalWrite  Access = 1 << iota // IBV_ACCESS_LOCAL_WRITE
	RemoteWrite                    // IBV_ACCESS_REMOTE_WRITE
	RemoteRead                     // IBV_ACCESS_REMOTE_READ
	// IBV_ACCESS_REMOTE_ATOMIC. ErrNotSupported without DeviceAttr.Atomics
	RemoteAtomic
)

// PD is a protection domain. Loop goroutine only.
type PD interface {
	// Alloc makes a registered memory region of n bytes. The memory is the device's; it stays
	// valid until Device.Free. EINVAL for RemoteWrite or RemoteAtomic without LocalWrite, as
	// ibv_reg_mr(3).
	Alloc(n int, access Access) (*MR, error)
	// Close destroys the domain (ibv_dealloc_pd(3)): EBUSY while a queue pair, a shared receive
	// queue or memory is in it, EINVAL for Device.PD.
	Close() error
}

// Registrar is a PD of a device inside the process, which can register memory that the caller has
// (ibv_reg_mr(3)). Others register their own only: Go's heap cannot be pinned for a kernel.
type Registrar interface {
	PD
	// Register makes a memory region of b, which is not copied. As long as it is registered b must
	// stay as it is, and where a peer is reading it, until what was posted after Device.Free has
	// been sent. Errors as Alloc.
	Register(b []byte, access Access) (*MR, error)
	// Local makes a memory region of b to send from, and for nothing else: nobody can name it, so
	// it costs nothing and is not to be freed. b must stay as it is while a send from it is posted.
	// It may be of any size: an SGE begins below 4 GiB, and may end above.
	Local(b []byte) MR
}

// MR is a registered memory region.
type MR struct {
	// PD is where it is registered; nil once freed.
	PD PD
	// Bytes is the memory. While a receive or a read into it is posted the device owns it; while a
	// send from it is posted it must not be written. Where a peer may write, see the package's
	// Ownership.
	Bytes []byte
	// Addr is the address a peer uses for the first byte. It is opaque: not a pointer.
	Addr uint64
	// LKey and RKey are the keys. On iWARP both are the STag.
	LKey, RKey uint32
	// Access is what Alloc was asked for.
	Access Access
}

// SGE is one scatter/gather element: Length bytes of MR from Offset.
type SGE struct {
	MR             *MR
	Offset, Length uint32
}

// Opcode says what a send work request does (ibv_wr_opcode) or what a completion reports
// (ibv_wc_opcode). The numbers are ours.
type Opcode uint8

// The opcodes. Recv appears in completions only.
const (
	Send Opcode = iota // IBV_WR_SEND
	// IBV_WR_SEND_WITH_INV: RKey is to be taken back. ErrNotSupported without
	// DeviceAttr.Invalidates
	SendWithInvalidate
	// IBV_WR_RDMA_WRITE: SGL, or Inline, to RemoteAddr. Done says: handed over, not: placed
	Write
	// IBV_WR_RDMA_READ: from RemoteAddr to SGL, which is one element with LocalWrite, or none
	Read
	Recv // IBV_WC_RECV
	// IBV_WR_SEND_WITH_IMM: a Send with SendWR.Imm. ErrNotSupported without DeviceAttr.Immediate
	SendWithImm
	// IBV_WR_ATOMIC_CMP_AND_SWP: if CompareAdd is at RemoteAddr, Swap replaces it
	AtomicCmpSwap
	// IBV_WR_ATOMIC_FETCH_AND_ADD: CompareAdd is added to what is at RemoteAddr, modulo 2^64
	AtomicFetchAdd
)

// Atomic is true for AtomicCmpSwap and AtomicFetchAdd. Both are on AtomicLen bytes at RemoteAddr,
// an integer in the target's byte order (StatusRemInvReq where that is not a multiple of
// AtomicLen), and bring what was there before to SGL: one element of AtomicLen bytes with
// LocalWrite, in host byte order. They count as Reads, for Fence and DeviceAttr.MaxRDAtom too.
// ErrNotSupported without DeviceAttr.Atomics.
func (o Opcode) Atomic() bool { return o == AtomicCmpSwap || o == AtomicFetchAdd }

// AtomicLen is the bytes of an atomic operation.
const AtomicLen = 8

var opcodeNames = []string{
	"send", "send with invalidate", "write", "read", "recv", "send with immediate", "compare and swap",
	"fetch and add",
}

// String is the operation in words.
func (o Opcode) String() string { return enum.At(opcodeNames, o, "unknown opcode %d") }

// MarshalText is String's text.
func (o Opcode) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// SendFlags modify a send work request (ibv_send_flags).
type SendFlags uint8

// The flags.
const (
	Signaled  SendFlags = 1 << iota // complete with a WC also on success
	Fence                           // wait for earlier Reads and atomics
	Solicited                       // ask the peer for a solicited event
)

// SendWR is a work request for the send queue (ibv_post_send(3)).
type SendWR struct {
	ID     uint64 // comes back in the WC
	Op     Opcode
	Flags  SendFlags
	Inline []byte // copied by PostSend instead of SGL; at most DeviceAttr.MaxInline bytes
	// the list is copied by PostSend; the memory is referenced until the completion
	SGL []SGE
	// Write, Read, atomics: MR.Addr of the peer's region, plus the offset in it. Ignored where the
	// length is 0
	RemoteAddr uint64
	// Write, Read, atomics: its key, ignored likewise; SendWithInvalidate: the key to invalidate
	RKey       uint32
	Imm        uint32 // SendWithImm: four bytes for the receive's completion, in host byte order
	CompareAdd uint64 // AtomicCmpSwap: what must be there; AtomicFetchAdd: what is added
	Swap       uint64 // AtomicCmpSwap: what is put there

	// Datagram queue pairs only: where the Send goes. The handle must stay until the completion.
	AH         AH
	RemoteQPN  uint32
	RemoteQKey uint32
}

// RecvWR is a work request for a receive queue (ibv_post_recv(3)).
type RecvWR struct {
	ID  uint64 // comes back in the WC
	SGE SGE
}

// WC is a completion (ibv_poll_cq(3)).
type WC struct {
	ID     uint64 // the work request's
	Status Status
	Op     Opcode
	Bytes  uint32 // received, sent, written or read; of atomics AtomicLen
	// InvalidatedRKey is the key that the peer's SendWithInvalidate took back, on a receive
	// (IBV_WC_WITH_INV); 0: none.
	InvalidatedRKey uint32
	QP              QP     // whose work request it was
	Imm             uint32 // the peer's SendWR.Imm in host byte order, where HasImm
	HasImm          bool   // IBV_WC_WITH_IMM

	// Of a datagram received: who sent it, and whether the GRHLen bytes in front of it have its
	// routing header (IBV_WC_GRH).
	SrcQPN uint32
	GRH    bool
}

// CQ is a completion queue. Loop goroutine only.
type CQ interface {
	// Poll takes up to len(wc) completions, oldest first, and says how many.
	Poll(wc []WC) int
	// ReqNotify chooses what notify is called for (ibv_req_notify_cq(3)): every completion, as it
	// is at first, or only receives of messages sent with Solicited, and failures. Unlike the C
	// call it stays in force.
	ReqNotify(solicitedOnly bool)
	// Close destroys the queue. Queue pairs that use it must be gone: EBUSY.
	Close() error
}

// SRQInitAttr describes a shared receive queue (ibv_create_srq(3)).
type SRQInitAttr struct {
	PD    PD  // nil: Device.PD
	MaxWR int // receives outstanding
	// OnEmpty is called on the loop when a message for qp finds the queue empty: the owner may post
	// then, for it, or Pause it. If the owner does neither the message waits at its sender until
	// somebody posts: nothing more is read of its stream. Those that wait are served in order, and
	// OnEmpty is called for them again. Only a device with AsksForReceives calls it. May be nil:
	// then a message that finds nothing ends its connection, on InfiniBand when its sender's
	// patience is over.
	OnEmpty func(qp QP)
	// OnLimit is called on the loop, once per Arm, when fewer receives are posted than Arm said
	// (IBV_EVENT_SRQ_LIMIT_REACHED). May be nil.
	OnLimit func()
}

// SRQ is a shared receive queue. Loop goroutine only.
type SRQ interface {
	// PostRecv adds a receive. ENOMEM when MaxWR are outstanding.
	PostRecv(wr RecvWR) error
	// Arm asks for OnLimit when fewer than limit receives are posted (ibv_modify_srq(3) with
	// IBV_SRQ_LIMIT); at once, if that is so now. 0 disarms. EINVAL for a limit above MaxWR.
	Arm(limit int) error
	// Close destroys the queue. Queue pairs that use it must be gone: EBUSY. Receives still posted
	// are dropped.
	Close() error
}

// QPInitAttr describes a queue pair (rdma_create_qp(3)).
type QPInitAttr struct {
	PD             PD // nil: Device.PD
	SendCQ, RecvCQ CQ
	SRQ            SRQ // of the same domain; nil: the queue pair has a receive queue of its own
	MaxSendWR      int // work requests outstanding on the send queue
	MaxRecvWR      int // on the receive queue; ignored with SRQ
	MaxSGE         int // per send work request; 0: 1
	Context        any // whatever the owner wants to find again from a WC
}

// QP is a queue pair: reliable connected, or for datagrams when its identifier's port space is.
// Loop goroutine only.
type QP interface {
	// Num is the queue pair number, unique on its device while it lives.
	Num() uint32
	// Context is what QPInitAttr.Context was.
	Context() any
	// PostSend queues wr. Errors: EINVAL (not connected or over: nothing will complete; a
	// malformed request; memory that is freed or of another protection domain; a Read or an atomic
	// where the peer serves none), ENOMEM (queue full).
	PostSend(wr *SendWR) error
	// PostRecv queues wr; legal from creation on, before the connection is established. ENOMEM
	// when the queue is full.
	PostRecv(wr RecvWR) error
	// Destroy flushes what is outstanding (each posted work request completes once, with
	// StatusFlushed) and frees the queue pair. On the kernel's devices it may wait, for packets
	// that are under way: 3 s when a host has died, up to 50 s. The destruction of its identifier
	// destroys it without waiting; when that has come back (cmid's Closed) it is gone. Destroy
	// waits for that too.
	Destroy() error
}

// Mover is a QP that knows how far its transport is, in bytes: a large message that is under way is
// no silence. Others know of whole work requests only. Loop goroutine only.
type Mover interface {
	QP
	// Came is how many bytes have come from the peer, of any kind.
	Came() uint64
	// Went is how many of ours the peer's transport has acknowledged. It may cost a system call.
	Went() uint64
	// Watched says that from now on the owner finds out by itself whether the peer is there. The
	// transport then no longer gives up a peer that answers but has no room for what is sent.
	Watched()
}

// Pauser is a QP of a device with AsksForReceives. Loop goroutine only.
type Pauser interface {
	QP
	// Pause has the peer's messages wait at their sender, from the next one that takes a receive on
	// (true), or come again (false). What is behind one that waits waits too: Writes, what Reads
	// bring, and the end of the stream; a connection that is lost ends nevertheless. What is sent
	// goes on.
	Pause(on bool)
	// Waiting is true while a message of the peer's waits, because of Pause or for want of a
	// receive. Nothing that the peer sends is read then.
	Waiting() bool
}

// ErrNotSupported is returned for an operation the device does not have.
var ErrNotSupported = errors.New("verbs: not supported by this device")
