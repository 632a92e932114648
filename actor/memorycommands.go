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

// command executes a command about memory.
func (t *tenancy) command(cmd Command, sender *actor.PID) {
	var ev Event
	var err error
	switch c := cmd.(type) {
	case *AllocMemory:
		var m *Memory
		m, err = t.allocMemory(c)
		ev = &MemoryAllocated{t.base(), m}
	case *Grant:
		var key RemoteKey
		key, err = t.grant(c.Memory)
		ev = &Granted{t.base(), c.Memory, key}
	case *Revoke:
		err = t.revoke(c.Memory)
		ev = &Revoked{t.base(), c.Memory}
	case *FreeMemory:
		if err = t.idle(c.Memory); err == nil {
			err = c.Memory.free()
		}
		ev = &Done{EventBase: t.base(), Command: c}
	}
	if err != nil {
		t.fail(cmd, sender, err)
		return
	}
	t.reply(sender, ev)
}

func (t *tenancy) allocMemory(c *AllocMemory) (*Memory, error) {
	switch {
	case !t.connects():
		return nil, datapath.ErrNotConnected
	case c.Bytes <= 0 || c.Bytes > math.MaxUint32:
		return nil, fmt.Errorf("%d bytes of memory: %w", c.Bytes, unix.EINVAL)
	case c.Access&^(LocalWrite|remoteRights) != 0:
		return nil, fmt.Errorf("memory with unknown access %#x: %w", uint8(c.Access), unix.EINVAL)
	case t.cfg.allows(c.Access) != nil:
		return nil, ErrSecured
	case c.Access&RemoteAtomic != 0:
		if err := t.canAtomics(); err != nil {
			return nil, err
		}
	}
	m := &Memory{n: c.Bytes, access: c.Access}
	mr, err := t.register(c.Bytes, c.Access, &m.lease)
	if err != nil {
		return nil, err
	}
	m.home, m.mr = t.home, mr
	return m, nil
}

// register allocates memory within IDConfig.Memory.
func (t *tenancy) register(n int, access Access, lease *datapath.Lease) (*verbs.MR, error) {
	if err := t.meet(); err != nil {
		return nil, err
	}
	if limit, used := t.cfg.Memory, t.used(); n > limit-used {
		return nil, fmt.Errorf("%d bytes of memory, with %d of the connection's %d in use (IDConfig.Memory): %w", n, used, limit, unix.ENOMEM)
	}
	h, err := t.moveIn()
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
func (t *tenancy) mine(m *Memory) error {
	if err := t.meet(); err != nil {
		return err
	}
	switch {
	case m == nil || m.home != t.home && !m.home.left:
		return fmt.Errorf("not memory of this connection's: %w", unix.EINVAL)
	case m.home != t.home || m.gone() || t.conn != nil && t.conn.Over():
		return fmt.Errorf("%w (%w)", ErrMemoryGone, unix.EINVAL)
	}
	return nil
}

// idle is mine, and also returns an error if operations of this connection name m.
func (t *tenancy) idle(m *Memory) error {
	if err := t.mine(m); err != nil {
		return err
	}
	if m.busy > 0 {
		return fmt.Errorf("%d Reads and Writes that name it are not answered yet: %w", m.busy, unix.EBUSY)
	}
	return nil
}

func (t *tenancy) grant(m *Memory) (RemoteKey, error) {
	if err := t.mine(m); err != nil {
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
		t.notifiable = true
		if t.conn != nil {
			t.conn.Granted()
		}
	}
	return RemoteKey{Addr: m.mr.Addr, RKey: m.mr.RKey, Length: uint32(m.n), Rights: rights}, nil
}

// revoke moves the bytes into a new registration, because the peer's key names the old one.
func (t *tenancy) revoke(m *Memory) error {
	if err := t.idle(m); err != nil {
		return err
	}
	switch {
	case !m.granted:
		return fmt.Errorf("memory that is not granted: %w", unix.EINVAL)
	case m.lease.Used():
		return errUsed
	}
	mr, err := t.register(m.n, m.access, &m.lease)
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

// canAtomics returns an error if the device has no atomic operations.
func (t *tenancy) canAtomics() error {
	if t.conn != nil && !t.conn.Attr().Atomics || t.conn == nil && !t.id.Device().Attr().Atomics {
		return fmt.Errorf("%s has no atomic operations: %w", t.id.Device().Name(), cmid.ErrNotSupported)
	}
	return nil
}
