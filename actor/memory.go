package actor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Memory is registered memory of one connection, or of the connections of a Domain (struct ibv_mr).
// Their Reads read into it, their Writes write from it, and the peer to which it was granted reads
// and writes it. AllocMemory makes it. It exists until FreeMemory is answered, Closed comes (a
// Domain's: the last one's), or Dial goes on to another address. Its methods, except Len, Access
// and Use, are for the connection's loop: the Receive of an OnLoop owner on that loop, and the Fn
// of a Call.
//
// While a Read or Write that names the memory is not answered, the memory's bytes belong to the
// device. Bytes that the peer may write change at any time. What the peer has written is complete
// when a message has come that it sent after the Write. If it may go on writing, copy the bytes
// once with ReadAt, and work with the copy.
type Memory struct {
	home    *home
	mr      *verbs.MR // nil: gone
	n       int
	access  Access
	granted bool
	busy    int            // Reads and Writes of ours
	lease   datapath.Lease // any goroutine
}

// The errors of a Memory.
var (
	// ErrMemoryGone: it was freed, or its connection has ended.
	ErrMemoryGone = errors.New("the memory was freed, or its connection has ended")
	// ErrOffLoop: it is not used on its connection's loop. Only builds with the tag rdmadebug or
	// the race detector check that, because to find out which goroutine calls takes a thousand
	// times as long as the copy.
	ErrOffLoop = errors.New("not called on the connection's loop: use Call")
)

// Len is its length in bytes. Any goroutine.
func (m *Memory) Len() int { return m.n }

// Access is what AllocMemory was asked for. Any goroutine.
func (m *Memory) Access() Access { return m.access }

// Bytes is the memory itself; nil when it is gone, or a goroutine uses it (Use). It is valid until
// Receive, or Call.Fn, returns, and must not be kept: when the connection ends the device takes the
// memory back, and an access then crashes the process. ReadAt and WriteAt are safe from that. On
// the connection's loop.
func (m *Memory) Bytes() []byte {
	if m.gone() || m.lease.Owned() {
		return nil
	}
	return m.mr.Bytes
}

// ReadAt copies the bytes at off to p, as io.ReaderAt does, but all or nothing. It fails with
// ErrMemoryGone, with EINVAL for bytes outside of the memory, with ErrMemoryUsed, and with
// ErrOffLoop.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	b, err := m.borrow(off, len(p))
	if err != nil {
		return 0, err
	}
	defer m.lease.Unreach()
	return copy(p, b), nil
}

// WriteAt copies p to the bytes at off, as io.WriterAt does, but all or nothing. Its errors are
// ReadAt's.
func (m *Memory) WriteAt(p []byte, off int64) (int, error) {
	b, err := m.borrow(off, len(p))
	if err != nil {
		return 0, err
	}
	defer m.lease.Unreach()
	return copy(b, p), nil
}

// borrow is n bytes from off, which no goroutine gets (Use) before Unreach.
func (m *Memory) borrow(off int64, n int) ([]byte, error) {
	if overwrite.On && !m.home.l.el.OnLoop() {
		return nil, fmt.Errorf("rdma: memory: %w (%w)", ErrOffLoop, unix.EPERM)
	}
	if m.gone() {
		return nil, fmt.Errorf("rdma: %w (%w)", ErrMemoryGone, unix.EINVAL)
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
// route is resolved, or it is a request that nobody has answered. So a key can go in the private
// data of Connect or Accept. On InfiniBand a Manual identifier, whose owner makes the queue pair,
// has none.
type (
	// AllocMemory registers memory for Reads and Writes, this side's and the peer's (ours),
	// ibv_reg_mr(3): MemoryAllocated | CommandFailed, with ENOMEM when IDConfig.Memory,
	// Limits.Memory or the device has no more. All zeros at first.
	AllocMemory struct {
		Bytes int // 1 to 4 GiB - 1
		// what the peer may do once the memory is granted: RemoteRead, RemoteWrite, RemoteAtomic; 0
		// is nothing. The owner may always read and write
		Access Access
	}
	// Grant gives the owner a key with which the peer can use the memory, as its Access says
	// (ours): Granted | CommandFailed. Nobody but the peer of this connection can use the key, or
	// the peers of the connections of one Domain. A second Grant gives the same key. The device
	// would let the peer in from the registration on, but before Grant nobody knows the key.
	Grant struct{ Memory *Memory }
	// Revoke takes a grant back (ours): Revoked | CommandFailed, EBUSY while a Read or Write of
	// this connection's own, or of its Domain's, names the memory. The memory stays, with its bytes
	// as they were when the peer lost it. That takes a copy: until Revoke is answered, the memory
	// counts twice against IDConfig.Memory and Limits.Memory. A peer that uses the key afterwards
	// loses its connection. A Read that is being answered may still bring the peer bytes from
	// before; a Write that is arriving may have written all, some or none of its bytes. A later
	// Grant gives another key.
	Revoke struct{ Memory *Memory }
	// FreeMemory gives memory back (ours), ibv_dereg_mr(3): Done | CommandFailed, EBUSY as with
	// Revoke. A peer that has a key loses access as with Revoke.
	FreeMemory struct{ Memory *Memory }
)

// Op is OpQuery: it has no part in the state machine.
func (*AllocMemory) Op() states.Op { return states.OpQuery }

// Op is OpQuery: it has no part in the state machine.
func (*Grant) Op() states.Op { return states.OpQuery }

// Op is OpQuery: it has no part in the state machine.
func (*Revoke) Op() states.Op { return states.OpQuery }

// Op is OpQuery: it has no part in the state machine.
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

// Kind is states.KindMemoryAllocated.
func (*MemoryAllocated) Kind() states.Kind { return states.KindMemoryAllocated }

// String is one line for logs.
func (e *MemoryAllocated) String() string {
	return fmt.Sprintf("allocated %d bytes of memory (id %d)", e.Memory.n, e.ID)
}

// Kind is states.KindGranted.
func (*Granted) Kind() states.Kind { return states.KindGranted }

// String is one line for logs. It does not show the key.
func (e *Granted) String() string { return fmt.Sprintf("granted %v (id %d)", e.Key, e.ID) }

// Kind is states.KindRevoked.
func (*Revoked) Kind() states.Kind { return states.KindRevoked }

// String is one line for logs.
func (e *Revoked) String() string {
	return fmt.Sprintf("revoked %d bytes of memory (id %d)", e.Memory.n, e.ID)
}

// memoryCommand executes a command about memory.
func (it *ident) memoryCommand(cmd Command, sender *actor.PID) {
	var ev Event
	var err error
	switch c := cmd.(type) {
	case *AllocMemory:
		var m *Memory
		m, err = it.allocMemory(c)
		ev = &MemoryAllocated{it.base(), m}
	case *Grant:
		var key RemoteKey
		key, err = it.grant(c.Memory)
		ev = &Granted{it.base(), c.Memory, key}
	case *Revoke:
		err = it.revoke(c.Memory)
		ev = &Revoked{it.base(), c.Memory}
	case *FreeMemory:
		if err = it.idle(c.Memory); err == nil {
			err = c.Memory.free()
		}
		ev = &Done{EventBase: it.base(), Command: c}
	}
	if err != nil {
		it.fail(cmd, sender, err)
		return
	}
	it.reply(sender, ev)
}

func (it *ident) allocMemory(c *AllocMemory) (*Memory, error) {
	switch {
	case !it.connects():
		return nil, datapath.ErrNotConnected
	case c.Bytes <= 0 || c.Bytes > math.MaxUint32:
		return nil, fmt.Errorf("%d bytes of memory: %w", c.Bytes, unix.EINVAL)
	case c.Access&^(LocalWrite|remoteRights) != 0:
		return nil, fmt.Errorf("memory with unknown access %#x: %w", uint8(c.Access), unix.EINVAL)
	case it.cfg.allows(c.Access) != nil:
		return nil, ErrSecured
	case c.Access&RemoteAtomic != 0:
		if err := it.canAtomics(); err != nil {
			return nil, err
		}
	}
	m := &Memory{n: c.Bytes, access: c.Access}
	mr, err := it.register(c.Bytes, c.Access, &m.lease)
	if err != nil {
		return nil, err
	}
	m.home, m.mr = it.home, mr
	return m, nil
}

// register makes memory within IDConfig.Memory.
func (it *ident) register(n int, access Access, lease *datapath.Lease) (*verbs.MR, error) {
	if err := it.meet(); err != nil {
		return nil, err
	}
	if limit, used := it.cfg.Memory, it.memory(); n > limit-used {
		return nil, fmt.Errorf("%d bytes of memory, with %d of the connection's %d in use (IDConfig.Memory): %w", n, used, limit, unix.ENOMEM)
	}
	h, err := it.moveIn()
	if err != nil {
		return nil, err
	}
	mr, err := h.area.Alloc(n, access|LocalWrite, lease)
	if err == nil {
		h.bytes += n
	}
	return mr, err
}

// mine returns an error if m belongs to another connection, or is gone.
func (it *ident) mine(m *Memory) error {
	if err := it.meet(); err != nil {
		return err
	}
	switch {
	case m == nil || m.home != it.home && !m.home.left:
		return fmt.Errorf("not memory of this connection's: %w", unix.EINVAL)
	case m.home != it.home || m.gone() || it.conn != nil && it.conn.Over():
		return fmt.Errorf("%w (%w)", ErrMemoryGone, unix.EINVAL)
	}
	return nil
}

// idle is mine, and also returns an error if operations of the connection's own name m.
func (it *ident) idle(m *Memory) error {
	if err := it.mine(m); err != nil {
		return err
	}
	if m.busy > 0 {
		return fmt.Errorf("%d Reads and Writes that name it are not answered yet: %w", m.busy, unix.EBUSY)
	}
	return nil
}

func (it *ident) grant(m *Memory) (RemoteKey, error) {
	if err := it.mine(m); err != nil {
		return RemoteKey{}, err
	}
	rights := m.access & remoteRights
	if rights == 0 {
		return RemoteKey{}, fmt.Errorf("memory that AllocMemory was to keep from peers: %w", unix.EACCES)
	}
	if !m.granted && !m.lease.Reach() {
		return RemoteKey{}, errUsed
	}
	m.granted = true
	if rights&RemoteWrite != 0 {
		it.notifiable = true
		if it.conn != nil {
			it.conn.Granted()
		}
	}
	return RemoteKey{Addr: m.mr.Addr, RKey: m.mr.RKey, Length: uint32(m.n), Rights: rights}, nil
}

// revoke moves the bytes into a new registration, because the old one is the one that the peer's
// key names.
func (it *ident) revoke(m *Memory) error {
	if err := it.idle(m); err != nil {
		return err
	}
	switch {
	case !m.granted:
		return fmt.Errorf("memory that is not granted: %w", unix.EINVAL)
	case m.lease.Used():
		return errUsed
	}
	mr, err := it.register(m.n, m.access, &m.lease)
	if err != nil {
		return err
	}
	copy(mr.Bytes, m.mr.Bytes)
	if err := m.drop(); err != nil {
		m.home.bytes -= m.n
		return errors.Join(err, m.home.area.Free(mr))
	}
	m.mr, m.granted = mr, false
	m.lease.Unreach()
	return nil
}

// free is FreeMemory.
func (m *Memory) free() error {
	if !m.lease.Free() {
		return errUsed
	}
	err := m.drop()
	if err != nil {
		m.lease.Refused()
	}
	return err
}

// drop gives the registration back. After an error a peer may still reach it.
func (m *Memory) drop() error {
	if err := m.home.area.Free(m.mr); err != nil {
		return err
	}
	m.home.bytes -= m.n
	m.mr = nil
	return nil
}

// RemoteKey names memory that a peer has granted (ours; its parts are struct ibv_mr's). Read,
// Write, FetchAdd and CompareSwap take it. The granting side sends it to its peer, in a message or
// in private data: see MarshalBinary. It is no secret, because only the peer to which it was
// granted can use it. On a network where somebody else can speak for that peer, nothing else is
// safe either.
type RemoteKey struct {
	Addr   uint64 // of the first byte; opaque
	RKey   uint32
	Length uint32 // bytes
	Rights Access // RemoteRead, RemoteWrite, RemoteAtomic: at least one
}

// RemoteKeyLen is the length of a RemoteKey's binary form.
const RemoteKeyLen = 20

const remoteKeyVersion = 1

// remoteRights are those that a peer can have.
const remoteRights = RemoteRead | RemoteWrite | RemoteAtomic

// AppendBinary appends MarshalBinary's form to b.
func (k RemoteKey) AppendBinary(b []byte) ([]byte, error) {
	if err := k.check(); err != nil {
		return b, err
	}
	b = append(b, remoteKeyVersion, byte(k.Rights), 0, 0)
	b = binary.BigEndian.AppendUint32(b, k.RKey)
	b = binary.BigEndian.AppendUint64(b, k.Addr)
	return binary.BigEndian.AppendUint32(b, k.Length), nil
}

// MarshalBinary is the key's form for the wire, RemoteKeyLen bytes (docs/wire.md). EINVAL for a
// key that Grant did not make.
func (k RemoteKey) MarshalBinary() ([]byte, error) {
	return k.AppendBinary(make([]byte, 0, RemoteKeyLen))
}

// UnmarshalBinary parses MarshalBinary's form. EINVAL: the length or the version is wrong, or it is
// not a key. Whether the key names memory of the peer's, only the peer's device knows.
func (k *RemoteKey) UnmarshalBinary(b []byte) error {
	switch {
	case len(b) != RemoteKeyLen:
		return fmt.Errorf("rdma: a remote key of %d bytes, want %d: %w", len(b), RemoteKeyLen, unix.EINVAL)
	case b[0] != remoteKeyVersion:
		return fmt.Errorf("rdma: a remote key of version %d, want %d: %w", b[0], remoteKeyVersion, unix.EINVAL)
	case b[2] != 0 || b[3] != 0:
		return fmt.Errorf("rdma: a remote key with reserved bytes %#x: %w", b[2:4], unix.EINVAL)
	}
	n := RemoteKey{
		Rights: Access(b[1]), RKey: binary.BigEndian.Uint32(b[4:]), Addr: binary.BigEndian.Uint64(b[8:]), Length: binary.BigEndian.Uint32(b[16:]),
	}
	if err := n.check(); err != nil {
		return err
	}
	*k = n
	return nil
}

// check returns an error if k cannot be a key.
func (k RemoteKey) check() error {
	switch {
	case k.Rights == 0 || k.Rights&^remoteRights != 0:
		return fmt.Errorf("rdma: a remote key with the rights %#x: %w", uint8(k.Rights), unix.EINVAL)
	case k.Length == 0 || k.Addr > ^uint64(0)-uint64(k.Length):
		return fmt.Errorf("rdma: a remote key for %d bytes at %#x: %w", k.Length, k.Addr, unix.EINVAL)
	}
	return nil
}

// String does not show the key.
func (k RemoteKey) String() string {
	rights := ""
	if k.Rights&RemoteRead != 0 {
		rights += "r"
	}
	if k.Rights&RemoteWrite != 0 {
		rights += "w"
	}
	if k.Rights&RemoteAtomic != 0 {
		rights += "a"
	}
	return fmt.Sprintf("remote memory of %d bytes (%s)", k.Length, rights)
}
