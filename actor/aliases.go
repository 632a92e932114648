package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// The messages of package cmid under the names that applications use, so that one import is enough.
type (
	// Command is a request to an identifier.
	Command = cmid.Command
	// Event is a report of an identifier.
	Event = cmid.Event
	// Failure is a failing answer: an Event and an error. Failed is the command that it answers.
	// Each failure has a struct type with Op (the operation that failed), State (when it failed),
	// Local and Peer, Err (the cause, with an errno), Remedy (advice) and History.
	Failure = cmid.Failure
	// EventBase is the part all events share: ID, the identifier, and Status, the kernel's.
	EventBase = cmid.EventBase
	// Handle names an identifier in events and logs.
	Handle = cmid.Handle
)

// The commands.
type (
	// Listen is rdma_listen(3). Backlog is how many requests may wait in the device; 0: its
	// maximum.
	Listen = cmid.Listen
	// Connect is rdma_connect(3). PrivateData goes to the peer with the request; Param sets how
	// many Reads may be in progress at a time, nil: as many as the device allows.
	Connect = cmid.Connect
	// Accept is rdma_accept(3). PrivateData goes to the peer with the answer; Param sets how many
	// Reads may be in progress at a time, nil: the numbers in the request.
	Accept = cmid.Accept
	// Reject is rdma_reject(3). PrivateData goes to the peer; VendorECE is for rdma_reject_ece(3).
	// Unless the identifier is Manual it is destroyed afterwards, and the answer is Closed.
	Reject = cmid.Reject
	// Disconnect is rdma_disconnect(3).
	Disconnect = cmid.Disconnect
	// DestroyID is rdma_destroy_id(3).
	DestroyID = cmid.DestroyID
	// ConnParam is struct rdma_conn_param. ResponderResources is how many Reads by the peer may be
	// in progress at a time, InitiatorDepth how many by this side. RetryCount and RNRRetryCount are
	// how often InfiniBand sends again.
	ConnParam = cmid.ConnParam
)

// The events.
type (
	// Listening answers Listen and Serve (ours). Local is the address, with the port that was
	// chosen, Backlog how many requests may wait in the device.
	Listening = cmid.Listening
	// ConnectRequest is a peer's request; its Sender is the new identifier. It has the Listener's
	// handle, Local and Peer, the peer's PrivateData (valid until Receive returns) and Param, and
	// whether the peer is Foreign, which is one without a hello.
	ConnectRequest = cmid.ConnectRequest
	// Established answers Connect, Accept and Dial. It has Local and Peer, the peer's PrivateData
	// and Param, MaxMessage, how many bytes a Send may have, and whether the peer is Foreign. UD
	// has the address for datagrams.
	Established = cmid.Established
	// Disconnected is the end of a connection. Err is the cause, such as a *LostError. It is nil
	// for an orderly end.
	Disconnected = cmid.Disconnected
	// DeviceRemoval is the end of a Device. Err is nil when the device was removed. Otherwise it is
	// the reason why its driver is no longer usable.
	DeviceRemoval = cmid.DeviceRemoval
	// NeighbourChanged is a hint: the next hop has another MAC address, as after a failover. The
	// identifier and its connection stay (ours).
	NeighbourChanged = cmid.NeighbourChanged
	// Done answers a Command that has no particular event (ours).
	Done = cmid.Done
	// Closed is the last event of every identifier (ours). Err is the cause. It is nil when the
	// owner asked for the end, or when both sides had finished. Delivered, Unsent and Unknown count
	// the identifier's Sends by their fate.
	Closed = cmid.Closed
)

// The failures.
type (
	// CommandFailed reports that a command was refused or failed immediately (ours).
	CommandFailed = cmid.CommandFailed
	// AddrError answers ResolveAddr.
	AddrError = cmid.AddrError
	// RouteError answers ResolveRoute.
	RouteError = cmid.RouteError
	// ConnectError answers Connect and Accept.
	ConnectError = cmid.ConnectError
	// Unreachable answers Connect and Accept.
	Unreachable = cmid.Unreachable
	// Rejected answers Connect. Reason is why, PrivateData the answer of the peer's application.
	Rejected = cmid.Rejected
	// AddrInfoError answers GetAddrInfo, and Dial and Serve when the name does not resolve.
	AddrInfoError = cmid.AddrInfoError
	// ListenFailed is the end of a listener whose socket was closed by the system (ours).
	ListenFailed = cmid.ListenFailed
	// RejectReason is why a peer rejected.
	RejectReason = cmid.RejectReason
)

// Path is how a connection's packets go through the network: IDInfo.Path.
type Path = cmid.Path

// Addresses.
type (
	// Addr is a sockaddr: an address and a port. Its zero value is none.
	Addr = cmid.Addr
)

// Access is a set of permitted uses of memory (ibv_access_flags).
type Access = verbs.Access

// Access rights. AllocMemory's owner always has LocalWrite.
const (
	LocalWrite   = verbs.LocalWrite
	RemoteWrite  = verbs.RemoteWrite
	RemoteRead   = verbs.RemoteRead
	RemoteAtomic = verbs.RemoteAtomic
)

// ProtocolError reports, in What, how the peer violated docs/wire.md. It ends that connection only:
// Disconnected.Err and Closed.Err. errors.Is: EPROTO.
type ProtocolError = wire.ProtocolError

// State is the state of an identifier in the state machine.
type State = states.State

// MustAddr parses "host:port" with a literal address; it panics when s is not one.
func MustAddr(s string) Addr { return cmid.MustAddr(s) }

// ParseAddr parses "host:port" with a literal address.
func ParseAddr(s string) (Addr, error) { return cmid.ParseAddr(s) }

// Brief returns err in few words, for people and for log lines: see cmid.Brief.
func Brief(err error) string { return cmid.Brief(err) }
