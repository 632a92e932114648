package actor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// The commands that are ours. The actor spells them out in librdmacm's. They are pointers like all
// commands, and belong to the identifier until they were answered.
type (
	// Dial connects (ours): rdma_getaddrinfo(3), rdma_resolve_addr(3), rdma_resolve_route(3),
	// rdma_connect(3), trying each address that the name has until one answers. An application
	// that rejects has answered. It wants an idle identifier. Established | Rejected | Unreachable
	// | ConnectError | AddrError | RouteError | AddrInfoError | CommandFailed. A Dial that was
	// begun and fails costs the identifier: Closed follows.
	Dial struct {
		Addr string // "host:port"; names are looked up
		// where to connect from; the zero Addr lets the routing tables choose
		Src Addr
		// for all of it, besides each phase's own (Timeouts), which end it as well; 0: theirs
		// only
		Timeout     time.Duration
		PrivateData []byte
		Param       *ConnParam // nil: the defaults
	}
	// Serve listens (ours): rdma_getaddrinfo(3) with RAI_PASSIVE, rdma_bind_addr(3),
	// rdma_listen(3). It wants an idle identifier. Listening | AddrInfoError | CommandFailed. A
	// Serve that was begun and fails costs the identifier: Closed follows.
	Serve struct {
		Addr    string // "host:port"; ":port" is all devices
		Backlog int    // 0 or less: the device's maximum
	}
	// Close ends a connection in order (ours): it refuses further sends, waits until the peer has
	// consumed what was sent before, then disconnects and destroys. On a raw connection it waits
	// until the device has sent everything. Closed, whose counts say what became of the messages;
	// its Err is not nil when Timeout ended a wait, and says which: for that, or for the peer's
	// answer to the disconnect. On an identifier that is not connected it is DestroyID. It queues
	// behind the sends that were made before it. Proto.Actor's PoisonPill is a Close without an
	// answer; Stop ends at once.
	Close struct {
		Timeout time.Duration // 0: 5 s (Timeouts.Close)
	}
	// Handover gives the identifier to another owner (ours): Done | CommandFailed. To gets
	// everything from the next event on, and its death destroys the identifier from now on. What
	// the old owner has in its mailbox, and a *Received it holds, stays its own. It does what
	// rdma_migrate_id(3) is for. The identifier stays on its loop; the next connections of a
	// listener live where To does.
	Handover struct {
		To *actor.PID
	}
	// Call calls Fn on the identifier's loop with the identifier as package cmid has it (ours):
	// Done | CommandFailed with Fn's error. It is the way to the verbs for what this package does
	// not do: datagrams, the queue pair of a Manual owner on InfiniBand; and, for an owner that
	// does not run on the loop, to its Memory. What Fn makes of id.Device() is the owner's: an
	// OnLoop owner on the same loop (CreateID puts the identifier there) may use it in Receive and
	// in the notify of its completion queue, and closes it when it is told Closed. The queue pair
	// goes with the identifier. Fn must not block, use commands that the state machine knows (send
	// those), or destroy the identifier. One that panics is answered with a PanicError and costs
	// the identifier.
	Call struct {
		Fn func(id *cmid.ID) error
	}
)

// Op is the command's row in the state machine: what Dial comes to.
func (*Dial) Op() states.Op { return states.OpConnect }

// Op is the command's row in the state machine: what Serve comes to.
func (*Serve) Op() states.Op { return states.OpListen }

// Op is the command's row in the state machine: what Close comes to.
func (*Close) Op() states.Op { return states.OpDestroyID }

// Op is OpQuery: it has no part in the state machine.
func (*Handover) Op() states.Op { return states.OpQuery }

// Op is OpQuery: it has no part in the state machine.
func (*Call) Op() states.Op { return states.OpQuery }

func (*Dial) name() string     { return "dial" }
func (*Serve) name() string    { return "serve" }
func (*Close) name() string    { return "close" }
func (*Handover) name() string { return "handover" }
func (*Call) name() string     { return "call" }
