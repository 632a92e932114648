package cmid

import (
	"crypto/tls"

	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Event is delivered by an identifier: an answer to a Command, or an event on its own.
type Event interface {
	// Kind returns the event's type.
	Kind() states.Kind
	// Ident returns the event's identifier.
	Ident() Handle
}

// Handle names an identifier. It is never reused while the process lives, and 0 is none.
type Handle uint64

// EventBase is the part all events share.
type EventBase struct {
	ID Handle
	// Status is the kernel's: 0, a negative errno, or a positive reject reason or SIDR status.
	Status int32
}

// Ident returns the event's identifier.
func (e *EventBase) Ident() Handle { return e.ID }

// The events that are not failures; failures are in failure.go.
type (
	// Bound answers BindAddr (ours).
	Bound struct {
		EventBase
		Local  Addr   // includes the chosen port
		Device string // "" when the address is a wildcard or loopback
	}
	// Listening answers Listen (ours).
	Listening struct {
		EventBase
		Local   Addr
		Backlog int
	}
	// AddrResolved answers ResolveAddr: RDMA_CM_EVENT_ADDR_RESOLVED.
	AddrResolved struct {
		EventBase
		Local, Peer Addr
		Device      string
	}
	// RouteResolved answers ResolveRoute: RDMA_CM_EVENT_ROUTE_RESOLVED.
	RouteResolved struct{ EventBase }
	// ConnectRequest is RDMA_CM_EVENT_CONNECT_REQUEST. ID is the new identifier.
	ConnectRequest struct {
		EventBase
		Listener    Handle
		Local, Peer Addr
		PrivateData []byte // valid for as long as the event; padded with zeros on InfiniBand
		Param       ConnParam
		// the peer does not use the actor layer: no hello, no credits. Set by the actor layer
		Foreign bool
		// the peer's identity on a secured connection; "": unknown. Set by the actor layer
		Identity string
		// the handshake in TLS mode, with the peer's certificates; nil in others. Set by the actor
		// layer
		TLS *tls.ConnectionState
	}
	// ConnectResponse is RDMA_CM_EVENT_CONNECT_RESPONSE: the owner's Establish is due. Only for
	// owners that drive their queue pair.
	ConnectResponse struct {
		EventBase
		PrivateData []byte
		Param       ConnParam
	}
	// Established is RDMA_CM_EVENT_ESTABLISHED.
	Established struct {
		EventBase
		Local, Peer Addr
		PrivateData []byte
		Param       ConnParam
		// bytes of one message; set by the actor layer and by devices with a limit
		MaxMessage int
		Foreign    bool   // as in ConnectRequest
		Identity   string // as in ConnectRequest
		TLS        *tls.ConnectionState
		// Fallback is why the device has connected in an older way than it tried first (MPA
		// revision 1, in which nothing is agreed on about Reads); nil: it has not.
		Fallback error
		// UD has the peer's datagram address, on the side that connected a datagram identifier; nil
		// otherwise.
		UD *UDParam
	}
	// Disconnected is RDMA_CM_EVENT_DISCONNECTED.
	Disconnected struct {
		EventBase
		// Err is nil for an orderly end, as far as the device knows. The actor layer knows more:
		// it may set ErrPeerLost, or ErrShutdown when this side's Shutdown has ended the
		// connection.
		Err error
	}
	// DeviceRemoval is RDMA_CM_EVENT_DEVICE_REMOVAL. Err is nil when the device was removed;
	// otherwise it is the reason why its driver can no longer be used, such as a
	// *verbs.CredentialsError.
	DeviceRemoval struct {
		EventBase
		Device string
		Err    error
	}
	// MulticastJoin is RDMA_CM_EVENT_MULTICAST_JOIN.
	MulticastJoin struct {
		EventBase
		Addr Addr
		UD   UDParam // where datagrams to the group go
	}
	// AddrChange is RDMA_CM_EVENT_ADDR_CHANGE: a hint, the state stays.
	AddrChange struct{ EventBase }
	// NeighbourChanged is RDMA_CM_EVENT_UNREACHABLE where it fails nothing: the next hop of a
	// resolved or connected identifier has another MAC address, as after a failover (ours).
	// Linux reports it on RoCE. It is a hint, the state stays.
	NeighbourChanged struct{ EventBase }
	// TimewaitExit is RDMA_CM_EVENT_TIMEWAIT_EXIT: the queue pair number may be used again.
	TimewaitExit struct{ EventBase }
	// AddrInfoResolved answers GetAddrInfo and ResolveIBService: RDMA_CM_EVENT_ADDRINFO_RESOLVED,
	// with the result of rdma_query_addrinfo(3).
	AddrInfoResolved struct {
		EventBase
		Info []AddrInfo
	}
	// User is RDMA_CM_EVENT_USER: the event of WriteCMEvent has reached its place in the queue.
	User struct {
		EventBase
		Arg uint64
	}
	// Internal is RDMA_CM_EVENT_INTERNAL: an event that another user of as in ConnectRequest
	// channel, such as librdmacm, has written.
	Internal struct {
		EventBase
		Arg uint64
	}
	// Done answers a Command without a specific event: SetOption, Notify, Reject, LeaveMulticast,
	// WriteCMEvent (ours).
	Done struct {
		EventBase
		Command Command
	}
	// QPFailed reports that the identifier's queue pair has failed and flushes its outstanding work
	// requests (ours): IBV_EVENT_QP_FATAL, _REQ_ERR or _ACCESS_ERR of ibv_get_async_event(3).
	// rdma_cm does not look at queue pairs, so the state stays; where the device ends the
	// connection as well, as on iWARP, Disconnected follows.
	QPFailed struct{ EventBase }
	// Closed is the last event of every identifier (ours).
	Closed struct {
		EventBase
		// why it ended, or that the device has not returned the identifier; nil: its owner
		// destroyed it, or both sides had finished. A peer that ends the connection in order
		// transmits no reason: it sends one as its last message, before Close
		Err error
		// The number of Sends by their fate. Delivered: the peer has consumed the message. Unsent:
		// it never left this side. Unknown: it left this side, but the connection ended before the
		// peer reported that it has consumed it.
		Delivered, Unsent, Unknown uint64
	}
)

// UDParam is the address of datagrams: struct rdma_ud_param without its private data.
type UDParam struct {
	AH   verbs.AHAttr // argument of verbs.Device.CreateAH
	QPN  uint32       // verbs.SendWR.RemoteQPN
	QKey uint32       // verbs.SendWR.RemoteQKey
}

func (*Bound) Kind() states.Kind            { return states.KindBound }
func (*Listening) Kind() states.Kind        { return states.KindListening }
func (*AddrResolved) Kind() states.Kind     { return states.KindAddrResolved }
func (*RouteResolved) Kind() states.Kind    { return states.KindRouteResolved }
func (*ConnectRequest) Kind() states.Kind   { return states.KindConnectRequest }
func (*ConnectResponse) Kind() states.Kind  { return states.KindConnectResponse }
func (*Established) Kind() states.Kind      { return states.KindEstablished }
func (*Disconnected) Kind() states.Kind     { return states.KindDisconnected }
func (*DeviceRemoval) Kind() states.Kind    { return states.KindDeviceRemoval }
func (*MulticastJoin) Kind() states.Kind    { return states.KindMulticastJoin }
func (*AddrChange) Kind() states.Kind       { return states.KindAddrChange }
func (*NeighbourChanged) Kind() states.Kind { return states.KindNeighbourChanged }
func (*TimewaitExit) Kind() states.Kind     { return states.KindTimewaitExit }
func (*AddrInfoResolved) Kind() states.Kind { return states.KindAddrInfoResolved }
func (*User) Kind() states.Kind             { return states.KindUser }
func (*Internal) Kind() states.Kind         { return states.KindInternal }
func (*Done) Kind() states.Kind             { return states.KindDone }
func (*QPFailed) Kind() states.Kind         { return states.KindQPFailed }
func (*Closed) Kind() states.Kind           { return states.KindClosed }
