package actor

import (
	"errors"
	"fmt"
	"math"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// executeMemoryCommand executes a command about memory.
func (tn *tenancy) executeMemoryCommand(cmd Command, sender *actor.PID) {
	var ev Event
	var err error
	switch c := cmd.(type) {
	case *AllocMemory:
		var m *Memory
		m, err = tn.allocMemory(c)
		ev = &MemoryAllocated{tn.eventBase(), m}
	case *Grant:
		var key RemoteKey
		key, err = tn.grantMemory(c.Memory)
		ev = &Granted{tn.eventBase(), c.Memory, key}
	case *Revoke:
		err = tn.revokeGrant(c.Memory)
		ev = &Revoked{tn.eventBase(), c.Memory}
	case *FreeMemory:
		if err = tn.checkIdle(c.Memory); err == nil {
			err = c.Memory.free()
		}
		ev = &Done{EventBase: tn.eventBase(), Command: c}
	}
	if err != nil {
		tn.answerFailed(cmd, sender, err)
		return
	}
	tn.answerSender(sender, ev)
}

func (tn *tenancy) allocMemory(c *AllocMemory) (*Memory, error) {
	switch {
	case !tn.canConnect():
		return nil, datapath.ErrNotConnected
	case c.Bytes <= 0 || c.Bytes > math.MaxUint32:
		return nil, fmt.Errorf("%d bytes of memory: %w", c.Bytes, unix.EINVAL)
	case c.Access&^(LocalWrite|remoteRights) != 0:
		return nil, fmt.Errorf("memory with unknown access %#x: %w", uint8(c.Access), unix.EINVAL)
	case tn.cfg.checkRights(c.Access) != nil:
		return nil, ErrSecured
	case c.Access&RemoteAtomic != 0:
		if err := tn.checkAtomicsSupport(); err != nil {
			return nil, err
		}
	}
	m := &Memory{n: c.Bytes, access: c.Access}
	mr, err := tn.registerMemory(c.Bytes, c.Access, &m.lease)
	if err != nil {
		return nil, err
	}
	m.home, m.mr = tn.home, mr
	return m, nil
}

// registerMemory allocates memory within IDConfig.Memory.
func (tn *tenancy) registerMemory(n int, access Access, lease *datapath.Lease) (*verbs.MR, error) {
	if err := tn.joinDomain(); err != nil {
		return nil, err
	}
	if limit, used := tn.cfg.Memory, tn.usedBytes(); n > limit-used {
		return nil, fmt.Errorf("%d bytes of memory, with %d of the connection's %d in use (IDConfig.Memory): %w", n, used, limit, unix.ENOMEM)
	}
	h, err := tn.moveIn()
	if err != nil {
		return nil, err
	}
	mr, err := h.area.Alloc(n, access|LocalWrite, lease)
	if err == nil {
		h.bytes += n
	}
	return mr, err
}

// checkOwned returns an error if m belongs to another connection, or is gone.
func (tn *tenancy) checkOwned(m *Memory) error {
	if err := tn.joinDomain(); err != nil {
		return err
	}
	switch {
	case m == nil || m.home != tn.home && !m.home.left:
		return fmt.Errorf("not memory of this connection's: %w", unix.EINVAL)
	case m.home != tn.home || m.isGone() || tn.conn != nil && tn.conn.Over():
		return fmt.Errorf("%w (%w)", ErrMemoryGone, unix.EINVAL)
	}
	return nil
}

// checkIdle returns an error as checkOwned does, or if operations of this connection name m.
func (tn *tenancy) checkIdle(m *Memory) error {
	if err := tn.checkOwned(m); err != nil {
		return err
	}
	if m.busy > 0 {
		return fmt.Errorf("%d Reads and Writes that name it are not answered yet: %w", m.busy, unix.EBUSY)
	}
	return nil
}

func (tn *tenancy) grantMemory(m *Memory) (RemoteKey, error) {
	if err := tn.checkOwned(m); err != nil {
		return RemoteKey{}, err
	}
	rights := m.access & remoteRights
	if rights == 0 {
		return RemoteKey{}, fmt.Errorf("memory without a right of the peer (AllocMemory.Access): %w", unix.EACCES)
	}
	if !m.granted && !m.lease.Reach() {
		return RemoteKey{}, errUsed
	}
	m.granted = true
	if rights&RemoteWrite != 0 {
		tn.notifiable = true
		if tn.conn != nil {
			tn.conn.Granted()
		}
	}
	return RemoteKey{Addr: m.mr.Addr, RKey: m.mr.RKey, Length: uint32(m.n), Rights: rights}, nil
}

// revokeGrant moves the bytes into a new registration, because the peer's key names the old one.
func (tn *tenancy) revokeGrant(m *Memory) error {
	if err := tn.checkIdle(m); err != nil {
		return err
	}
	switch {
	case !m.granted:
		return fmt.Errorf("memory that is not granted: %w", unix.EINVAL)
	case m.lease.Used():
		return errUsed
	}
	mr, err := tn.registerMemory(m.n, m.access, &m.lease)
	if err != nil {
		return err
	}
	copy(mr.Bytes, m.mr.Bytes)
	if err := m.releaseRegistration(); err != nil {
		m.home.bytes -= m.n
		return errors.Join(err, m.home.area.Free(mr))
	}
	m.mr, m.granted = mr, false
	m.lease.Unreach()
	return nil
}

// checkAtomicsSupport returns an error if the device has no atomic operations.
func (tn *tenancy) checkAtomicsSupport() error {
	if tn.conn != nil && !tn.conn.Attr().Atomics || tn.conn == nil && !tn.id.Device().Attr().Atomics {
		return fmt.Errorf("%s has no atomic operations: %w", tn.id.Device().Name(), cmid.ErrNotSupported)
	}
	return nil
}
