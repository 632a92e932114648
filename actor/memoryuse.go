package actor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
)

// Use calls f with the memory's bytes, on the caller's goroutine: any goroutine may call it, and f
// may block. Until f has returned the bytes are f's alone: Grant, Read, Write, FreeMemory, ReadAt
// and WriteAt are refused (ErrMemoryUsed). Bytes is nil, and a slice that it has returned before
// must not be used.
//
// If the connection ends before f has returned, the bytes stay until then, and still count against
// Limits.Memory. Runtime.Shutdown waits for them until its context ends. After that they are not
// freed, so that f may continue.
//
// Use returns f's error. Without calling f it fails with ErrMemoryReachable if the memory is
// granted, an operation names it or the loop is just copying its bytes, with ErrMemoryUsed if
// another goroutine uses it, and with ErrMemoryGone. If f panics, the memory is returned, too. f
// must not keep the bytes: nothing stops the device from unmapping them, and an access then
// crashes the process.
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

// Pin keeps m's bytes b in place until unpin is called, once, by any goroutine. Until then m cannot
// be revoked or freed (ErrMemoryUsed). If the connection ends they stay nevertheless, as with
// Memory.Use. Pin does not restrict access to the bytes: the packages between connections and their
// users have to know which code may access which part, and when. The error is ErrMemoryGone or
// ErrMemoryUsed. Pin is called on the loop of m's connection.
func (l Local) Pin(m *Memory) (b []byte, unpin func(), err error) {
	switch {
	case m == nil || m.isGone():
		return nil, nil, errGone()
	case !m.lease.Pin():
		return nil, nil, fmt.Errorf("rdma: %w", errUsed)
	}
	return m.mr.Bytes, m.lease.Unpin, nil
}
