package states

// Kind is an event's type: the 20 of rdma_get_cm_event(3) in the kernel's numbering,
// RDMA_CM_EVENT_ADDR_RESOLVED and on.
type Kind uint8

// The kernel's event types. The numbers are the uABI's.
const (
	KindAddrResolved     Kind = iota // ADDR_RESOLVED
	KindAddrError                    // ADDR_ERROR
	KindRouteResolved                // ROUTE_RESOLVED
	KindRouteError                   // ROUTE_ERROR
	KindConnectRequest               // CONNECT_REQUEST
	KindConnectResponse              // CONNECT_RESPONSE
	KindConnectError                 // CONNECT_ERROR
	KindUnreachable                  // UNREACHABLE
	KindRejected                     // REJECTED
	KindEstablished                  // ESTABLISHED
	KindDisconnected                 // DISCONNECTED
	KindDeviceRemoval                // DEVICE_REMOVAL
	KindMulticastJoin                // MULTICAST_JOIN
	KindMulticastError               // MULTICAST_ERROR
	KindAddrChange                   // ADDR_CHANGE
	KindTimewaitExit                 // TIMEWAIT_EXIT
	KindAddrInfoResolved             // ADDRINFO_RESOLVED (2025)
	KindAddrInfoError                // ADDRINFO_ERROR (2025)
	KindUser                         // USER (2025)
	KindInternal                     // INTERNAL (2025)

	// NumKernelKinds is the number of event types librdmacm knows.
	NumKernelKinds = int(iota)
)

// Events that are ours: answers librdmacm gives as return values.
const (
	KindBound Kind = iota + 20
	KindListening
	KindCommandFailed
	KindDone
	KindQPFailed
	KindListenFailed
	KindNeighbourChanged
	KindClosed
)

// Events that are ours: those of the actor layer, about messages and the peer's memory.
const (
	KindReceived Kind = iota + KindClosed + 1
	KindSent
	KindSendFailed
	KindWritable
	KindMemoryAllocated
	KindGranted
	KindRevoked
	KindReadDone
	KindWriteDone
	KindAccessError
	KindAtomicDone
)
