package states

// State is the state of an rdma_cm_id. It is finer than the kernel's enum rdma_cm_state, which has
// only CONNECT and DISCONNECT for everything between a connection request and the connection's
// end.
type State uint8

// The states. Kernel gives the name that `rdma resource show cm_id` prints for each.
const (
	// Idle is a new identifier (rdma_create_id), or one whose BindAddr failed. Options are set
	// here. Left by BindAddr and by ResolveAddr, which binds.
	Idle State = iota
	// Bound has a local address and port, with a device when it is the address of a device. Entered
	// by BindAddr, and again by AddrError, by a ResolveAddr that failed immediately (even from
	// Idle) and by a Listen that failed. Left by ResolveAddr or Listen.
	Bound
	// AddrQuery waits for AddrResolved or AddrError. Entered by ResolveAddr.
	AddrQuery
	// AddrResolved has a device and a source address; a queue pair can be made. Entered by
	// AddrResolved, and again by RouteError. Left by ResolveRoute.
	AddrResolved
	// RouteQuery waits for RouteResolved or RouteError. Entered by ResolveRoute.
	RouteQuery
	// RouteResolved may Connect. Entered by RouteResolved, and again when Connect failed
	// immediately.
	RouteResolved
	// Listening receives ConnectRequest events, each with a new identifier. Entered by Listen;
	// left for good by DestroyID only, which its children survive.
	Listening
	// Connecting has sent its request and waits for the answer (kernel CONNECT; ib_cm REQ_SENT):
	// Established, Rejected, Unreachable or ConnectError, or ConnectResponse for owners that drive
	// their queue pair. Only DestroyID ends the wait.
	Connecting
	// ConnectRequested is an identifier that came with a ConnectRequest and waits for Accept or
	// Reject (ib_cm REQ_RCVD). No event reports that the peer has given up. The Accept fails then.
	ConnectRequested
	// Responded has received the reply and must be followed by Establish (ib_cm REP_RCVD;
	// InfiniBand with Manual only). Entered by ConnectResponse. Left by Establish or Reject.
	Responded
	// Accepting has sent the reply and waits for Established (ib_cm REP_SENT). Entered by Accept.
	// Only DestroyID ends the wait.
	Accepting
	// Connected is established; a datagram identifier has been resolved or accepted. Entered by
	// Established, by Establish, and by Accept of a datagram request. Left by Disconnect or
	// Disconnected, but a datagram identifier leaves it by DestroyID only.
	Connected
	// Disconnecting has sent its own disconnect and waits for Disconnected (ib_cm DREQ_SENT).
	// Disconnect may be repeated.
	Disconnecting
	// PeerDisconnected has received the peer's disconnect (ib_cm DREQ_RCVD). Its owner must answer
	// with Disconnect, or the peer waits 100 s.
	PeerDisconnected
	// Timewait has been disconnected by both sides. TimewaitExit then reports that the queue pair
	// may be used again. On iWARP this state is the closed connection (kernel CONNECT), and that
	// event does not come. Only DestroyID is left.
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
