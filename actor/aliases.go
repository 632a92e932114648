package actor

import (
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// The messages of package cmid under the names that applications use, so that one import is enough.
type (
	// Command is what may be asked of an identifier.
	Command = cmid.Command
	// Event is what an identifier reports.
	Event = cmid.Event
	// Failure is a failing answer: an Event and an error. Failed is the command that it answers.
	// Each is a struct of its own, with Op (what failed), State (when), Local and Peer, Err (the
	// cause, with an errno), Remedy (what to do) and History.
	Failure = cmid.Failure
	// EventBase is the part all events share: ID, the identifier, and Status, the kernel's.
	EventBase = cmid.EventBase
	// Handle names an identifier in events and logs.
	Handle = cmid.Handle
)

// The commands.
type (
	// Listen is rdma_listen(3). Backlog is how many requests may wait in the device; 0: its most.
	Listen = cmid.Listen
	// Connect is rdma_connect(3). PrivateData goes to the peer with the request; Param says how
	// many Reads there may be at a time, nil: as many as the device allows.
	Connect = cmid.Connect
	// Accept is rdma_accept(3). PrivateData goes to the peer with the answer; Param says how many
	// Reads there may be at a time, nil: what the request has.
	Accept = cmid.Accept
	// Reject is rdma_reject(3). PrivateData goes to the peer; VendorECE is for rdma_reject_ece(3).
	// Unless the identifier is Manual it is destroyed afterwards, and the answer is Closed.
	Reject = cmid.Reject
	// Disconnect is rdma_disconnect(3).
	Disconnect = cmid.Disconnect
	// DestroyID is rdma_destroy_id(3).
	DestroyID = cmid.DestroyID
	// ConnParam is struct rdma_conn_param. ResponderResources is how many Reads of the peer's
	// there may be at a time, InitiatorDepth how many of ours. RetryCount and RNRRetryCount are
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
	// says where datagrams go.
	Established = cmid.Established
	// Disconnected is the end of a connection. Err is why, such as a *LostError; It is nil for an
	// orderly end.
	Disconnected = cmid.Disconnected
	// DeviceRemoval is the end of a Device. Err is nil when the device was removed. Otherwise Err
	// says why its driver cannot be used any more.
	DeviceRemoval = cmid.DeviceRemoval
	// NeighbourChanged is a hint: the next hop has another MAC address, as after a failover. The
	// identifier and its connection stay (ours).
	NeighbourChanged = cmid.NeighbourChanged
	// Done answers a Command that has no event of its own (ours).
	Done = cmid.Done
	// Closed is the last event of every identifier (ours). Err is why. It is nil when the owner
	// asked for it, or when both sides had finished. Delivered, Unsent and Unknown count the
	// identifier's Sends by their fate.
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
	// Rejected answers Connect. Reason is why, PrivateData what the peer's application has said.
	Rejected = cmid.Rejected
	// AddrInfoError answers GetAddrInfo, and Dial and Serve when the name does not resolve.
	AddrInfoError = cmid.AddrInfoError
	// ListenFailed is the end of a listener whose socket the system has taken (ours).
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
