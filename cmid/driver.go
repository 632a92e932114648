package cmid

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Driver is a kind of device: the embedded iWARP device, the kernel's rdma_cm, the in-memory twin.
// It is opened once per loop.
type Driver interface {
	// Name is the kind and the device, for people: "iwarp", "ucm rxe0".
	Name() string
	// Open puts the driver's own fds into l. Called on l, or before l runs.
	Open(l *eventloop.Loop, up Upcalls) (Instance, error)
}

// Instance is a Driver opened on a loop. All methods are called on the loop.
type Instance interface {
	// CreateID makes an identifier, which upcalls name h. t is QPTypeUD for datagrams, else
	// QPTypeRC; it follows from ps but for PortSpaceIB. EINVAL, EPROTONOSUPPORT for a port space
	// the device does not have.
	CreateID(h Handle, ps PortSpace, t QPType) (DriverID, error)
	// Devices lists the devices of this driver (rdma_get_devices(3)).
	Devices() []verbs.Device
	// Close destroys every identifier left and takes the driver's fds out of the loop. No upcall
	// follows.
	Close() error
}

// DriverID is one identifier of an Instance. It executes the commands that the state machine has
// allowed; it does not check states, except where the device knows more than the table. All methods
// are called on the loop that the identifier is on; none is called after DestroyID.
type DriverID interface {
	// Handle returns its name in upcalls.
	Handle() Handle
	// Flavor returns whether the identifier follows iw_cm (states.IWARP) or ib_cm, 0 while that is
	// unknown: one channel of the kernel has devices of both kinds, and a wildcard listener or an
	// identifier before resolution has no device.
	Flavor() states.Flavor
	// Limits returns the limits of its transport; without a device MaxBacklog only.
	Limits() Limits
	// Do starts cmd. nil: done (its event, where it has one, follows through Upcalls.Event);
	// ErrPending: Upcalls.Done follows later; anything else: it failed, with an errno. After
	// DestroyID no upcall names the identifier, except the Done of DestroyID itself. A DestroyID
	// that fails means that the device still has the identifier.
	Do(cmd Command) error
	// Info returns the present results of rdma_get_local_addr(3) and similar calls.
	Info() Info
	// CreateQP is rdma_create_qp(3): makes a queue pair and ties it to the identifier. EINVAL
	// without a device or when there is one already. The identifier's destruction destroys the
	// queue pair, which is gone when that is done.
	CreateQP(attr verbs.QPInitAttr) (verbs.QP, error)
	// Device returns the device it is attached to, nil without one (a wildcard listener, before
	// resolution).
	Device() verbs.Device
}

// Optional interfaces: NameResolver of a Driver, Enclosed of an Instance, StrangerCounter of an
// Instance and of a DriverID, the others of a DriverID. Without a NameResolver names are looked up
// with LookupAddrInfo. If a DriverID lacks one, the ID's method of the same name fails with
// ErrNotSupported. Without a StrangerCounter Channel.Strangers, or ID.Strangers, is 0; without a
// StarvedCounter ID.Starved is 0. Without a Pather ID.Path is zero. Without an Enclosed
// Channel.Enclosed is false.
type (
	// Migrator moves between its driver's loops: rdma_migrate_id(3), in two halves, of which each
	// runs on its own loop.
	Migrator interface {
		// Detach takes the identifier off its loop. From now on it is in no upcall, and no method
		// of it is called, until it is attached. Events that were not delivered yet go along, in
		// order, and a request's Child with it. A queue pair and its completions stay on the loop
		// that made them; Device stays with the queue pair.
		//
		// For the identifier of a request that was not answered, and that has no queue pair, the
		// two loops may run between the halves. For any other identifier they must not: one caller
		// runs both loops. Detach never returns ErrPending. EBUSY while a command is in progress.
		Detach() (DetachedInstance, error)
	}
	// DetachedInstance is a Migrator between two loops. It belongs to its holder.
	DetachedInstance interface {
		// Attach puts the identifier on the loop of to. It is called on that loop. No event is
		// reported before it returns; afterwards, to reports the events since Detach. EINVAL if to
		// belongs to another driver, or is closed. When Attach fails the identifier stays detached,
		// and can go back to the instance that it came from, as long as that one is open.
		Attach(to Instance) error
		// Destroy destroys the identifier. It does not wait. Any goroutine.
		Destroy()
	}
	// StrangerCounter counts connections to listeners from peers that do not speak the device's
	// protocol.
	StrangerCounter interface {
		// Strangers counts them since the instance was opened: any goroutine. A DriverID counts
		// those that have come to itself, on its loop.
		Strangers() uint64
	}
	// StarvedCounter counts how often a listener has paused because it could not accept a
	// connection for lack of file descriptors or memory.
	StarvedCounter interface {
		Starved() uint64
	}
	// Enclosed knows whether the device's network is inside this process: the twin, and simulated
	// machines.
	Enclosed interface{ Enclosed() bool }
	// NameResolver, of a Driver, looks names up in the device's own network, as LookupAddrInfo does
	// in this host's. Any goroutine may call it.
	NameResolver interface {
		LookupAddrInfo(ctx context.Context, node, service string, hints *AddrInfo) ([]AddrInfo, error)
	}
	// QPAttrs knows how queue pairs are to be set up: rdma_init_qp_attr(3).
	QPAttrs interface {
		// InitQPAttr returns the attributes for a transition to s, and which of them are set.
		InitQPAttr(s verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error)
	}
	// Pather knows how a connection's packets go through the network.
	Pather interface {
		// Path returns zero while that is unknown.
		Path() Path
	}
	// Router knows an identifier's route in InfiniBand's terms.
	Router interface {
		// QueryPath returns the path records, PathLen bytes each.
		QueryPath() ([]byte, error)
		// QueryGID returns the addresses as AF_IB addresses.
		QueryGID() (local, peer Addr, err error)
	}
)

// Upcalls are an Instance's reports, on the loop, possibly from inside Do.
type Upcalls interface {
	// Event delivers an event of h. For states.KindConnectRequest h is the listener's and ev.Child
	// the new identifier, with a handle from NewHandle. Two kinds are not rdma_cm's:
	// states.KindQPFailed, for a queue pair that fails, and states.KindListenFailed, for a listener
	// that no longer gets requests. ev and its PrivateData belong to the driver again when Event
	// returns.
	Event(h Handle, ev *DriverEvent)
	// Done ends the Do that returned ErrPending. An identifier has one such Do at a time: only
	// DestroyID may follow, and then Done is that of DestroyID.
	Done(h Handle, err error)
	// NewHandle returns a handle that was never used before.
	NewHandle() Handle
}

// DriverEvent is an event as the device reports it: struct rdma_ucm_event_resp without the numbers
// that only the kernel needs.
type DriverEvent struct {
	Kind        states.Kind
	Status      int32    // 0, a negative errno, or a positive reject reason or SIDR status
	Err         error    // details beyond Status; may be nil
	Child       DriverID // ConnectRequest
	PrivateData []byte
	Param       ConnParam    // datagram identifiers: QPNum and QKey are where AH leads
	Addr        Addr         // multicast events
	AH          verbs.AHAttr // datagram identifiers: Established on the active side, MulticastJoin
	AddrInfo    []AddrInfo   // AddrInfoResolved
	Arg         uint64       // User, Internal
}

// Info has the known addresses of an identifier.
type Info struct {
	Local, Peer Addr
	Device      string // "" without one
	Port        uint8  // the device's port, 1 and on; 0 without a device
}

// Limits are a transport's limits, in bytes of private data and in requests.
type Limits struct {
	ConnectData, AcceptData, RejectData int
	// Padded: private data arrives with zeros up to the limit (InfiniBand), so its length must
	// travel inside.
	Padded     bool
	MaxBacklog int
	MaxMessage int
}

// clampBacklog returns the backlog of a Listen that asks for n.
func (l Limits) clampBacklog(n int) int {
	if limit := l.MaxBacklog; n <= 0 || n > limit {
		return limit
	}
	return n
}

// ErrPending is returned by DriverID.Do when the command's outcome comes later.
var ErrPending = errors.New("cmid: in progress")

// ErrPortTaken is the error of a bind when another identifier has the port, and one of the two
// addresses is a wildcard or loopback. rdma_cm's errno for that is EADDRNOTAVAIL, as for an
// address that this host does not have, but it means EADDRINUSE. errors.Is finds both in it.
var ErrPortTaken error = portTaken{}

type portTaken struct{}

func (portTaken) Error() string   { return "address already in use" }
func (portTaken) Unwrap() []error { return []error{unix.EADDRNOTAVAIL, unix.EADDRINUSE} }

// ErrNotSupported is returned for an operation that a device, or its kernel, does not have.
// errors.Is finds EOPNOTSUPP and verbs.ErrNotSupported in it.
var ErrNotSupported error = unsupported{}

type unsupported struct{}

func (unsupported) Error() string   { return "not supported by this device" }
func (unsupported) Unwrap() []error { return []error{verbs.ErrNotSupported, unix.EOPNOTSUPP} }
