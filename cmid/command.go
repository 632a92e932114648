package cmid

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/enum"
	"github.com/rdmactor/rdmactor/states"
)

// Command is a request to an identifier. The same value is the message that an application sends to
// the actor, the input of the state machine, and the argument of a Driver. Commands are pointers
// (an actor copies one that is sent by value). The sender must not change one before its answer
// arrives.
type Command interface {
	// Op is the command's row in the state machine.
	Op() states.Op
}

// The commands, one for each call of librdmacm. The comments name the answers.
type (
	// BindAddr is rdma_bind_addr(3): Bound | CommandFailed.
	BindAddr struct {
		Addr Addr // a wildcard or a local address; port 0 lets the device choose
	}
	// ResolveAddr is rdma_resolve_addr(3): AddrResolved | AddrError | CommandFailed.
	ResolveAddr struct {
		// the zero Addr is C's NULL; on an identifier that is bound already it is ignored
		Src     Addr
		Dst     Addr          //
		Timeout time.Duration // 0: 2 s
	}
	// ResolveRoute is rdma_resolve_route(3): RouteResolved | RouteError | CommandFailed.
	ResolveRoute struct {
		Timeout time.Duration // 0: 2 s
	}
	// Listen is rdma_listen(3): Listening | CommandFailed.
	Listen struct {
		Backlog int // requests that the loop has not fetched; 0 or less: the device's maximum
	}
	// Connect is rdma_connect(3): Established | Rejected | Unreachable | ConnectError |
	// CommandFailed.
	Connect struct {
		PrivateData []byte
		Param       *ConnParam // nil: the device's maximum of reads both ways
	}
	// Accept is rdma_accept(3): Established | Rejected | Unreachable | ConnectError |
	// CommandFailed.
	Accept struct {
		PrivateData []byte
		Param       *ConnParam // nil is C's NULL: the depths of the request
	}
	// Reject is rdma_reject(3): Done | CommandFailed.
	Reject struct {
		PrivateData []byte
		VendorECE   bool // rdma_reject_ece(3): reason 35 instead of 28
	}
	// Establish is rdma_establish(3): Established | CommandFailed. Only for owners that drive their
	// queue pair themselves.
	Establish struct{ _ distinct }
	// Disconnect is rdma_disconnect(3): Disconnected | CommandFailed.
	Disconnect struct{ _ distinct }
	// DestroyID is rdma_destroy_id(3): Closed. Legal in every state.
	DestroyID struct{ _ distinct }
	// SetOption is rdma_set_option(3): Done | CommandFailed.
	SetOption struct {
		Option Option
		Value  int
	}
	// Notify is rdma_notify(3): Done | CommandFailed.
	Notify struct {
		PathMigrated bool // IBV_EVENT_PATH_MIG instead of IBV_EVENT_COMM_EST
	}
	// JoinMulticast is rdma_join_multicast(3) and its _ex form, datagram identifiers only:
	// MulticastJoin | MulticastError | CommandFailed.
	JoinMulticast struct {
		Addr Addr
		// RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER: the group's datagrams do not come here
		SendOnly bool
	}
	// LeaveMulticast is rdma_leave_multicast(3): Done | CommandFailed.
	LeaveMulticast struct {
		Addr Addr
	}
	// SetIBPath is rdma_set_option(3) with RDMA_OPTION_IB_PATH, in place of ResolveRoute:
	// RouteResolved | CommandFailed.
	SetIBPath struct {
		// one or more struct ibv_path_data of PathLen bytes each, as AddrInfo.Route and
		// ID.QueryPath have them
		Paths []byte
	}
	// ResolveIBService is rdma_resolve_addrinfo(3) with RAI_SA: AddrInfoResolved | AddrInfoError |
	// CommandFailed. Kernels of 2025 and later, on native InfiniBand.
	ResolveIBService struct {
		ServiceID uint64
		Name      string // the service's name, at most 63 bytes; "": look up ServiceID
	}
	// WriteCMEvent is rdma_write_cm_event(3): Done | CommandFailed, and User follows behind the
	// queued events. Kernels of 2025 and later.
	WriteCMEvent struct {
		Arg uint64
	}
	// GetAddrInfo is rdma_getaddrinfo(3) without blocking: AddrInfoResolved | AddrInfoError. It
	// does not take part in the state machine.
	GetAddrInfo struct {
		Node, Service string
		Hints         *AddrInfo
	}
)

// PathLen is the size of struct ibv_path_data, in bytes.
const PathLen = 72

// distinct gives a command without parameters a size that is not zero. Commands are compared by
// their pointers, and pointers to values of size zero may all be equal.
type distinct byte

// Option is what SetOption sets.
type Option uint8

// The options of rdma_set_option(3).
const (
	OptionTOS        Option = iota // RDMA_OPTION_ID_TOS: 0..255
	OptionReuseAddr                // RDMA_OPTION_ID_REUSEADDR: 0 or 1
	OptionAFOnly                   // RDMA_OPTION_ID_AFONLY: 0 or 1
	OptionAckTimeout               // RDMA_OPTION_ID_ACK_TIMEOUT: 0..31
)

var optionNames = []string{"TOS", "REUSEADDR", "AFONLY", "ACK_TIMEOUT"}

// String returns the option's C constant without RDMA_OPTION_ID_.
func (o Option) String() string { return enum.At(optionNames, o, "Option(%d)") }

// MarshalText returns String's text.
func (o Option) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Check returns EINVAL for a value that the option cannot have, and ENOSYS for an option that does
// not exist. For drivers.
func (o Option) Check(value int) error {
	most := []int{OptionTOS: 255, OptionReuseAddr: 1, OptionAFOnly: 1, OptionAckTimeout: 31}
	switch {
	case int(o) >= len(most):
		return unix.ENOSYS
	case value < 0 || value > most[o]:
		return unix.EINVAL
	}
	return nil
}

func (*BindAddr) Op() states.Op         { return states.OpBindAddr }
func (*ResolveAddr) Op() states.Op      { return states.OpResolveAddr }
func (*ResolveRoute) Op() states.Op     { return states.OpResolveRoute }
func (*Listen) Op() states.Op           { return states.OpListen }
func (*Connect) Op() states.Op          { return states.OpConnect }
func (*Accept) Op() states.Op           { return states.OpAccept }
func (*Reject) Op() states.Op           { return states.OpReject }
func (*Establish) Op() states.Op        { return states.OpEstablish }
func (*Disconnect) Op() states.Op       { return states.OpDisconnect }
func (*DestroyID) Op() states.Op        { return states.OpDestroyID }
func (*JoinMulticast) Op() states.Op    { return states.OpJoinMulticast }
func (*LeaveMulticast) Op() states.Op   { return states.OpLeaveMulticast }
func (*SetIBPath) Op() states.Op        { return states.OpSetIBPath }
func (*ResolveIBService) Op() states.Op { return states.OpResolveAddrInfo }
func (*WriteCMEvent) Op() states.Op     { return states.OpWriteCMEvent }
func (*GetAddrInfo) Op() states.Op      { return states.OpQuery }

func (c *SetOption) Op() states.Op {
	switch c.Option {
	case OptionTOS:
		return states.OpSetTOS
	case OptionAFOnly:
		return states.OpSetAFOnly
	case OptionAckTimeout:
		return states.OpSetAckTimeout
	case OptionReuseAddr:
		if c.Value != 0 {
			return states.OpSetReuseAddr
		}
	}
	return states.OpClearReuseAddr
}

func (c *Notify) Op() states.Op {
	if c.PathMigrated {
		return states.OpNotifyPathMig
	}
	return states.OpNotifyCommEst
}

// answers are the events that answer a command. A command without an entry is answered when the
// device has executed it.
var answers = map[states.Op][]states.Kind{ //nolint:exhaustive // what has no event has no entry
	states.OpResolveAddr:     {states.KindAddrResolved, states.KindAddrError, states.KindDeviceRemoval},
	states.OpResolveRoute:    {states.KindRouteResolved, states.KindRouteError, states.KindDeviceRemoval},
	states.OpSetIBPath:       {states.KindRouteResolved, states.KindRouteError, states.KindDeviceRemoval},
	states.OpResolveAddrInfo: {states.KindAddrInfoResolved, states.KindAddrInfoError, states.KindDeviceRemoval},
	states.OpConnect:         connectAnswers,
	states.OpAccept:          connectAnswers,
	states.OpDisconnect:      {states.KindDisconnected, states.KindDeviceRemoval},
	states.OpJoinMulticast:   {states.KindMulticastJoin, states.KindMulticastError},
}

var connectAnswers = []states.Kind{
	states.KindEstablished, states.KindConnectResponse, states.KindRejected, states.KindUnreachable, states.KindConnectError,
	states.KindDisconnected, states.KindDeviceRemoval, states.KindAddrError,
}

func answeredByEvent(cmd Command) bool {
	_, ok := answers[cmd.Op()]
	return ok
}

// ConnParam is struct rdma_conn_param without its private data. The zero value allows no reads in
// either direction.
type ConnParam struct {
	ResponderResources uint8 // inbound reads (IRD) this side can serve; 255: the device's maximum
	InitiatorDepth     uint8 // outbound reads (ORD) this side wants; 255: the device's maximum
	FlowControl        bool
	// How often unacknowledged data is retransmitted. Without a ConnParam it is 6. More than 7
	// counts as 7, and queue pairs that a driver has made take 7 as 6. The kernel ignores it when
	// accepting: there 0 means the peer's count, and queue pairs that a driver has made take any
	// other count.
	RetryCount uint8
	// How often data for which the peer had no receive posted is retransmitted. Without a ConnParam
	// it is 7, which means forever.
	RNRRetryCount uint8
	// MinRNRTimer is how long the peer waits before it retransmits a message for which this side
	// had no receive, as InfiniBand encodes it: 10 µs for 1, and 20, 30, 40, 60, 80, 120 µs and so
	// on. It counts for queue pairs that a driver has made (ours: librdmacm has 0, which the verbs
	// take for 655 ms). 0: 12, which is 0.64 ms. More than 31 counts as 31. iWARP ignores it.
	MinRNRTimer uint8
	SRQ         bool
	QPNum       uint32 // ignored when the identifier has a queue pair
	// datagram identifiers with AF_IB addresses; those with IP addresses have 0x01234567
	// (RDMA_UDP_QKEY)
	QKey uint32
	// in a command: rdma_set_local_ece(3); in an event: rdma_get_remote_ece(3). Does not travel on
	// iWARP
	ECE ECE
}

// ECE is struct ibv_ece: a vendor's enhancements of a connection, which both ends must agree on.
// The zero ECE means none.
type ECE struct {
	VendorID uint32
	AttrMod  uint32
}
