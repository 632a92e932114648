package actor

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// The one-sided operations. Each is answered once, and belongs to the identifier until then; the
// same one may be sent again afterwards. While the connection lasts they are answered in the order
// in which they were sent, but for what is refused, which is answered at once; at its end those
// that still waited for the device come before those that it had. They keep their place among the
// messages, except that they overtake those that wait for the peer's credits.
type (
	// Read is IBV_WR_RDMA_READ (ours): ReadDone | AccessError. The bytes are in Memory when it is
	// answered.
	Read struct {
		Key    RemoteKey // the peer's memory ...
		Offset int       // ... from there on
		Memory *Memory   // of this connection: where the bytes go ...
		At     int       // ... from there on
		Length int       // bytes; 0 touches nothing
		// begin when the Reads before it are done: a Read of what a Read before it brings
		Fence bool

		access access
	}
	// Write is IBV_WR_RDMA_WRITE (ours): WriteDone | AccessError. The answer says that Memory may
	// be written again: not that the bytes are at the peer, still less that its application knows.
	// To let it know, send a message behind the Write: when that is received the bytes are there.
	Write struct {
		Memory *Memory   // of this connection: the bytes ...
		At     int       // ... from there on
		Length int       // 0 touches nothing
		Key    RemoteKey // the peer's memory ...
		Offset int       // ... from there on
		// begin when the Reads before it are done: a Write of what a Read before it brings
		Fence bool

		access access
	}
)

// Op is OpQuery: it has no part in the state machine.
func (*Read) Op() states.Op { return states.OpQuery }

// Op is OpQuery: it has no part in the state machine.
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
	// AccessError says that a one-sided operation was refused, or failed (ours). What this side
	// can see to be wrong is refused and costs nothing: EINVAL for bytes outside the key or the
	// memory, EACCES for a right that the key does not have, ErrQueueFull when Limits.SendQueue of
	// them wait: go on when one is answered. ErrRemoteAccess and ErrFlushed are the end of the
	// connection: whether a Write was done is not known then.
	AccessError struct{ cmid.FailureBase }
)

// Kind is states.KindReadDone.
func (*ReadDone) Kind() states.Kind { return states.KindReadDone }

// String is one line for logs.
func (e *ReadDone) String() string {
	return fmt.Sprintf("read %d bytes (id %d)", e.Command.Length, e.ID)
}

// Kind is states.KindWriteDone.
func (*WriteDone) Kind() states.Kind { return states.KindWriteDone }

// String is one line for logs.
func (e *WriteDone) String() string {
	return fmt.Sprintf("wrote %d bytes (id %d)", e.Command.Length, e.ID)
}

// Kind is states.KindAccessError.
func (*AccessError) Kind() states.Kind { return states.KindAccessError }

// access is an operation under way.
type access struct {
	posted   datapath.OneSided
	it       *ident
	cmd      oneSided
	sender   *actor.PID
	memory   *Memory
	busy     bool // the connection has it
	answered bool
}

// oneSided is the command of a one-sided operation, whose failing answer is an AccessError.
type oneSided interface {
	Command
	operation() (*access, span)
	done(EventBase) Event // the answer
}

func (c *Read) operation() (*access, span) {
	return &c.access, span{verbs.Read, c.Key, c.Offset, c.Memory, c.At, c.Length, c.Fence, datapath.AtomicOperands{}}
}

func (c *Write) operation() (*access, span) {
	return &c.access, span{verbs.Write, c.Key, c.Offset, c.Memory, c.At, c.Length, c.Fence, datapath.AtomicOperands{}}
}

func (c *Read) done(b EventBase) Event  { return &ReadDone{b, c} }
func (c *Write) done(b EventBase) Event { return &WriteDone{b, c} }

// span is what an operation is about.
type span struct {
	op     verbs.Opcode
	key    RemoteKey
	offset int
	memory *Memory
	at     int
	n      int
	fence  bool
	datapath.AtomicOperands
}

// access has an operation done. An error: it was not begun.
func (it *ident) access(cmd oneSided, sender *actor.PID) error {
	a, s := cmd.operation()
	c := it.conn
	switch {
	case a.busy:
		return fmt.Errorf("sent before, and not answered yet: %w", unix.EINVAL)
	case c == nil:
		return datapath.ErrNotConnected
	case c.Closing():
		return c.NotSending()
	case c.WaitingOps() >= it.rt.cfg.Limits.SendQueue:
		return fmt.Errorf("%d operations wait for room in the send queue: %w (%w)", c.WaitingOps(), ErrQueueFull, unix.ENOBUFS)
	}
	if err := it.checkSpan(s); err != nil {
		return err
	}
	a.posted = datapath.OneSided{Op: s.op, Fence: s.fence, AtomicOperands: s.AtomicOperands, Owner: a}
	if s.n > 0 {
		a.posted.Near = verbs.SGE{MR: s.memory.mr, Offset: uint32(s.at), Length: uint32(s.n)}
		a.posted.Addr, a.posted.RKey = s.key.Addr+uint64(s.offset), s.key.RKey
		a.memory = s.memory
	}
	a.it, a.cmd, a.sender, a.busy, a.answered = it, cmd, sender, true, false
	if a.memory != nil {
		a.memory.busy++
	}
	err := c.OneSided(&a.posted)
	if err != nil {
		a.release()
	}
	return err
}

// checkSpan says what is wrong with an operation as far as this side can see.
func (it *ident) checkSpan(s span) error {
	right := RemoteRead
	if s.op == verbs.Write {
		right = RemoteWrite
	}
	if s.op.Atomic() {
		if err := it.checkAtomic(s); err != nil {
			return err
		}
		right = RemoteAtomic
	}
	switch {
	case s.n < 0 || s.offset < 0 || s.at < 0:
		return fmt.Errorf("a negative length or offset: %w", unix.EINVAL)
	case s.n == 0:
		return nil
	}
	if err := it.mine(s.memory); err != nil {
		return err
	}
	limit, remote := s.memory.n, int64(s.key.Length)
	switch {
	case s.at > limit || s.n > limit-s.at:
		return fmt.Errorf("bytes %d+%d of memory of %d: %w", s.at, s.n, limit, unix.EINVAL)
	case int64(s.offset) > remote || int64(s.n) > remote-int64(s.offset):
		return fmt.Errorf("bytes %d+%d of %v: %w", s.offset, s.n, s.key, unix.EINVAL)
	case s.key.Rights&right == 0:
		return fmt.Errorf("%v was not granted for a %v: %w", s.key, s.op, unix.EACCES)
	case uint64(s.n) > uint64(it.conn.Attr().MaxMessage):
		return fmt.Errorf("%d bytes, and %s moves %d at a time: %w (%w)", s.n, it.id.Device().Name(), it.conn.Attr().MaxMessage,
			ErrTooLarge, unix.EMSGSIZE)
	}
	return nil
}

// Ended is datapath.OpOwner's.
func (a *access) Ended(_ *datapath.Conn, _ *datapath.OneSided, err error) {
	a.release()
	a.answer(err)
}

// Abandoned is datapath.OpOwner's.
func (a *access) Abandoned(*datapath.Conn, *datapath.OneSided) { a.answer(datapath.Flushed()) }

// release makes the command and the memory the owner's again.
func (a *access) release() {
	a.busy = false
	if a.memory != nil {
		a.memory.busy--
		a.memory = nil
	}
}

// answer answers once.
func (a *access) answer(err error) {
	if a.answered {
		return
	}
	a.answered = true
	if err != nil {
		a.it.reply(a.sender, a.it.accessError(a.cmd, err))
		return
	}
	a.it.reply(a.sender, a.cmd.done(a.it.base()))
}

func (it *ident) accessError(cmd Command, err error) *AccessError {
	f := it.failure(cmd, opName(cmd), err)
	f.History = nil // a thousand of them say the same
	if errors.Is(err, ErrRemoteAccess) {
		f.Remedy = "a key is good on the connection it was granted on, until it is revoked: connect again and ask for another"
	}
	return &AccessError{f}
}

// The atomic operations, on an integer of eight bytes in memory that the peer has granted with
// RemoteAtomic. They are one-sided operations as Read is, in their place too. A device does them
// one after another, whichever connections they come by; its processor's own accesses to the
// integer, and Writes, are not among them. The integer is in the byte order of the machine that
// has it. Soft-RoCE has them; elsewhere they, and AllocMemory with RemoteAtomic, are refused with
// cmid.ErrNotSupported, and nothing else happens.
//
// Each that is under way needs a place of its own in Memory: AtomicDone.Old is what is there when
// the answer is made, and that may be what a later one into the same place has brought.
type (
	// FetchAdd is IBV_WR_ATOMIC_FETCH_AND_ADD (ours): AtomicDone | AccessError. Add is added to
	// the integer, modulo 2^64.
	FetchAdd struct {
		// of this connection: where the integer as it was goes, eight bytes in host byte order ...
		Memory *Memory
		At     int       // ... from there on
		Key    RemoteKey // the peer's memory ...
		// ... and the integer in it: a multiple of eight, as granted memory begins at one
		Offset int
		Add    uint64
		Fence  bool // begin when the Reads and atomic operations before it are done

		access access
	}
	// CompareSwap is IBV_WR_ATOMIC_CMP_AND_SWP (ours): AtomicDone | AccessError. An integer that
	// is Compare becomes Swap; AtomicDone.Old says whether it was.
	CompareSwap struct {
		// of this connection: where the integer as it was goes, eight bytes in host byte order ...
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
		Old     uint64  // what the integer was before
	}
)

// Op is OpQuery: it has no part in the state machine.
func (*FetchAdd) Op() states.Op { return states.OpQuery }

// Op is OpQuery: it has no part in the state machine.
func (*CompareSwap) Op() states.Op { return states.OpQuery }

func (*FetchAdd) name() string    { return "fetch and add" }
func (*CompareSwap) name() string { return "compare and swap" }

// Kind is states.KindAtomicDone.
func (*AtomicDone) Kind() states.Kind { return states.KindAtomicDone }

// String is one line for logs.
func (e *AtomicDone) String() string {
	return fmt.Sprintf("%s has found %d (id %d)", opName(e.Command), e.Old, e.ID)
}

func (c *FetchAdd) operation() (*access, span) {
	return &c.access, span{
		verbs.AtomicFetchAdd, c.Key, c.Offset, c.Memory, c.At, verbs.AtomicLen, c.Fence,
		datapath.AtomicOperands{CompareAdd: c.Add},
	}
}

func (c *CompareSwap) operation() (*access, span) {
	return &c.access, span{
		verbs.AtomicCmpSwap, c.Key, c.Offset, c.Memory, c.At, verbs.AtomicLen, c.Fence,
		datapath.AtomicOperands{CompareAdd: c.Compare, Swap: c.Swap},
	}
}

func (c *FetchAdd) done(b EventBase) Event    { return &AtomicDone{b, c, c.access.found()} }
func (c *CompareSwap) done(b EventBase) Event { return &AtomicDone{b, c, c.access.found()} }

// canAtomics says whether the connection's device has atomic operations.
func (it *ident) canAtomics() error {
	if !it.conn.Attr().Atomics {
		return fmt.Errorf("%s has no atomic operations: %w", it.id.Device().Name(), cmid.ErrNotSupported)
	}
	return nil
}

// checkAtomic says what is wrong with an atomic operation besides what may be wrong with any. A
// misaligned one would cost the connection.
func (it *ident) checkAtomic(s span) error {
	if err := it.canAtomics(); err != nil {
		return err
	}
	if addr := s.key.Addr + uint64(s.offset); addr%verbs.AtomicLen != 0 {
		return fmt.Errorf("an atomic operation at %d, not a multiple of %d: %w", s.offset, verbs.AtomicLen, unix.EINVAL)
	}
	return nil
}

// found is what an atomic operation that was done has brought.
func (a *access) found() uint64 {
	near := a.posted.Near
	return binary.NativeEndian.Uint64(near.MR.Bytes[near.Offset:])
}
