package actor

import (
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
	// To tell it send a message behind the Write: when that is received the bytes are there.
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
	cmd      Command
	sender   *actor.PID
	memory   *Memory
	busy     bool // the connection has it
	answered bool
}

// accessCommand executes a one-sided operation.
func (it *ident) accessCommand(cmd Command, sender *actor.PID) {
	var err error
	switch c := cmd.(type) {
	case *Read:
		err = it.access(&c.access, verbs.Read, cmd, sender, span{c.Key, c.Offset, c.Memory, c.At, c.Length, c.Fence, datapath.AtomicOperands{}})
	case *Write:
		err = it.access(&c.access, verbs.Write, cmd, sender, span{c.Key, c.Offset, c.Memory, c.At, c.Length, c.Fence, datapath.AtomicOperands{}})
	case *FetchAdd:
		err = it.access(&c.access, verbs.AtomicFetchAdd, cmd, sender, c.span())
	case *CompareSwap:
		err = it.access(&c.access, verbs.AtomicCmpSwap, cmd, sender, c.span())
	}
	if err != nil {
		it.reply(sender, it.accessError(cmd, err))
	}
}

// span is what an operation is about.
type span struct {
	key    RemoteKey
	offset int
	memory *Memory
	at     int
	n      int
	fence  bool
	datapath.AtomicOperands
}

// access has an operation done. An error: it was not begun.
func (it *ident) access(a *access, op verbs.Opcode, cmd Command, sender *actor.PID, s span) error {
	c := it.conn
	switch {
	case a.busy:
		return fmt.Errorf("sent before, and not answered yet: %w", unix.EINVAL)
	case c == nil:
		return datapath.ErrNotConnected
	case c.Closing():
		return c.NotSending()
	case c.WaitingOps() >= it.rt.cfg.limits.SendQueue:
		return fmt.Errorf("%d operations wait for room in the send queue: %w (%w)", c.WaitingOps(), ErrQueueFull, unix.ENOBUFS)
	}
	if err := it.checkSpan(op, s); err != nil {
		return err
	}
	a.posted = datapath.OneSided{Op: op, Fence: s.fence, AtomicOperands: s.AtomicOperands, Owner: a}
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
func (it *ident) checkSpan(op verbs.Opcode, s span) error {
	right := RemoteRead
	if op == verbs.Write {
		right = RemoteWrite
	}
	if op.Atomic() {
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
		return fmt.Errorf("%v was not granted for a %v: %w", s.key, op, unix.EACCES)
	case uint64(s.n) > uint64(it.conn.Attr().MaxMessage):
		return fmt.Errorf("%d bytes, and %s moves %d at a time: %w (%w)", s.n, it.id.Device().Name(), it.conn.Attr().MaxMessage,
			ErrTooLarge, unix.EMSGSIZE)
	}
	return nil
}

// Ended is oneSidedOwner's.
func (a *access) Ended(_ *datapath.Conn, _ *datapath.OneSided, err error) {
	a.release()
	a.answer(err)
}

// Abandoned is oneSidedOwner's.
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
	it, cmd, sender := a.it, a.cmd, a.sender
	if err != nil {
		it.reply(sender, it.accessError(cmd, err))
		return
	}
	switch c := cmd.(type) {
	case *Read:
		it.reply(sender, &ReadDone{it.base(), c})
	case *Write:
		it.reply(sender, &WriteDone{it.base(), c})
	case *FetchAdd, *CompareSwap:
		it.reply(sender, &AtomicDone{it.base(), c, a.found()})
	}
}

func (it *ident) accessError(cmd Command, err error) *AccessError {
	f := it.failure(cmd, opName(cmd), err)
	f.History = nil // a thousand of them say the same
	if errors.Is(err, ErrRemoteAccess) {
		f.Remedy = "a key is good on the connection it was granted on, until it is revoked: connect again and ask for another"
	}
	return &AccessError{f}
}
