package actor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// The one-sided operations. Each is answered once and belongs to the identifier until then;
// afterwards the same value may be sent again. A refused operation is answered immediately. The
// others are answered in the order in which they were sent. When the connection ends, those that
// still waited for the device are answered before those that the device had. Operations keep their
// order among the messages, except that they overtake messages that wait for the peer's credits.
type (
	// Read is IBV_WR_RDMA_READ (ours): ReadDone | AccessError. The bytes are in Memory when
	// ReadDone is delivered.
	Read struct {
		Key    RemoteKey // the peer's memory ...
		Offset int       // ... from there on
		Memory *Memory   // of this connection: where the bytes go ...
		At     int       // ... from there on
		Length int       // bytes; 0 touches nothing
		// begin when the Reads before it are done: to read what an earlier Read brings
		Fence bool

		access access
	}
	// Write is IBV_WR_RDMA_WRITE (ours): WriteDone | AccessError. WriteDone means that Memory may
	// be written again. It does not mean that the bytes have arrived, or that the peer's
	// application has noticed. To notify it, send a message after the Write: when that is received,
	// the bytes are there.
	Write struct {
		Memory *Memory   // of this connection: the bytes ...
		At     int       // ... from there on
		Length int       // 0 touches nothing
		Key    RemoteKey // the peer's memory ...
		Offset int       // ... from there on
		// begin when the Reads before it are done: to write what an earlier Read brings
		Fence bool
		// HasImm notifies the peer's owner (IBV_WR_RDMA_WRITE_WITH_IMM): it gets a Received with
		// Imm and the length, when the bytes are there. Key must allow RemoteWrite, also with a
		// Length of 0. The Write then takes a credit, and waits for one if there is none;
		// operations behind it wait with it. It counts as a message in Closed. Refused with
		// cmid.ErrNotSupported on devices without immediates (verbs.DeviceAttr.Immediate; iWARP has
		// none).
		HasImm bool
		Imm    uint32

		access access
	}
)

// Op returns OpQuery: it has no part in the state machine.
func (*Read) Op() states.Op { return states.OpQuery }

// Op returns OpQuery: it has no part in the state machine.
func (*Write) Op() states.Op { return states.OpQuery }

func (*Read) name() string  { return "read" }
func (*Write) name() string { return "write" }

// The answers of one-sided operations.
type (
	// ReadDone answers Read (ours).
	ReadDone struct {
		EventBase
		Command *Read
	}
	// WriteDone answers Write (ours).
	WriteDone struct {
		EventBase
		Command *Write
	}
	// AccessError reports that a one-sided operation was refused, or failed (ours). An operation
	// that is detectably wrong on this side is refused, which costs nothing: EINVAL for bytes
	// outside the key or the memory, EACCES for a right that the key does not have. ErrQueueFull:
	// Limits.SendQueue operations wait; send more when one is answered. With ErrRemoteAccess and
	// ErrFlushed the connection ends, and it is not known whether a Write was done.
	AccessError struct{ cmid.FailureBase }
)

// Kind returns states.KindReadDone.
func (*ReadDone) Kind() states.Kind { return states.KindReadDone }

// String returns one line for logs.
func (e *ReadDone) String() string {
	return fmt.Sprintf("read %d bytes (id %d)", e.Command.Length, e.ID)
}

// Kind returns states.KindWriteDone.
func (*WriteDone) Kind() states.Kind { return states.KindWriteDone }

// String returns one line for logs.
func (e *WriteDone) String() string {
	return fmt.Sprintf("wrote %d bytes (id %d)", e.Command.Length, e.ID)
}

// Kind returns states.KindAccessError.
func (*AccessError) Kind() states.Kind { return states.KindAccessError }

// access is an operation under way.
type access struct {
	posted   datapath.OneSided
	from     *outbox // sends the answer
	cmd      oneSided
	sender   *actor.PID
	memory   *Memory
	busy     bool // the connection has it
	answered bool
	done     func(error) // called in place of the answer; nil: the answer is sent
	found    uint64      // the value that a completed atomic operation has put into memory
}

// oneSided is the command of a one-sided operation, whose failing answer is an AccessError.
type oneSided interface {
	Command
	accessAndSpan() (*access, span)
	doneEvent(EventBase) Event // the answer
}

func (c *Read) accessAndSpan() (*access, span) {
	return &c.access, span{verbs.Read, c.Key, c.Offset, c.Memory, c.At, c.Length, c.Fence, 0, datapath.AtomicOperands{}}
}

func (c *Write) accessAndSpan() (*access, span) {
	op := verbs.Write
	if c.HasImm {
		op = verbs.WriteWithImm
	}
	return &c.access, span{op, c.Key, c.Offset, c.Memory, c.At, c.Length, c.Fence, c.Imm, datapath.AtomicOperands{}}
}

func (c *Read) doneEvent(b EventBase) Event  { return &ReadDone{b, c} }
func (c *Write) doneEvent(b EventBase) Event { return &WriteDone{b, c} }

// span has the operands of an operation.
type span struct {
	op     verbs.Opcode
	key    RemoteKey
	offset int
	memory *Memory
	at     int
	n      int
	fence  bool
	imm    uint32
	datapath.AtomicOperands
}

// The atomic operations, on an integer of eight bytes in memory that the peer has granted with
// RemoteAtomic. They are one-sided operations like Read, in the same order. They are atomic with
// respect to each other, on all connections of the device, but not with respect to Writes or to
// accesses by the peer's own processor. The integer is in the byte order of the peer's machine.
// Soft-RoCE has atomic operations. Other devices do not: there they, and AllocMemory with
// RemoteAtomic, are refused with cmid.ErrNotSupported.
//
// Operations that are in flight at the same time need different places in Memory. AtomicDone.Old is
// read from there when the operation has completed, and a later operation with the same place may
// have overwritten it.
type (
	// FetchAdd is IBV_WR_ATOMIC_FETCH_AND_ADD (ours): AtomicDone | AccessError. It adds Add to the
	// integer, modulo 2^64.
	FetchAdd struct {
		// of this connection: receives the previous integer, eight bytes in host byte order ...
		Memory *Memory
		At     int       // ... from there on
		Key    RemoteKey // the peer's memory ...
		// ... and the integer in it: a multiple of eight, as granted memory begins at one
		Offset int
		Add    uint64
		Fence  bool // begin when the Reads and atomic operations before it are done

		access access
	}
	// CompareSwap is IBV_WR_ATOMIC_CMP_AND_SWP (ours): AtomicDone | AccessError. It sets the
	// integer to Swap if it equals Compare; it did if AtomicDone.Old equals Compare.
	CompareSwap struct {
		// of this connection: receives the previous integer, eight bytes in host byte order ...
		Memory *Memory
		At     int       // ... from there on
		Key    RemoteKey // the peer's memory ...
		// ... and the integer in it: a multiple of eight, as granted memory begins at one
		Offset  int
		Compare uint64
		Swap    uint64
		Fence   bool // begin when the Reads and atomic operations before it are done

		access access
	}
	// AtomicDone answers FetchAdd and CompareSwap (ours).
	AtomicDone struct {
		EventBase
		Command Command // *FetchAdd or *CompareSwap
		Old     uint64  // the previous integer
	}
)

// Op returns OpQuery: it has no part in the state machine.
func (*FetchAdd) Op() states.Op { return states.OpQuery }

// Op returns OpQuery: it has no part in the state machine.
func (*CompareSwap) Op() states.Op { return states.OpQuery }

func (*FetchAdd) name() string    { return "fetch and add" }
func (*CompareSwap) name() string { return "compare and swap" }

// Kind returns states.KindAtomicDone.
func (*AtomicDone) Kind() states.Kind { return states.KindAtomicDone }

// String returns one line for logs.
func (e *AtomicDone) String() string {
	return fmt.Sprintf("%s has found %d (id %d)", opName(e.Command), e.Old, e.ID)
}

func (c *FetchAdd) accessAndSpan() (*access, span) {
	return &c.access, span{
		verbs.AtomicFetchAdd, c.Key, c.Offset, c.Memory, c.At, verbs.AtomicLen, c.Fence, 0,
		datapath.AtomicOperands{CompareAdd: c.Add},
	}
}

func (c *CompareSwap) accessAndSpan() (*access, span) {
	return &c.access, span{
		verbs.AtomicCmpSwap, c.Key, c.Offset, c.Memory, c.At, verbs.AtomicLen, c.Fence, 0,
		datapath.AtomicOperands{CompareAdd: c.Compare, Swap: c.Swap},
	}
}

func (c *FetchAdd) doneEvent(b EventBase) Event    { return &AtomicDone{b, c, c.access.found} }
func (c *CompareSwap) doneEvent(b EventBase) Event { return &AtomicDone{b, c, c.access.found} }
