package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// The commands that librdmacm does not have. The actor carries them out with librdmacm's. Like all
// commands they belong to the identifier until they were answered.
type (
	// Dial connects (ours): rdma_getaddrinfo(3), rdma_resolve_addr(3), rdma_resolve_route(3),
	// rdma_connect(3), trying each address of the name until one answers. A rejection by an
	// application is an answer (RejectReason.ByApplication). The addresses share Timeout
	// (Timeouts.Connect if it is not set): each but the last has an equal part of the remaining
	// time, and 2 s at least. Dials of a busy loop take turns: only Timeout and the context count
	// the wait for a turn. The identifier must be idle. Established | Rejected | Unreachable |
	// ConnectError | AddrError | RouteError | AddrInfoError | CommandFailed. A Dial that started
	// and fails costs the identifier: Closed follows.
	Dial struct {
		Addr string // "host:port"; names are looked up
		// the name of the other side for Keyring.UseFor; "": Addr
		Name string
		// the address to connect from; a name's addresses of another family are not tried. The zero
		// Addr leaves the choice to the routing tables
		Src Addr
		// the one of the name's addresses to try first, such as the one that worked last; the zero
		// Addr, or one that the name does not have: the order of the look-up
		First Addr
		// the limit for the whole command. The time-outs of the phases (Timeouts) end it as well.
		// 0: only they do
		Timeout     time.Duration
		PrivateData []byte
		Param       *ConnParam // nil: the defaults
	}
	// Serve listens (ours): rdma_getaddrinfo(3) with RAI_PASSIVE, rdma_bind_addr(3),
	// rdma_listen(3). The identifier must be idle. Listening | AddrInfoError | CommandFailed. A
	// Serve that started and fails costs the identifier: Closed follows.
	Serve struct {
		// "host:port"; ":port" is all devices. One address of a name is listened on, an IPv4
		// address if it has one. If that is loopback's, as of a host's own name on Debian, a line
		// in the log warns that only this machine can connect
		Addr    string
		Backlog int // 0 or less: the device's maximum
	}
	// Close ends a connection in order (ours): it refuses further sends, waits until the peer has
	// consumed all earlier messages, then disconnects and destroys. On a raw connection it waits
	// until the device has sent everything. It is answered with Closed, whose counts report the
	// fate of the messages. Closed.Err is not nil when Timeout has ended a wait, and names the
	// wait: for the messages, or for the peer's answer to the disconnect. On an identifier that is
	// not connected, Close is DestroyID. It queues behind earlier sends. Proto.Actor's PoisonPill
	// is a Close without an answer; Stop ends the identifier immediately.
	Close struct {
		Timeout time.Duration // 0: 5 s (Timeouts.Close)
	}
	// Handover gives the identifier to another owner (ours): Done | CommandFailed. To gets
	// everything from the next event on, and its death destroys the identifier from now on.
	// Messages in the old owner's mailbox stay there, and it keeps each *Received that it has
	// retained. Handover does the work of rdma_migrate_id(3). The identifier stays on its loop; the
	// next connections of a listener are created on To's loop.
	Handover struct {
		To *actor.PID
	}
	// Call calls Fn on the identifier's loop with the identifier of package cmid (ours): Done |
	// CommandFailed with Fn's error. It gives access to the verbs for tasks that this package does
	// not cover: datagrams, and the queue pair of a Manual owner on InfiniBand. An owner that does
	// not run on the loop reaches its Memory with it. Objects that Fn makes from id.Device() belong
	// to the owner. An OnLoop owner on the same loop (CreateID puts the identifier there) may use
	// them in Receive and in the notify function of its completion queue, and closes them when it
	// gets Closed. The queue pair is destroyed with the identifier. Fn must not block, use commands
	// that the state machine knows (send those), or destroy the identifier. When Fn panics, the
	// Call is answered with a PanicError, and the identifier is destroyed.
	Call struct {
		Fn func(id *cmid.ID) error
	}
)

// Op returns the command's row in the state machine: a Dial results in a Connect.
func (*Dial) Op() states.Op { return states.OpConnect }

// Op returns the command's row in the state machine: a Serve results in a Listen.
func (*Serve) Op() states.Op { return states.OpListen }

// Op returns the command's row in the state machine: a Close results in a DestroyID.
func (*Close) Op() states.Op { return states.OpDestroyID }

// Op returns OpQuery: a Handover has no part in the state machine.
func (*Handover) Op() states.Op { return states.OpQuery }

// Op returns OpQuery: a Call has no part in the state machine.
func (*Call) Op() states.Op { return states.OpQuery }

func (*Dial) name() string     { return "dial" }
func (*Serve) name() string    { return "serve" }
func (*Close) name() string    { return "close" }
func (*Handover) name() string { return "handover" }
func (*Call) name() string     { return "call" }
