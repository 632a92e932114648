package states

// State is where an rdma_cm_id stands. It is finer than the kernel's enum rdma_cm_state, which hides everything between
// a connection request and its end below CONNECT and DISCONNECT.
type State uint8

// The states. Kernel gives the name that `rdma resource show cm_id` prints for each.
const (
	// Idle is a new identifier. Left by BindAddr, by ResolveAddr (which binds) and by DestroyID.
	Idle State = iota
	// Bound has a local address and port, with a device when that address is a device's own. Also where an identifier
	// returns to after AddrError, and after a ResolveAddr that failed at once.
	Bound
	// AddrQuery waits for AddrResolved or AddrError.
	AddrQuery
	// AddrResolved has a device and a source address. Also where an identifier returns to after RouteError.
	AddrResolved
	// RouteQuery waits for RouteResolved or RouteError.
	RouteQuery
	// RouteResolved may Connect. Also where an identifier stays when Connect fails at once.
	RouteResolved
	// Listening receives ConnectRequest events, each with a new identifier.
	Listening
	// Connecting has sent its request and waits for the answer (kernel CONNECT; ib_cm REQ_SENT).
	Connecting
	// ConnectRequested was born of a ConnectRequest and waits for Accept or Reject (ib_cm REQ_RCVD).
	ConnectRequested
	// Responded has received the reply; Establish is due (ib_cm REP_RCVD; InfiniBand with Manual only).
	Responded
	// Accepting has sent the reply and waits to be established (ib_cm REP_SENT).
	Accepting
	// Connected is established; on a datagram identifier: resolved, or accepted.
	Connected
	// Disconnecting has sent its own disconnect and waits for Disconnected (ib_cm DREQ_SENT).
	Disconnecting
	// PeerDisconnected has been told of the peer's disconnect; the answering Disconnect is due (ib_cm DREQ_RCVD).
	PeerDisconnected
	// Timewait has been disconnected by both sides. On iWARP it is the closed connection (kernel CONNECT).
	Timewait
	// Failed was rejected, unreachable, aborted or refused; only DestroyID helps.
	Failed
	// Removed lost its device; only DestroyID helps.
	Removed
	// Destroying is on its way out; nothing is legal.
	Destroying
	// AddrInfoQuery waits for AddrInfoResolved or AddrInfoError (kernels of 2025 and later).
	AddrInfoQuery
	// AddrInfoResolved knows a service's addresses: ResolveRoute takes the first of them, ResolveAddr another one.
	AddrInfoResolved

	// NumStates is the number of states.
	NumStates = int(iota)
)
