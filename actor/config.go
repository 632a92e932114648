package actor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Config is how a Runtime works. Zero fields have defaults, but for Device.
type Config struct {
	// Device is the kind of device that the identifiers use: iwarp.New() needs no hardware and no
	// privilege.
	Device cmid.Driver
	// Logger is where to log, with the keys id, state, op (the command, or the event of the device,
	// that it comes from), local, peer, device. Transitions are logged at Debug, at once. For what
	// others can cause, from Info up, see [Runtime.Logger]: a logger that blocks, as on a pipe that
	// nobody reads, stops no loop with that. One that blocks at Debug does, and in Enabled. nil:
	// the actor system's.
	//
	// Proto.Actor's own lines (an actor that has panicked, dead letters) go to the actor system's
	// logger directly, and from the loop: that one must not block (actor.WithLoggerFactory).
	Logger *slog.Logger
	// Observer is notified of transitions, events and credits. nil: nobody, which costs nothing.
	Observer Observer
	// Loops are the event loops, each with its own goroutine: one for each element, made as that
	// says. nil: one that blocks when it has nothing to do. make([]eventloop.Config, 4) are four
	// alike. Connections are spread over them: see docs/design.md. More loops than processors gain
	// nothing. Each Poller has to be another one, and Clocks have to show the same time.
	Loops []eventloop.Config
	// Timeouts are how long phases may take.
	Timeouts Timeouts
	// Limits bound what peers and programs can have the runtime keep.
	Limits Limits
	// Keepalive is for all connections whose IDConfig does not say otherwise.
	Keepalive Keepalive
}

// Timeouts are how long each phase may take. Fields that are not positive have their defaults.
type Timeouts struct {
	Address time.Duration // ResolveAddr, and commands that have no phase of their own: 2 s
	Route   time.Duration // ResolveRoute: 2 s
	Connect time.Duration // Connect, Accept until established, Disconnect, a name's look-up: 10 s
	// a ConnectRequest that nobody answers is rejected: 8 s, so that the peer hears it before its
	// own 10 s are over
	Request time.Duration
	Close   time.Duration // Close's wait for the peer: 5 s
}

// Limits bound what peers and programs can have the runtime keep. Fields that are not positive have
// their defaults.
type Limits struct {
	Connections int // identifiers of the runtime, listeners included: 100,000
	// PendingRequests are ConnectRequests that nobody has answered yet, per loop: 4,096. More are
	// rejected, and so are those of a listener that has more than is left for all others: one by
	// itself may have 1,921.
	PendingRequests int
	SendQueue       int // messages waiting for credits, per connection: 256
	// Mailbox is how many Sends may wait in an identifier's mailbox: 65,536. Further ones get
	// ErrQueueFull. Commands have room for 1,024 more.
	Mailbox int
	// ReceiveMemory is for what is received, in bytes, per loop: 1 GiB. On the embedded device what
	// finds none waits at its sender, and who has more than a fair share is stopped first: see
	// the package's Isolation. Receive buffers can have a quarter of it at any time and half at
	// most; on the kernel's devices connections that need more from their beginning are refused.
	// The rest is for large messages, of which half bounds a single one. What is sent at once is at
	// most an eighth.
	ReceiveMemory int
	// SendMemory is for what is sent, in bytes, per loop: 1 GiB of large messages that peers may
	// read, and on the kernel's devices as much again to send from at once. What finds none waits;
	// of what goes at once each connection has one message in any case. It bounds a single large
	// message too.
	SendMemory int
	// Memory is for one-sided operations (IDConfig.Memory), in bytes, per loop: 1 GiB.
	Memory int
}

// Keepalive says when a peer of a messages connection that was not heard is sent a probe (Idle),
// and after what silence it is given up (Gone). The connection then ends with a *LostError
// (ErrPeerLost, ETIMEDOUT). Zero fields are 15 s and 45 s, in an IDConfig the runtime's. An Idle
// below zero is no keepalive. Gone is at least twice Idle. Both are the earliest time, and up to a
// third of Idle may be added. Messages that flow make it cost nothing; an idle connection sends
// and answers one small message in Idle, or its peer does.
//
// A peer whose loop is blocked by one of its actors does not answer meanwhile: Gone is what that
// may take. On the kernel's devices so is a single Read or Write of the peer's, or of ours, behind
// which the answer waits: with large ones on a slow network cut them, or say more. Peers of
// version 2, and raw connections, have no probes: see IDConfig.Raw.
type Keepalive struct{ Idle, Gone time.Duration }

func (k Keepalive) or(d Keepalive) Keepalive {
	return Keepalive{cmp.Or(k.Idle, d.Idle), cmp.Or(k.Gone, d.Gone)}
}

func (c Config) withDefaults() Config {
	if len(c.Loops) == 0 {
		c.Loops = make([]eventloop.Config, 1)
	}
	t, l := &c.Timeouts, &c.Limits
	*t = Timeouts{
		Address: positive(t.Address, 2*time.Second), Route: positive(t.Route, 2*time.Second),
		Connect: positive(t.Connect, 10*time.Second), Request: positive(t.Request, 8*time.Second),
		Close: positive(t.Close, 5*time.Second),
	}
	*l = Limits{
		Connections: positive(l.Connections, 100_000), PendingRequests: positive(l.PendingRequests, 4096),
		SendQueue: positive(l.SendQueue, 256), Mailbox: positive(l.Mailbox, 65_536),
		ReceiveMemory: positive(l.ReceiveMemory, 1<<30), SendMemory: positive(l.SendMemory, 1<<30), Memory: positive(l.Memory, 1<<30),
	}
	c.Keepalive = c.Keepalive.or(Keepalive{15 * time.Second, 45 * time.Second})
	return c
}

func positive[T ~int | ~int64](v, byDefault T) T { return cmp.Or(max(v, 0), byDefault) }

// IDConfig is how an identifier works. Zero fields have defaults. A listener's is its connections'
// too, Context excepted.
type IDConfig struct {
	// Handler gives each of a listener's connections an owner of its own, spawned from it on the
	// connection's loop when the request comes. The owner gets the ConnectRequest and all that
	// follows. With it connections are spread over the loops (Config.Loops), and handlers of one
	// listener run at the same time. It is stopped when it has got Closed; one that hands its
	// connection over stops itself. It needs no OnLoop. nil: the listener's owner is theirs.
	Handler *actor.Props
	// MaxMessage is how large a message the peer may send: 64 KiB. It is rounded up to whole KiB,
	// and at most 1 GiB and half of Limits.ReceiveMemory. The peer's goes for what is sent to it
	// (Established.MaxMessage).
	//
	// Messages of up to 64 KiB, on the kernel's devices 16 KiB, are sent at once. Larger ones are
	// offered, and the receiving side reads them (RDMA Read) when it has memory for them; 8 may be
	// offered at a time. For that a connection of a kernel's device needs a protection domain and
	// memory of its own, which it has if MaxMessage is more than 16 KiB: else it sends no larger
	// messages either. Where the ConnParam leaves no Reads to one side there are none, and both
	// directions' limits follow.
	MaxMessage int
	// Credits are how many messages the peer may send that were not consumed yet: 32; at most
	// 65,535.
	//
	// On the embedded device memory is taken when messages come. On the kernel's devices each
	// connection has receives for all credits and fifteen more, of at most 16 KiB, from its
	// beginning, or cannot be made (*ResourceError): 0.7 MiB by default. There the credits of both
	// sides also say how many sends can be under way at the device; Limits.SendQueue more wait
	// here.
	Credits int
	// PortSpace is the port space: PortSpaceTCP. Datagram identifiers have no data path of this
	// package's: their owner makes the queue pair, in a Call, before Connect or Accept.
	PortSpace cmid.PortSpace
	// QPType is the type of queue pair, where the port space leaves that open: QPTypeUD makes an
	// identifier of PortSpaceIB one for datagrams. An identifier of a type that its port space has
	// not, or no device here, is not made (Channel.CreateIDFor). 0: the port space's.
	QPType cmid.QPType
	// Memory is how many bytes of memory for Read and Write a connection may have (AllocMemory):
	// none. With it the connection's queue pair has a protection domain of its own, so that what is
	// granted to its peer no other can reach. On the kernel's devices that domain has the
	// connection's receive buffers, too, and what it sends from, which connections without Memory
	// share.
	Memory int
	// Keepalive is this connection's, or that of a listener's connections.
	Keepalive Keepalive
	// AcceptTimeout is when a request that nobody answers is rejected: Timeouts.Request.
	AcceptTimeout time.Duration
	// Context destroys the identifier when it ends; Closed has the context's cause. nil: nothing
	// does.
	Context context.Context
	// Raw puts nothing of ours on the wire: no hello in the private data, no header before a
	// message, no credits. It is for peers that use the verbs directly. The kernel's devices have
	// as many receives as there are Credits, each posted again when its message was consumed, and
	// room for as many sends at a time. A message that finds none ends the connection on iWARP; on
	// InfiniBand its sender tries again, without end unless ConnParam.RNRRetryCount says less. The
	// embedded device has as many messages wait for their owner, and stops reading what comes
	// beyond: TCP stops the sender. A request is rejected when the connections of its loop need an
	// eighth of Limits.ReceiveMemory for one message each (2,048 of 64 KiB), unless MaxMessage is
	// at most 4 KiB.
	//
	// There are no probes either (Keepalive): that a peer is cut off, or its machine gone, the
	// transport notices. On the embedded device what is not acknowledged for 30 s ends the
	// connection, also when nothing is under way, and so does a peer that reads nothing for so long
	// (iwarp.Config.UserTimeout). On InfiniBand that is what is sent again ConnParam.RetryCount
	// times, and nobody notices the end of a peer that is not sent anything. A peer that is frozen
	// while nothing is under way is noticed by nobody.
	Raw bool
	// RefuseForeign is for identifiers that speak with peers of this package only. A peer without a
	// hello is otherwise accepted as a foreign one: ConnectRequest.Foreign and Established.Foreign
	// say so, and with it the connection is as with Raw. With RefuseForeign a listener rejects it
	// before anybody gets its request, and a Connect or Dial fails (ErrForeignPeer).
	RefuseForeign bool
	// Manual leaves to the owner what the man pages oblige it to: Establish, the answering
	// Disconnect, DestroyID. On InfiniBand the queue pair is the owner's business too; an iWARP
	// device cannot connect without one, so there it is the runtime's. An owner that gets
	// Disconnected of a connection that the device still has (its peer has broken the protocol)
	// sends Disconnect or DestroyID.
	Manual bool

	eager int // tests': what is sent at once, in bytes; 0: the device's
}

// ErrForeignPeer is why a connection was given up whose peer has no hello, as
// IDConfig.RefuseForeign wants it.
var ErrForeignPeer = errors.New("the peer is foreign: it has sent no hello")

const (
	defaultMaxMessage = 64 << 10
	maxMessageMax     = 1 << 30
	kib               = 1 << 10
)

// withDefaults is c for an identifier of rt.
func (c IDConfig) withDefaults(rt *Runtime) IDConfig {
	c.MaxMessage = (min(positive(c.MaxMessage, defaultMaxMessage), maxMessageMax) + kib - 1) / kib * kib
	c.Credits = min(positive(c.Credits, datapath.DefaultCredits), 0xFFFF)
	c.Keepalive = c.Keepalive.or(rt.cfg.Keepalive)
	c.AcceptTimeout = positive(c.AcceptTimeout, rt.cfg.Timeouts.Request)
	return c
}

// kind is what the identifier is created as.
func (c *IDConfig) kind() *cmid.AddrInfo {
	return &cmid.AddrInfo{PortSpace: c.PortSpace, QPType: c.QPType}
}
