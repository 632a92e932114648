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

// Memory is registered memory of one connection (struct ibv_mr): what its Reads read into and its
// Writes write from, and, once granted, what its peer reads and writes. AllocMemory makes it. It
// is the connection's: it is gone when FreeMemory is answered, and when Closed comes. Its
// methods are for the connection's loop, that is for the Receive of an OnLoop owner on that loop
// and for Call, except Len and Access.
//
// While a Read or Write that names the memory is not answered its bytes are the device's. Where a
// peer may write they change at any time: touch what it wrote when a message came that it sent
// behind the Write, and what it may go on writing through ReadAt, once, before anything is
// concluded from it.
type Memory struct {
	it      *ident
	c       *datapath.Conn // Dial goes to its next address with another one
	mr      *verbs.MR      // nil: gone
	n       int
	access  Access
	granted bool
	busy    int // Reads and Writes of ours
}

// What a Memory says.
var (
	// ErrMemoryGone: it was freed, or its connection has ended.
	ErrMemoryGone = errors.New("the memory was freed, or its connection has ended")
	// ErrOffLoop: it is not used on its connection's loop. Builds with the tag rdmadebug or the
	// race detector look: to find out which goroutine calls costs a thousand times what the copy
	// does.
	ErrOffLoop = errors.New("not called on the connection's loop: use Call")
)

// Len is its bytes. Any goroutine.
func (m *Memory) Len() int { return m.n }

// Access is what AllocMemory was asked for. Any goroutine.
func (m *Memory) Access() Access { return m.access }

// Bytes is the memory itself; nil when it is gone. It is valid until Receive, or Call.Fn, returns,
// and must not be kept: when the connection ends the device takes it back, and to touch it then
// ends the process. ReadAt and WriteAt are the careful way. On the connection's loop.
func (m *Memory) Bytes() []byte {
	if m.mr == nil || m.mr.PD == nil {
		return nil
	}
	return m.mr.Bytes
}

// ReadAt copies the bytes from off to p (io.ReaderAt, but all or nothing): ErrMemoryGone; EINVAL
// for bytes outside; ErrOffLoop when it is not called on the connection's loop, which is looked at
// in builds with the tag rdmadebug or the race detector only.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	b, err := m.at(off, len(p))
	return copy(p, b), err
}

// WriteAt copies p to the bytes from off (io.WriterAt, but all or nothing). Errors as ReadAt's.
func (m *Memory) WriteAt(p []byte, off int64) (int, error) {
	b, err := m.at(off, len(p))
	return copy(b, p), err
}

// at is n bytes from off.
func (m *Memory) at(off int64, n int) ([]byte, error) {
	if overwrite.On && !m.it.l.el.OnLoop() {
		return nil, fmt.Errorf("rdma: memory: %w (%w)", ErrOffLoop, unix.EPERM)
	}
	b := m.Bytes()
	switch {
	case b == nil:
		return nil, fmt.Errorf("rdma: %w (%w)", ErrMemoryGone, unix.EINVAL)
	case off < 0 || off > int64(len(b)) || n > len(b)-int(off):
		return nil, fmt.Errorf("rdma: bytes %d+%d of %d: %w", off, n, len(b), unix.EINVAL)
	}
	return b[off : int(off)+n], nil
}

// The commands of memory. They want an identifier that is connected, or has got Connect, on a
// device that lets the runtime make its queue pair.
type (
	// AllocMemory registers memory for Read, Write and the peer's (ours), ibv_reg_mr(3):
	// MemoryAllocated | CommandFailed, with ENOMEM when IDConfig.Memory, Limits.Memory or the
	// device has no more. All zeros at first.
	AllocMemory struct {
		Bytes int // 1 to 4 GiB - 1
		// RemoteRead, RemoteWrite, RemoteAtomic: what Grant will let the peer do; 0 for none. The
		// owner may read and write always
		Access Access
	}
	// Grant lets the peer at memory, as its Access says (ours): Granted | CommandFailed. Nobody
	// but the peer of this connection can use the key. Granted again it has the same key. The
	// device is open to the peer from the registration on; what Grant adds is that the peer can
	// know the key, so until then the memory is the owner's as if it had no remote access.
	Grant struct{ Memory *Memory }
	// Revoke takes a grant back (ours): Revoked | CommandFailed, EBUSY while a Read or Write of
	// this connection's own names the memory. The memory stays, with its bytes as they were when
	// the peer lost it, which costs a copy, and until it is answered the memory counts twice
	// against IDConfig.Memory and Limits.Memory. A peer that uses the key afterwards loses its
	// connection. Bytes of a Read that is being answered may still arrive at the peer, as they
	// were; of a Write that is arriving some, or none, are there. Granted again it has another
	// key.
	Revoke struct{ Memory *Memory }
	// FreeMemory gives memory back (ours), ibv_dereg_mr(3): Done | CommandFailed, EBUSY as Revoke.
	// A peer that has a key to it loses it as with Revoke.
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

// The events of memory.
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

// memoryCommand executes a command of memory.
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
			err = it.drop(c.Memory)
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
	case it.conn == nil || it.conn.Over():
		return nil, datapath.ErrNotConnected
	case c.Bytes <= 0 || c.Bytes > math.MaxUint32:
		return nil, fmt.Errorf("%d bytes of memory: %w", c.Bytes, unix.EINVAL)
	case c.Access&^(LocalWrite|remoteRights) != 0:
		return nil, fmt.Errorf("memory with unknown access %#x: %w", uint8(c.Access), unix.EINVAL)
	case c.Access&RemoteAtomic != 0:
		if err := it.canAtomics(); err != nil {
			return nil, err
		}
	}
	mr, err := it.register(c.Bytes, c.Access)
	if err != nil {
		return nil, err
	}
	return &Memory{it: it, c: it.conn, mr: mr, n: c.Bytes, access: c.Access}, nil
}

// register makes memory within IDConfig.Memory.
func (it *ident) register(n int, access Access) (*verbs.MR, error) {
	if limit := it.cfg.Memory; n > limit-it.memory {
		return nil, fmt.Errorf("%d bytes of memory, with %d of the connection's %d in use (IDConfig.Memory): %w", n, it.memory, limit, unix.ENOMEM)
	}
	mr, err := it.conn.Alloc(n, access|LocalWrite)
	if err == nil {
		it.memory += n
	}
	return mr, err
}

// mine says what is wrong with m: it is of another connection, or gone.
func (it *ident) mine(m *Memory) error {
	switch {
	case m == nil || m.it != it:
		return fmt.Errorf("not memory of this connection's: %w", unix.EINVAL)
	case m.Bytes() == nil || m.c != it.conn || m.c.Over():
		return fmt.Errorf("%w (%w)", ErrMemoryGone, unix.EINVAL)
	}
	return nil
}

// idle is mine, and says besides whether operations of the connection's own name m.
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
	m.granted = true
	return RemoteKey{Addr: m.mr.Addr, RKey: m.mr.RKey, Length: uint32(m.n), Rights: rights}, nil
}

// revoke has the bytes move: what was registered before the peer does not reach any more.
func (it *ident) revoke(m *Memory) error {
	if err := it.idle(m); err != nil {
		return err
	}
	if !m.granted {
		return fmt.Errorf("memory that is not granted: %w", unix.EINVAL)
	}
	mr, err := it.register(m.n, m.access)
	if err != nil {
		return err
	}
	copy(mr.Bytes, m.mr.Bytes)
	if err := it.drop(m); err != nil {
		it.memory -= m.n
		return errors.Join(err, it.conn.Free(mr))
	}
	m.mr, m.granted = mr, false
	return nil
}

// drop gives m's registration back. An error: a peer may still reach it.
func (it *ident) drop(m *Memory) error {
	if err := it.conn.Free(m.mr); err != nil {
		return err
	}
	it.memory -= m.n
	m.mr = nil
	return nil
}

// RemoteKey names memory that a peer has granted (ours; its parts are struct ibv_mr's). Read,
// Write, FetchAdd and CompareSwap want it. It is a value to be sent to the peer, in a message or
// in private data: see MarshalBinary. It is no secret: only the peer it was granted to can use it,
// and on a network where somebody else can speak for that peer nothing else is safe either.
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

// UnmarshalBinary takes MarshalBinary's form, and nothing else: EINVAL for what is longer or
// shorter, of another version, or not a key. What it says of the peer's memory only the peer's
// device knows to be true.
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

// check says whether k can be a key.
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
