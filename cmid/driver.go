package cmid

import (
	"errors"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Driver is a kind of device: the embedded iWARP device, the kernel's rdma_cm, the in-memory twin. It is opened once per loop.
type Driver interface {
	// Name is the kind and the device, for people: "iwarp", "ucm rxe0".
	Name() string
	// Open puts the driver's own fds into l. Called on l, or before l runs.
	Open(l *eventloop.Loop, up Upcalls) (Instance, error)
}

// Instance is a Driver opened on a loop. It executes what the state machine has allowed; it does not judge states, except where
// the device knows more than the table. All methods are called on the loop.
type Instance interface {
	// Flavor says whether the identifiers follow iw_cm (states.IWARP) or ib_cm.
	Flavor() states.Flavor
	// Limits gives the transport's limits.
	Limits() Limits
	// CreateID makes an identifier. EINVAL, EPROTONOSUPPORT for a port space the device does not have.
	CreateID(h Handle, ps PortSpace) error
	// Do starts cmd. nil: done (its event, where it has one, follows through Upcalls.Event); ErrPending: Upcalls.Done will tell,
	// later; anything else: it failed, with an errno. DestroyID is never refused; after it no upcall names h.
	Do(h Handle, cmd Command) error
	// Info is what rdma_get_local_addr(3) and its like tell now.
	Info(h Handle) Info
	// CreateQP is rdma_create_qp(3): makes a queue pair and ties it to h. EINVAL without a device or when there is one already.
	// The identifier's destruction destroys it.
	CreateQP(h Handle, attr verbs.QPInitAttr) (verbs.QP, error)
	// Device is the device h is attached to, nil when none is (a wildcard listener, before resolution).
	Device(h Handle) verbs.Device
	// Devices lists what this driver offers (rdma_get_devices(3)).
	Devices() []verbs.Device
	// Close destroys every identifier left and takes the driver's fds out of the loop. No upcall follows.
	Close() error
}

// Upcalls is what an Instance tells, on the loop, possibly from inside Do.
type Upcalls interface {
	// Event tells what happened to h. For states.KindConnectRequest h is the listener's and ev.Child the new identifier's handle,
	// from NewHandle. ev and its PrivateData are the driver's again when Event returns.
	Event(h Handle, ev *DriverEvent)
	// Done ends a Do that returned ErrPending.
	Done(h Handle, cmd Command, err error)
	// NewHandle gives a handle that was never used before.
	NewHandle() Handle
}

// DriverEvent is an event as the device tells it: struct rdma_ucm_event_resp without the numbers that only the kernel needs.
type DriverEvent struct {
	Kind        states.Kind
	Status      int32 // 0, a negative errno, or a positive reject reason or SIDR status
	Err         error // more than Status can say; may be nil
	Child       Handle
	PrivateData []byte
	Param       ConnParam
	Addr        Addr // multicast events
}

// Info is what is known about an identifier's addresses.
type Info struct {
	Local, Peer Addr
	Device      string // "" without one
	Port        uint8  // the device's port, 1 and on; 0 without a device
}

// Limits are a transport's limits, in bytes of private data and in requests.
type Limits struct {
	ConnectData, AcceptData, RejectData int
	// Padded: private data arrives with zeros up to the limit (InfiniBand), so its length must travel inside.
	Padded     bool
	MaxBacklog int
	MaxMessage int
}

// ErrPending is returned by Instance.Do when the command's outcome comes later.
var ErrPending = errors.New("cmid: in progress")
