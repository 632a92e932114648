package ucm

import (
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
)

// OpenError reports why the channel could not be opened and what would help. errors.Is finds the
// errno.
type OpenError struct {
	Path   string // of the device file, "" when the kernel does not know one
	Remedy string
	Err    error
}

// Error returns both in one line.
func (e *OpenError) Error() string {
	path := e.Path
	if path == "" {
		path = "rdma_cm"
	}
	return fmt.Sprintf("open %s: %v: %s", path, e.Err, e.Remedy)
}

// Unwrap gives the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// BusyError reports that too many connects of a loop are waiting for the kernel. errors.Is finds
// EAGAIN: when one of them has ended, another may be tried.
type BusyError struct {
	Waiting int
	Err     error
}

// Error returns the number of waiting connects.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%d connects are waiting for the kernel, which is the most that one loop may have: %v", e.Waiting, e.Err)
}

// Unwrap gives EAGAIN.
func (e *BusyError) Unwrap() error { return e.Err }

// ThreadsError reports that a command was not begun, because it may wait in the kernel and this
// process may not have a thread for it. errors.Is finds EAGAIN: when there are fewer threads, the
// command may be tried again.
type ThreadsError struct {
	Limit string // the limit's name, and how much of it is used
	Err   error
}

// Error names the remedy.
func (e *ThreadsError) Error() string {
	return fmt.Sprintf("this process may have no thread for it, %s: %v: raise the limit (TasksMax= in systemd, --pids-limit for containers, "+
		"`ulimit -u` for a user)", e.Limit, e.Err)
}

// Unwrap returns EAGAIN.
func (e *ThreadsError) Unwrap() error { return e.Err }

// NodeGUIDError reports that an address belongs to an RDMA device whose node GUID is 0, and that
// the kernel does not report the device's index either. So the device cannot be distinguished from
// others. errors.Is finds ENODEV.
type NodeGUIDError struct {
	Err error
}

// Error names the remedy.
func (e *NodeGUIDError) Error() string {
	return fmt.Sprintf("the RDMA device has node GUID 0000:0000:0000:0000, and the kernel does not report the device's index "+
		"(Linux before 5.9, or no netlink here): %v: give it a GUID (for a function of SR-IOV, on its host: "+
		"`ip link set PF vf N node_guid 02:00:00:00:00:00:00:01`, then unbind the function from its driver and bind it again)", e.Err)
}

// Unwrap returns the cause.
func (e *NodeGUIDError) Unwrap() error { return e.Err }

// HeldError reports that the kernel has not destroyed identifiers. When Close returns it, the
// kernel was too slow: it will still destroy them, and until then their goroutines and the
// descriptor stay. When a DestroyID returns it, the kernel has refused, and keeps the identifier
// until the channel is closed.
type HeldError struct {
	IDs []HeldID
	Err error // ETIMEDOUT; of a DestroyID the kernel's
}

// HeldID is an identifier that the kernel has not released.
type HeldID struct {
	Handle      cmid.Handle
	Local, Peer cmid.Addr
	Doing       string // the kernel's pending command: "connect", "destroy_id"
}

// Error names them.
func (e *HeldError) Error() string {
	s := fmt.Sprintf("ucm: the kernel keeps %d identifiers: %v", len(e.IDs), e.Err)
	for i, id := range e.IDs {
		if i == 4 {
			return s + ", ..."
		}
		s += fmt.Sprintf("; %s of id %d (%v -> %v)", id.Doing, id.Handle, id.Local, id.Peer)
	}
	return s
}

// Unwrap gives the errno.
func (e *HeldError) Unwrap() error { return e.Err }
