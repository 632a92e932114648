package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
)

// Use calls f with the memory's bytes, on the caller's goroutine: any goroutine may call it, and f
// may block. Until f has returned nobody else can reach the bytes. Grant, Read, Write and
// FreeMemory are refused meanwhile, and so are ReadAt and WriteAt (ErrMemoryUsed). Bytes is nil,
// and a slice that it has returned before must not be used.
//
// If the connection ends meanwhile, the bytes stay until f has returned. They then still count
// against Limits.Memory. Runtime.Shutdown waits for them until its context ends. After that they
// are not freed, so that f may go on.
//
// Use returns f's error. Without calling f it fails with ErrMemoryReachable if the memory is
// granted, an operation names it or the loop is just copying its bytes, with ErrMemoryUsed if
// another goroutine uses it, and with ErrMemoryGone. If f panics or calls runtime.Goexit, the
// memory is given back, too. f must not keep the bytes: nothing stops the device from unmapping
// them, and an access then crashes the process.
func (m *Memory) Use(f func(b []byte) error) error {
	if m == nil || m.home == nil {
		return errGone()
	}
	switch m.lease.Own() {
	case datapath.Gone:
		return errGone()
	case datapath.Taken:
		return fmt.Errorf("rdma: %w", errUsed)
	case datapath.Reachable:
		return fmt.Errorf("rdma: %w (%w)", ErrMemoryReachable, unix.EBUSY)
	}
	defer m.lease.Disown()
	return f(m.mr.Bytes)
}

// Pin has m's bytes b stay where they are until unpin is called, once, by any goroutine. Meanwhile
// m cannot be revoked or freed (ErrMemoryUsed). If the connection ends they stay all the same, as
// with Memory.Use. It does not keep anybody from the bytes: the packages between connections and
// their users have to know who may touch which part, and when. The error is ErrMemoryGone or
// ErrMemoryUsed. It is called on the loop of m's connection.
func (l Local) Pin(m *Memory) (b []byte, unpin func(), err error) {
	switch {
	case m == nil || m.gone():
		return nil, nil, errGone()
	case !m.lease.Pin():
		return nil, nil, fmt.Errorf("rdma: %w", errUsed)
	}
	return m.mr.Bytes, m.lease.Unpin, nil
}
