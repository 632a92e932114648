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
	// Event is what an identifier tells.
	Event = cmid.Event
	// Failure is a failing answer.
	Failure = cmid.Failure
	// EventBase is the part all events share.
	EventBase = cmid.EventBase
	// Handle names an identifier in events and logs.
	Handle = cmid.Handle
)

// The commands.
type (
	// Listen is rdma_listen(3).
	Listen = cmid.Listen
	// Connect is rdma_connect(3).
	Connect = cmid.Connect
	// Accept is rdma_accept(3).
	Accept = cmid.Accept
	// Reject is rdma_reject(3). Unless the identifier is Manual it is destroyed afterwards and the
	// answer is Closed.
	Reject = cmid.Reject
	// Disconnect is rdma_disconnect(3).
	Disconnect = cmid.Disconnect
	// DestroyID is rdma_destroy_id(3).
	DestroyID = cmid.DestroyID
	// ConnParam is struct rdma_conn_param.
	ConnParam = cmid.ConnParam
)

// The events.
type (
	// Listening answers Listen and Serve (ours).
	Listening = cmid.Listening
	// ConnectRequest is a peer's request; its Sender is the new identifier.
	ConnectRequest = cmid.ConnectRequest
	// Established answers Connect, Accept and Dial.
	Established = cmid.Established
	// Disconnected is the end of a connection.
	Disconnected = cmid.Disconnected
	// DeviceRemoval is the end of a device.
	DeviceRemoval = cmid.DeviceRemoval
	// Done answers commands that have no event of their own (ours).
	Done = cmid.Done
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
	// AddrInfoError answers GetAddrInfo, and Dial and Serve when the name does not resolve.
	AddrInfoError = cmid.AddrInfoError
	// ListenFailed is the end of a listener whose socket the system has taken (ours).
	ListenFailed = cmid.ListenFailed
	// RejectReason is why a peer rejected.
	RejectReason = cmid.RejectReason
)

// Addresses.
type (
	// Addr is a sockaddr.
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
