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
	"github.com/rdmactor/rdmactor/internal/sched"
)

// Config configures a Runtime. Zero fields have defaults, except Device, which must be set.
type Config struct {
	// Device is the kind of device that the identifiers use: iwarp.New() needs no hardware and no
	// privilege.
	Device cmid.Driver
	// Logger is where to log, with the keys id, state, op (the command or the device event that the
	// line is about), local, peer, device. nil: the actor system's logger. Lines of level Info and
	// above go through [Runtime.Logger]: a logger that blocks on them, as on a pipe that nobody
	// reads, stops no loop. Transitions are logged at Debug, on the loop: a logger that blocks
	// there, or in Enabled, stops the loop.
	//
	// Proto.Actor's own lines (an actor that has panicked, dead letters) go directly from the loop
	// to the actor system's logger (actor.WithLoggerFactory). That one must not block.
	Logger *slog.Logger
	// Observer is notified of transitions, events and credits, and a CommandObserver of commands,
	// too. nil costs nothing.
	Observer Observer
	// Loops configures the event loops, one for each element. Each has a goroutine of its own, and
	// connections are spread over them (docs/design.md). nil: one loop, which blocks when it has
	// nothing to do. make([]eventloop.Config, 4) gives four of that kind. More loops than
	// processors gain nothing. No two loops may share a Poller, and their Clocks must show the same
	// time.
	Loops []eventloop.Config
	// Timeouts are how long phases may take.
	Timeouts Timeouts
	// Limits bound what peers and programs can have the runtime keep.
	Limits Limits
	// Flight configures the flight recorder.
	Flight FlightConfig
	// Security is that of all connections whose IDConfig does not say otherwise. nil: they are not
	// secured, and stay on the loopback interface (ErrNoSecurity).
	Security *Security
	// Keepalive applies to all connections whose IDConfig does not say otherwise.
	Keepalive Keepalive
	// Transport is how connections use the network, where their IDConfig does not say otherwise.
	Transport Transport
	// Scheduler is for this module's simulations and for actortest. Leave it nil.
	Scheduler *sched.Scheduler
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
// their defaults, unless they say otherwise.
type Limits struct {
	Connections int // identifiers of the runtime, listeners included: 100,000
	// PendingRequests are ConnectRequests that nobody has answered yet, per loop: 4,096. More are
	// rejected. A listener's are also rejected while it has more pending than there is room left
	// for all other listeners, so one listener alone may have 1,921.
	PendingRequests int
	// Handshakes are peers of secured listeners that are not authenticated yet, per runtime: 1,024.
	// One network address has no more of them than are left for all others.
	Handshakes int
	// RequestRate is how many requests one network address may make to the listeners of a loop in a
	// second: 1,000, and 4,000 at once. More are rejected. Negative: any number. Loopback addresses
	// may make any number.
	RequestRate int
	SendQueue   int // messages waiting for credits, per connection: 256
	// Mailbox is how many Sends may wait in an identifier's mailbox: 65,536. Further ones fail with
	// ErrQueueFull. Commands have room for 1,024 more.
	Mailbox int
	// ReceiveMemory is the memory for received messages, in bytes, per loop: 1 GiB. On the embedded
	// device a message that finds none waits at its sender, and connections with more than a fair
	// share are stopped first ("Isolation" in the package's documentation). Receive buffers may
	// always take a quarter of the memory, and at most half. On the kernel's devices a connection
	// whose receives do not fit in is refused when it is made. The rest is for large messages. A
	// single large message has at most half of all, one that is sent at once at most an eighth.
	ReceiveMemory int
	// SendMemory is the memory for sent messages, in bytes, per loop: 1 GiB for large messages,
	// which peers read. On the kernel's devices there is as much again for messages that are sent
	// at once. A message that finds none waits, except that each connection may always have one
	// message that is sent at once. SendMemory also bounds a single large message.
	SendMemory int
	// Memory is for one-sided operations (IDConfig.Memory), in bytes, per loop: 1 GiB.
	Memory int
}

// Keepalive says after which silence the peer of a connection with messages is sent a probe (Idle),
// and after which silence it is given up (Gone). The connection then ends with a *LostError
// (ErrPeerLost, ETIMEDOUT). Zero fields are 15 s and 45 s; in an IDConfig they are the runtime's. A
// negative Idle turns keepalive off. Gone is at least twice Idle. Both are the earliest times: up
// to a third of Idle may be added. While messages flow, keepalive costs nothing. On an idle
// connection one side sends a small message every Idle, and the other answers it.
//
// A peer does not answer while one of its actors blocks its loop, so Gone bounds how long that may
// take. On the kernel's devices an answer also waits behind a Read or Write of either side, so Gone
// bounds those too: split large ones on a slow network, or choose a longer Gone. Peers of protocol
// version 2, and raw connections, have no probes: see IDConfig.Raw.
//
// On soft-iWARP a side that has sent something and has heard nothing a quarter of a second after
// Established sends a probe then, also without keepalive (verbs.DeviceAttr.OverlooksFirst).
type Keepalive struct{ Idle, Gone time.Duration }

// Transport is what an operator sets of how connections use their network: their traffic class, and
// on InfiniBand and RoCE how long they wait for acknowledgements. Zero fields have defaults; in an
// IDConfig they are the runtime's. A listener's applies to what its connections send, whatever the
// peers have chosen for theirs. A SetOption, or the Param of a Dial, Connect or Accept, goes before
// it. IDInfo.Path shows what has come of it. docs/operating.md says how to choose.
type Transport = cmid.Transport

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
		Connections: positive(l.Connections, 100_000), PendingRequests: positive(l.PendingRequests, 4096), Handshakes: positive(l.Handshakes, 1024),
		RequestRate: cmp.Or(l.RequestRate, 1000),
		SendQueue:   positive(l.SendQueue, 256), Mailbox: positive(l.Mailbox, 65_536),
		ReceiveMemory: positive(l.ReceiveMemory, 1<<30), SendMemory: positive(l.SendMemory, 1<<30), Memory: positive(l.Memory, 1<<30),
	}
	c.Flight.Records = cmp.Or(c.Flight.Records, flightRecords)
	c.Keepalive = c.Keepalive.or(Keepalive{15 * time.Second, 45 * time.Second})
	return c
}

func positive[T ~int | ~int64](v, byDefault T) T { return cmp.Or(max(v, 0), byDefault) }

// IDConfig configures an identifier. Zero fields have defaults. A listener's configuration, without
// its Context, is also that of its connections.
type IDConfig struct {
	// Handler gives each of a listener's connections an owner of its own, which is spawned from
	// these Props on the connection's loop when the request comes. That owner gets the
	// ConnectRequest and all that follows. With a Handler, connections are spread over the loops
	// (Config.Loops), and handlers of one listener run concurrently. A handler is stopped when it
	// has got Closed; one that hands its connection over has to stop itself. The Props need no
	// OnLoop. nil: the listener's owner owns its connections.
	Handler *actor.Props
	// Route says for each of a listener's requests who is to own the connection, before anybody
	// has heard of it. The connection then lives on that owner's loop, as one that it has created
	// itself, and the owner gets the ConnectRequest and all that follows. If reject is not nil, the
	// request is rejected with it. If both are nil, the listener's owner or Handler gets the
	// request. Route is called on the listener's loop, must not block, and may read r until it
	// returns. If it panics or calls runtime.Goexit, the request is rejected. nil: none.
	Route func(r *ConnectRequest) (owner *actor.PID, reject *Reject)
	// Hint goes with the request of a secured connection, and is for the Place of the peer's
	// listener. It is neither secret nor, when it is used, authenticated. 0: there is none.
	Hint uint32
	// Place is for listeners of secured connections with several loops (Config.Loops), where Route
	// is called too late to say on which loop a connection lives. It returns an OnLoop actor, on
	// whose loop the connection then lives, or nil, if the hint says nothing to it. Anybody may
	// send any hint, so nothing else may follow from it. Place is called on the listener's loop for
	// each request with a hint, and must not block. If it panics or calls runtime.Goexit, the
	// request is rejected. nil: none.
	Place func(hint uint32) (near *actor.PID)
	// MaxMessage is how large a message the peer may send: 64 KiB. It is rounded up to whole KiB,
	// and is at most 1 GiB and half of Limits.ReceiveMemory. How large a message may be sent to the
	// peer is the peer's choice (Established.MaxMessage).
	//
	// Messages of up to 64 KiB (16 KiB on the kernel's devices) are sent at once. Larger ones are
	// offered, and the receiving side reads them (RDMA Read) when it has memory for them; 8 may be
	// offered at a time. On a kernel's device that takes a protection domain and memory of the
	// connection's own. A side to which the ConnParam allows no Reads gets no larger messages, and
	// one that serves none cannot send them.
	MaxMessage int
	// MaxSend is how large a message may be sent to a peer that has no hello to say so (Raw, or
	// foreign), in bytes: MaxMessage, or to a foreign one what is sent at once; at most 64 MiB less
	// 1 KiB. It costs nothing beforehand. So where commands have 4 KiB and answers 16 bytes, the
	// receives for the answers need 1 KiB: MaxMessage is about receives alone. A peer with a hello
	// says itself how large; then MaxSend is not used.
	MaxSend int
	// Credits are how many messages the peer may send ahead of those that the owner has consumed:
	// 32; at most 65,535.
	//
	// On the embedded device memory is taken when messages come. On the kernel's devices each
	// connection has, from its beginning, a receive for each credit and sixteen more: 51 KiB by
	// default while the peer has no messages of more than 1 KiB, and 0.8 MiB while it has, where
	// large messages cannot be offered, and when a connection begins that this side has asked for.
	// Without that memory a connection cannot be made (*ResourceError). Without memory for larger
	// receives messages are offered.
	Credits int
	// Sends are how many sends a kernel's device may have at a time, at most 128; Limits.SendQueue
	// more wait in the connection. Each takes memory from the beginning. 0: as many as are of use
	// with the credits of both sides as far as they are known, and without a hello as many as
	// Credits. On the embedded device it is always 128.
	Sends int
	// PortSpace is the port space: PortSpaceTCP. This package moves no messages for datagram
	// identifiers: their owner makes the queue pair, in a Call, before Connect or Accept.
	PortSpace cmid.PortSpace
	// QPType is the type of queue pair, where the port space leaves a choice: QPTypeUD makes an
	// identifier of PortSpaceIB one for datagrams. 0: the port space's own. An identifier is not
	// made if its port space or every device here lacks the type (Channel.CreateIDFor).
	QPType cmid.QPType
	// Domain is the protection domain that the connection shares with others of its owner, and
	// with them its memory. nil: it has its own, if it has Memory. A listener's connections are all
	// in its Domain, so each of their peers can reach what is granted to another: see Domain. A
	// Manual identifier on InfiniBand is in none.
	Domain *Domain
	// Memory is how many bytes of memory for Read and Write a connection may have (AllocMemory):
	// none. In a Domain it is how many all connections there may have when this one allocates.
	// With Memory, or a Domain, the connection's queue pair is in a protection domain of its own,
	// or of that Domain's, so that what is granted to its peer no other can reach. On the kernel's
	// devices the connection's receive buffers are there, too, and what it sends from, which other
	// connections share.
	Memory int
	// Keepalive is this connection's, or that of a listener's connections.
	Keepalive Keepalive
	// Transport is this connection's, or that of a listener's connections.
	Transport Transport
	// Security is this identifier's, or that of a listener's connections. nil: the runtime's.
	Security *Security
	// AcceptTimeout is after what time a request that nobody answers is rejected: Timeouts.Request.
	AcceptTimeout time.Duration
	// Context, when it ends, destroys the identifier; Closed has the context's cause. nil: none.
	Context context.Context
	// Raw puts nothing of ours on the wire: no hello in the private data, no header before a
	// message, no credits. It is for peers that use the verbs directly. On the kernel's devices
	// there are as many receives as Credits, each posted again when its message was consumed, and
	// room for Sends. A message that finds no receive ends the connection on iWARP. On InfiniBand
	// its sender tries again, for ever unless Transport.RNRRetryCount says less. On the embedded
	// device as many messages as Credits wait for the owner; then the connection is not read on,
	// and TCP stops the sender. A request is rejected if the connections of its loop need an eighth
	// of Limits.ReceiveMemory for one message each (2,048 of 64 KiB), unless MaxMessage is at most
	// 4 KiB.
	//
	// There are no probes either (Keepalive): only the transport notices that a peer was cut off,
	// or that its machine is gone. On the embedded device a connection ends when the peer's machine
	// acknowledges nothing for 30 s, even if no message is in flight, or when the peer reads
	// nothing for so long (iwarp.Config.UserTimeout). On InfiniBand it ends when something was sent
	// again Transport.RetryCount times; the end of a peer to which nothing is sent goes unnoticed.
	// So does, on every device, a peer that freezes while no message is in flight.
	Raw bool
	// RefuseForeign is for identifiers that connect only to peers of this package. Without it, a
	// peer that sends no hello is accepted as foreign: ConnectRequest.Foreign and
	// Established.Foreign say so, and the connection is as with Raw. With it, a listener rejects
	// such a peer before anybody gets the request, and a Connect or Dial fails (ErrForeignPeer).
	RefuseForeign bool
	// Manual leaves to the owner what the man pages oblige an application to: Establish, Disconnect
	// in answer to the peer's, DestroyID. On InfiniBand the owner also makes the queue pair; an
	// iWARP device cannot connect without one, so there the runtime makes it. When the peer has
	// broken the protocol, the owner gets Disconnected while the device still has the connection:
	// it then sends Disconnect or DestroyID.
	Manual bool

	eager int // tests': what is sent at once, in bytes; 0: the device's
	rekey int // tests': after so many messages a secured side changes its key; 0: when that is due
}

// ErrForeignPeer: the peer has sent no hello, and IDConfig.RefuseForeign is set.
var ErrForeignPeer = errors.New("the peer is foreign: it has sent no hello")

const (
	defaultMaxMessage = 64 << 10
	maxMessageMax     = 1 << 30
	kib               = 1 << 10
)

// withDefaults is c as an identifier of rt uses it.
func (c IDConfig) withDefaults(rt *Runtime) IDConfig {
	c.MaxMessage = (min(positive(c.MaxMessage, defaultMaxMessage), maxMessageMax) + kib - 1) / kib * kib
	c.MaxSend, c.Sends = max(c.MaxSend, 0), max(c.Sends, 0)
	c.Credits = min(positive(c.Credits, datapath.DefaultCredits), 0xFFFF)
	c.Keepalive = c.Keepalive.or(rt.cfg.Keepalive)
	c.Transport = c.Transport.Or(rt.cfg.Transport)
	c.Security = cmp.Or(c.Security, rt.cfg.Security)
	c.AcceptTimeout = positive(c.AcceptTimeout, rt.cfg.Timeouts.Request)
	return c
}

// kind is what the identifier is created as.
func (c *IDConfig) kind() *cmid.AddrInfo {
	return &cmid.AddrInfo{PortSpace: c.PortSpace, QPType: c.QPType}
}
