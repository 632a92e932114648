package actor

import (
	"context"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// The messages of package cmid under the names that applications use, so that one import is enough.
type (
	// Command is what may be asked of an identifier.
	Command = cmid.Command
	// Event is what an identifier tells.
	Event = cmid.Event
	// Failure is a failing answer.
	Failure = cmid.Failure
	// EventBase is the part all events share.
	EventBase = cmid.EventBase
	// FailureBase is the part all failures share.
	FailureBase = cmid.FailureBase
	// Handle names an identifier in events and logs.
	Handle = cmid.Handle
	// Transition is one step in an identifier's history.
	Transition = cmid.Transition
)

// The commands.
type (
	// BindAddr is rdma_bind_addr(3).
	BindAddr = cmid.BindAddr
	// ResolveAddr is rdma_resolve_addr(3).
	ResolveAddr = cmid.ResolveAddr
	// ResolveRoute is rdma_resolve_route(3).
	ResolveRoute = cmid.ResolveRoute
	// Listen is rdma_listen(3).
	Listen = cmid.Listen
	// Connect is rdma_connect(3).
	Connect = cmid.Connect
	// Accept is rdma_accept(3).
	Accept = cmid.Accept
	// Reject is rdma_reject(3). Unless the identifier is Manual it is destroyed afterwards and the
	// answer is Closed.
	Reject = cmid.Reject
	// Establish is rdma_establish(3).
	Establish = cmid.Establish
	// Disconnect is rdma_disconnect(3).
	Disconnect = cmid.Disconnect
	// DestroyID is rdma_destroy_id(3).
	DestroyID = cmid.DestroyID
	// SetOption is rdma_set_option(3).
	SetOption = cmid.SetOption
	// Notify is rdma_notify(3).
	Notify = cmid.Notify
	// JoinMulticast is rdma_join_multicast(3).
	JoinMulticast = cmid.JoinMulticast
	// LeaveMulticast is rdma_leave_multicast(3).
	LeaveMulticast = cmid.LeaveMulticast
	// SetIBPath is rdma_set_option(3) with RDMA_OPTION_IB_PATH.
	SetIBPath = cmid.SetIBPath
	// ResolveIBService is rdma_resolve_addrinfo(3).
	ResolveIBService = cmid.ResolveIBService
	// WriteCMEvent is rdma_write_cm_event(3).
	WriteCMEvent = cmid.WriteCMEvent
	// GetAddrInfo is rdma_getaddrinfo(3).
	GetAddrInfo = cmid.GetAddrInfo
	// ConnParam is struct rdma_conn_param.
	ConnParam = cmid.ConnParam
	// UDParam is struct rdma_ud_param.
	UDParam = cmid.UDParam
	// ECE is struct ibv_ece.
	ECE = cmid.ECE
)

// The options of SetOption.
const (
	OptionTOS        = cmid.OptionTOS
	OptionReuseAddr  = cmid.OptionReuseAddr
	OptionAFOnly     = cmid.OptionAFOnly
	OptionAckTimeout = cmid.OptionAckTimeout
)

// The events.
type (
	// Bound answers BindAddr (ours).
	Bound = cmid.Bound
	// Listening answers Listen and Serve (ours).
	Listening = cmid.Listening
	// AddrResolved answers ResolveAddr.
	AddrResolved = cmid.AddrResolved
	// RouteResolved answers ResolveRoute.
	RouteResolved = cmid.RouteResolved
	// ConnectRequest is a peer's request; its Sender is the new identifier.
	ConnectRequest = cmid.ConnectRequest
	// ConnectResponse is for Manual owners: Establish is due.
	ConnectResponse = cmid.ConnectResponse
	// Established answers Connect, Accept and Dial.
	Established = cmid.Established
	// Disconnected is the end of a connection.
	Disconnected = cmid.Disconnected
	// DeviceRemoval is the end of a device.
	DeviceRemoval = cmid.DeviceRemoval
	// MulticastJoin answers JoinMulticast.
	MulticastJoin = cmid.MulticastJoin
	// AddrChange is a hint.
	AddrChange = cmid.AddrChange
	// TimewaitExit says that a queue pair number may be used again.
	TimewaitExit = cmid.TimewaitExit
	// AddrInfoResolved answers GetAddrInfo and ResolveIBService.
	AddrInfoResolved = cmid.AddrInfoResolved
	// User is what WriteCMEvent sent.
	User = cmid.User
	// Internal was written by another user of the identifier's channel.
	Internal = cmid.Internal
	// Done answers commands that have no event of their own (ours).
	Done = cmid.Done
	// QPFailed is for owners that have made their queue pair themselves (Call): it has failed
	// (ours).
	QPFailed = cmid.QPFailed
	// Closed is the last event of every identifier (ours).
	Closed = cmid.Closed
)

// The failures.
type (
	// CommandFailed says that a command was refused or failed at once (ours).
	CommandFailed = cmid.CommandFailed
	// AddrError answers ResolveAddr.
	AddrError = cmid.AddrError
	// RouteError answers ResolveRoute.
	RouteError = cmid.RouteError
	// ConnectError answers Connect and Accept.
	ConnectError = cmid.ConnectError
	// Unreachable answers Connect and Accept.
	Unreachable = cmid.Unreachable
	// Rejected answers Connect.
	Rejected = cmid.Rejected
	// MulticastError answers JoinMulticast.
	MulticastError = cmid.MulticastError
	// AddrInfoError answers GetAddrInfo, and Dial and Serve when the name does not resolve.
	AddrInfoError = cmid.AddrInfoError
	// ListenFailed is the end of a listener whose socket the system has taken (ours).
	ListenFailed = cmid.ListenFailed
	// RejectReason is why a peer rejected.
	RejectReason = cmid.RejectReason
)

// The reject reasons an application meets.
const (
	RejectNoQP              = cmid.RejectNoQP
	RejectNoResources       = cmid.RejectNoResources
	RejectTimeout           = cmid.RejectTimeout
	RejectUnsupported       = cmid.RejectUnsupported
	RejectInvalidCommID     = cmid.RejectInvalidCommID
	RejectInvalidServiceID  = cmid.RejectInvalidServiceID
	RejectInvalidTransport  = cmid.RejectInvalidTransport
	RejectStaleConnection   = cmid.RejectStaleConnection
	RejectInvalidGID        = cmid.RejectInvalidGID
	RejectInvalidMTU        = cmid.RejectInvalidMTU
	RejectInsufficientDepth = cmid.RejectInsufficientDepth
	RejectConsumerDefined   = cmid.RejectConsumerDefined
	RejectInvalidRNRRetry   = cmid.RejectInvalidRNRRetry
	RejectDuplicateCommID   = cmid.RejectDuplicateCommID
	RejectVendorOption      = cmid.RejectVendorOption
	RejectReset             = cmid.RejectReset
	RejectRefused           = cmid.RejectRefused
)

// Addresses.
type (
	// Addr is a sockaddr.
	Addr = cmid.Addr
	// SockaddrIB is struct sockaddr_ib.
	SockaddrIB = cmid.SockaddrIB
	// AddrInfo is struct rdma_addrinfo.
	AddrInfo = cmid.AddrInfo
	// AddrInfoFlags are rdma_getaddrinfo(3)'s ai_flags.
	AddrInfoFlags = cmid.AddrInfoFlags
	// Family is an address family.
	Family = cmid.Family
	// QPType is enum ibv_qp_type.
	QPType = cmid.QPType
	// PortSpace is enum rdma_port_space.
	PortSpace = cmid.PortSpace
	// GAIError is why a name did not resolve.
	GAIError = cmid.GAIError
)

// Port spaces, families and rdma_getaddrinfo(3)'s flags.
const (
	PortSpaceIPOIB = cmid.PortSpaceIPOIB
	PortSpaceTCP   = cmid.PortSpaceTCP
	PortSpaceUDP   = cmid.PortSpaceUDP
	PortSpaceIB    = cmid.PortSpaceIB

	FamilyAny  = cmid.FamilyAny
	FamilyIPv4 = cmid.FamilyIPv4
	FamilyIPv6 = cmid.FamilyIPv6
	FamilyIB   = cmid.FamilyIB

	RAIPassive     = cmid.RAIPassive
	RAINumericHost = cmid.RAINumericHost
	RAINoRoute     = cmid.RAINoRoute
	RAIFamily      = cmid.RAIFamily
	RAISA          = cmid.RAISA
	RAIDNS         = cmid.RAIDNS
)

// Access is what memory may be used for (ibv_access_flags).
type Access = verbs.Access

// Access rights. AllocMemory's owner always has LocalWrite.
const (
	LocalWrite   = verbs.LocalWrite
	RemoteWrite  = verbs.RemoteWrite
	RemoteRead   = verbs.RemoteRead
	RemoteAtomic = verbs.RemoteAtomic
)

// ProtocolError says what the peer did that docs/wire.md forbids, in What. It ends that connection
// only: Disconnected.Err and Closed.Err. errors.Is: EPROTO.
type ProtocolError = wire.ProtocolError

// State is where an identifier stands.
type State = states.State

// MustAddr parses "host:port" with a literal address; it panics when s is not one.
func MustAddr(s string) Addr { return cmid.MustAddr(s) }

// ParseAddr parses "host:port" with a literal address.
func ParseAddr(s string) (Addr, error) { return cmid.ParseAddr(s) }

// Brief is err in few words, for people and for log lines: see cmid.Brief.
func Brief(err error) string { return cmid.Brief(err) }

// LookupAddrInfo is rdma_getaddrinfo(3) as a plain call; it may wait for a name server.
func LookupAddrInfo(ctx context.Context, node, service string, hints *AddrInfo) ([]AddrInfo, error) {
	return cmid.LookupAddrInfo(ctx, node, service, hints)
}
