package states

// State is where an rdma_cm_id stands. It is finer than the kernel's enum rdma_cm_state, which
// hides everything between a connection request and its end below CONNECT and DISCONNECT.
type State uint8

// The states. Kernel gives the name that `rdma resource show cm_id` prints for each.
const (
	// Idle is a new identifier (rdma_create_id), or one whose BindAddr failed. Options are set
	// here. Left by BindAddr and by ResolveAddr, which binds.
	Idle State = iota
	// Bound has a local address and port, with a device when that address is a device's own.
	// Entered by BindAddr, and again by AddrError, by a ResolveAddr that failed at once (even from
	// Idle) and by a Listen that failed. Left by ResolveAddr or Listen.
	Bound
	// AddrQuery waits for AddrResolved or AddrError. Entered by ResolveAddr.
	AddrQuery
	// AddrResolved has a device and a source address; a queue pair can be made. Entered by
	// AddrResolved, and again by RouteError. Left by ResolveRoute.
	AddrResolved
	// RouteQuery waits for RouteResolved or RouteError. Entered by ResolveRoute.
	RouteQuery
	// RouteResolved may Connect. Entered by RouteResolved, and again when Connect failed at once.
	RouteResolved
	// Listening receives ConnectRequest events, each with a new identifier. Entered by Listen;
	// left for good by DestroyID only, which its children survive.
	Listening
	// Connecting has sent its request and waits for the answer (kernel CONNECT; ib_cm REQ_SENT):
	// Established, Rejected, Unreachable, ConnectError; ConnectResponse for owners who drive their
	// queue pair. Only DestroyID gives up.
	Connecting
	// ConnectRequested was born of a ConnectRequest and waits for Accept or Reject (ib_cm
	// REQ_RCVD). No event reports that the peer gives up: the Accept fails.
	ConnectRequested
	// Responded has received the reply and owes Establish (ib_cm REP_RCVD; InfiniBand with Manual
	// only). Entered by ConnectResponse. Left by Establish or Reject.
	Responded
	// Accepting has sent the reply and waits for Established (ib_cm REP_SENT). Entered by Accept.
	// Only DestroyID gives up.
	Accepting
	// Connected is established; a datagram identifier: resolved, or accepted. Entered by
	// Established, by Establish, by Accept on a datagram request. Left by Disconnect or
	// Disconnected; a datagram identifier by DestroyID only.
	Connected
	// Disconnecting has sent its own disconnect and waits for Disconnected (ib_cm DREQ_SENT).
	// Disconnect may be repeated.
	Disconnecting
	// PeerDisconnected has received the peer's disconnect and owes the answering Disconnect
	// (ib_cm DREQ_RCVD), without which the peer waits 100 s.
	PeerDisconnected
	// Timewait has been disconnected by both sides; TimewaitExit says that the queue pair may be
	// used again. On iWARP it is the closed connection (kernel CONNECT), without that event. Only
	// DestroyID is left to do.
	Timewait
	// Failed was rejected, unreachable, aborted or refused; only DestroyID helps.
	Failed
	// Removed lost its device (DeviceRemoval); only DestroyID helps.
	Removed
	// Destroying is on its way out; nothing is legal, nothing is reported.
	Destroying
	// AddrInfoQuery waits for AddrInfoResolved or AddrInfoError (kernels of 2025 and later).
	// Entered by ResolveAddrInfo.
	AddrInfoQuery
	// AddrInfoResolved knows a service's addresses: ResolveRoute takes the first of them,
	// ResolveAddr another one.
	AddrInfoResolved

	// NumStates is the number of states.
	NumStates = int(iota)
)
