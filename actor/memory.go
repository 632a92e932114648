package actor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Memory is registered memory of one connection, or of the connections of a Domain (struct ibv_mr).
// Their Reads read into it, their Writes write from it, and the peer to which it was granted reads
// and writes it. AllocMemory makes it. It exists until FreeMemory is answered, Closed is reported
// (a Domain's: the last one's), or Dial continues with another address. Its methods, except Len,
// Access and Use, are for the connection's loop: the Receive of an OnLoop owner on that loop, and
// the Fn of a Call.
//
// While a Read or Write that names the memory is not answered, the memory's bytes belong to the
// device. Bytes that the peer may write change at any time. A Write by the peer is complete when a
// message that the peer sent after the Write is received. If the peer may continue writing, copy
// the bytes once with ReadAt, and work with the copy.
type Memory struct {
	home    *home
	mr      *verbs.MR // nil: gone
	n       int
	access  Access
	granted bool
	busy    int            // this side's Reads and Writes
	lease   datapath.Lease // any goroutine
}

// The errors of a Memory.
var (
	// ErrMemoryGone: it was freed, or its connection has ended.
	ErrMemoryGone = errors.New("the memory was freed, or its connection has ended")
	// ErrOffLoop: it is not used on its connection's loop. Only builds with the tag rdmadebug or
	// the race detector check that, because finding out which goroutine calls takes a thousand
	// times as long as the copy.
	ErrOffLoop = errors.New("not called on the connection's loop: use Call")
)

// Len returns its length in bytes. Any goroutine may call it.
func (m *Memory) Len() int {
	m.panicIfNil()
	return m.n
}

// Access returns the access of its AllocMemory. Any goroutine may call it.
func (m *Memory) Access() Access {
	m.panicIfNil()
	return m.access
}

// panicIfNil panics if there is no Memory.
func (m *Memory) panicIfNil() {
	if m == nil {
		panic("rdma: a nil *Memory: MemoryAllocated has one")
	}
}

// errGone returns the error of a Memory that is gone, or was never made.
func errGone() error { return fmt.Errorf("rdma: %w (%w)", ErrMemoryGone, unix.EINVAL) }

// Bytes returns the memory itself; nil when it is gone, or a goroutine uses it (Use). It is valid
// until Receive, or Call.Fn, returns, and must not be kept: when the connection ends the device
// unmaps the memory, and an access then crashes the process. ReadAt and WriteAt are safe from that.
// On the connection's loop.
func (m *Memory) Bytes() []byte {
	m.panicIfNil()
	if m.isGone() || m.lease.Owned() {
		return nil
	}
	return m.mr.Bytes
}

// ReadAt copies the bytes at off to p, as io.ReaderAt does, but all or nothing. It fails with
// ErrMemoryGone, with EINVAL for bytes outside of the memory, with ErrMemoryUsed, and with
// ErrOffLoop.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	b, err := m.borrowBytes(off, len(p))
	if err != nil {
		return 0, err
	}
	defer m.lease.Unreach()
	return copy(p, b), nil
}

// WriteAt copies p to the bytes at off, as io.WriterAt does, but all or nothing. Its errors are
// ReadAt's.
func (m *Memory) WriteAt(p []byte, off int64) (int, error) {
	b, err := m.borrowBytes(off, len(p))
	if err != nil {
		return 0, err
	}
	defer m.lease.Unreach()
	return copy(b, p), nil
}

// borrowBytes returns n bytes from off, which Use cannot lend to a goroutine before Unreach.
func (m *Memory) borrowBytes(off int64, n int) ([]byte, error) {
	if m == nil || m.home == nil {
		return nil, errGone()
	}
	if overwrite.On && !m.home.el.OnLoop() {
		return nil, fmt.Errorf("rdma: memory: %w (%w)", ErrOffLoop, unix.EPERM)
	}
	if m.isGone() {
		return nil, errGone()
	}
	b := m.mr.Bytes
	switch {
	case off < 0 || off > int64(len(b)) || n > len(b)-int(off):
		return nil, fmt.Errorf("rdma: bytes %d+%d of %d: %w", off, n, len(b), unix.EINVAL)
	case !m.lease.Reach():
		return nil, fmt.Errorf("rdma: %w", errUsed)
	}
	return b[off : int(off)+n], nil
}

// The commands about memory. They need an identifier that is connected or may connect now: its
// route is resolved, or it is an unanswered request. So a key can go in the private data of Connect
// or Accept. On InfiniBand a Manual identifier, whose owner makes the queue pair, has none.
type (
	// AllocMemory registers memory for Reads and Writes, this side's and the peer's (ours),
	// ibv_reg_mr(3): MemoryAllocated | CommandFailed, with ENOMEM when IDConfig.Memory,
	// Limits.Memory or the device has no more. All zeros at first.
	AllocMemory struct {
		Bytes int // 1 to 4 GiB - 1
		// the peer's rights once the memory is granted: RemoteRead, RemoteWrite, RemoteAtomic; 0:
		// none. The owner may always read and write
		Access Access
	}
	// Grant gives the owner a key with which the peer can use the memory, according to its Access
	// (ours): Granted | CommandFailed. Only the peer of this connection can use the key, or the
	// peers of the connections of one Domain. A second Grant gives the same key. The device would
	// let the peer in from the registration on, but the key is secret before Grant.
	Grant struct{ Memory *Memory }
	// Revoke withdraws a grant (ours): Revoked | CommandFailed, EBUSY while a Read or Write of this
	// connection, or of its Domain, names the memory. The memory stays, with the bytes that it had
	// when the peer lost it. That takes a copy: until Revoke is answered, the memory counts twice
	// against IDConfig.Memory and Limits.Memory. A peer that uses the key afterwards loses its
	// connection. A Read that is being answered may still bring the peer bytes from before; a Write
	// that is arriving may have written all, some or none of its bytes. A later Grant gives another
	// key.
	Revoke struct{ Memory *Memory }
	// FreeMemory frees memory (ours), ibv_dereg_mr(3): Done | CommandFailed, EBUSY as with Revoke.
	// A peer that has a key loses access as with Revoke.
	FreeMemory struct{ Memory *Memory }
)

// Op returns OpQuery: it has no part in the state machine.
func (*AllocMemory) Op() states.Op { return states.OpQuery }

// Op returns OpQuery: it has no part in the state machine.
func (*Grant) Op() states.Op { return states.OpQuery }

// Op returns OpQuery: it has no part in the state machine.
func (*Revoke) Op() states.Op { return states.OpQuery }

// Op returns OpQuery: it has no part in the state machine.
func (*FreeMemory) Op() states.Op { return states.OpQuery }

func (*AllocMemory) name() string { return "alloc memory" }
func (*Grant) name() string       { return "grant" }
func (*Revoke) name() string      { return "revoke" }
func (*FreeMemory) name() string  { return "free memory" }

// The events about memory.
type (
	// MemoryAllocated answers AllocMemory (ours).
	MemoryAllocated struct {
		EventBase
		Memory *Memory
	}
	// Granted answers Grant (ours). Key is for the peer.
	Granted struct {
		EventBase
		Memory *Memory
		Key    RemoteKey
	}
	// Revoked answers Revoke (ours).
	Revoked struct {
		EventBase
		Memory *Memory
	}
)

// Kind returns states.KindMemoryAllocated.
func (*MemoryAllocated) Kind() states.Kind { return states.KindMemoryAllocated }

// String returns one line for logs.
func (e *MemoryAllocated) String() string {
	return fmt.Sprintf("allocated %d bytes of memory (id %d)", e.Memory.n, e.ID)
}

// Kind returns states.KindGranted.
func (*Granted) Kind() states.Kind { return states.KindGranted }

// String returns one line for logs. It does not show the key.
func (e *Granted) String() string { return fmt.Sprintf("granted %v (id %d)", e.Key, e.ID) }

// Kind returns states.KindRevoked.
func (*Revoked) Kind() states.Kind { return states.KindRevoked }

// String returns one line for logs.
func (e *Revoked) String() string {
	return fmt.Sprintf("revoked %d bytes of memory (id %d)", e.Memory.n, e.ID)
}

// free carries out FreeMemory.
func (m *Memory) free() error {
	if !m.lease.Free() {
		return errUsed
	}
	err := m.releaseRegistration()
	if err != nil {
		m.lease.Refused()
	}
	return err
}

// releaseRegistration releases the registration. After an error a peer may still reach it.
func (m *Memory) releaseRegistration() error {
	if err := m.home.area.Free(m.mr); err != nil {
		return err
	}
	m.home.bytes -= m.n
	m.mr = nil
	return nil
}

// errUsed is ErrMemoryUsed with its errno.
var errUsed = fmt.Errorf("%w (%w)", ErrMemoryUsed, unix.EBUSY)

// isGone reports whether the memory is gone. Loop goroutine.
func (m *Memory) isGone() bool { return m.mr == nil || m.mr.PD == nil || m.lease.Gone() }

// The errors of memory that goroutines use off the loop. errors.Is finds EBUSY beside them.
var (
	// ErrMemoryUsed: a goroutine uses the memory (Memory.Use, Local.Pin). Until it is finished the
	// memory cannot be granted, revoked or freed, and a Read or Write cannot name it.
	ErrMemoryUsed = errors.New("a goroutine uses the memory")
	// ErrMemoryReachable: the peer, the device or the loop may change the memory: it is granted, a
	// Read or Write that names it is not answered, or a ReadAt or WriteAt is copying. Revoke it, or
	// wait.
	ErrMemoryReachable = errors.New("the memory is granted, or a Read or Write names it")
)
