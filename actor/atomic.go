package actor

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

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

func (c *FetchAdd) span() span {
	return span{c.Key, c.Offset, c.Memory, c.At, verbs.AtomicLen, c.Fence, datapath.AtomicOperands{CompareAdd: c.Add}}
}

func (c *CompareSwap) span() span {
	return span{c.Key, c.Offset, c.Memory, c.At, verbs.AtomicLen, c.Fence, datapath.AtomicOperands{CompareAdd: c.Compare, Swap: c.Swap}}
}

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
