package actor

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// Config configures a Runtime. Zero fields have defaults, except Device, which must be set.
type Config struct {
	// Device is the kind of device that the identifiers use: iwarp.New() needs no hardware and no
	// privilege.
	Device cmid.Driver
	// Logger receives the log lines, with the keys id, state, op (the command or the device event
	// that the line is about), local, peer, device. nil: the actor system's logger. Lines of level
	// Info and above go through [Runtime.Logger]: a logger that blocks on them, as on a pipe
	// without a reader, stops no loop. Transitions are logged at Debug, on the loop: a logger that
	// blocks there, or in Enabled, stops the loop.
	//
	// Proto.Actor's own lines (an actor that has panicked, dead letters) go directly from the loop
	// to the actor system's logger (actor.WithLoggerFactory). That one must not block.
	Logger *slog.Logger
	// Observer is notified of transitions, events and credits, and a CommandObserver of commands,
	// too. nil costs nothing.
	Observer Observer
	// Loops configures the event loops, one for each element. Each has a goroutine, and connections
	// are spread over them (docs/design-devices.md). nil: one loop, which blocks when it has
	// nothing to do. make([]eventloop.Config, 4) gives four of that kind. More loops than
	// processors gain nothing. No two loops may share a Poller, and their Clocks must show the same
	// time.
	Loops []eventloop.Config
	// Timeouts are how long phases may take.
	Timeouts Timeouts
	// Limits bound the memory and the objects that peers and programs can occupy in the runtime.
	Limits Limits
	// Flight configures the flight recorder.
	Flight FlightConfig
	// Security applies to all connections whose IDConfig does not override it. nil: they are not
	// secured, and stay on the loopback interface (ErrNoSecurity).
	Security *Security
	// Keepalive applies to all connections whose IDConfig does not override it.
	Keepalive Keepalive
	// Transport applies to all connections whose IDConfig does not override it.
	Transport Transport
	// Scheduler is for this module's simulations and for actortest. Leave it nil.
	Scheduler *sched.Scheduler
}

// Timeouts are how long each phase may take. Fields that are not positive have their defaults.
type Timeouts struct {
	Address time.Duration // ResolveAddr, and commands without a phase: 2 s
	Route   time.Duration // ResolveRoute: 2 s
	Connect time.Duration // Connect, Accept until established, Disconnect, a name's look-up: 10 s
	// an unanswered ConnectRequest is rejected: 8 s, so that the peer is notified before its own 10
	// s are over
	Request time.Duration
	Close   time.Duration // Close's wait for the peer: 5 s
}

// Limits bound the memory and the objects that peers and programs can occupy in the runtime. Fields
// that are not positive have their defaults, unless their comments define other meanings.
type Limits struct {
	Connections int // identifiers of the runtime, listeners included: 100,000
	// PendingRequests are ConnectRequests that are not answered yet, per loop: 4,096. More are
	// rejected. A listener's are also rejected while it has more pending than there is room left
	// for all other listeners, so one listener alone may have 1,921.
	PendingRequests int
	// Handshakes are peers of secured listeners that are not authenticated yet, per runtime: 1,024.
	// One address (IPv6: a network of 64 bits) has at most as many of them as are left for all
	// others, and one network (IPv4 /24, IPv6 /48) at most three quarters. When there is no place,
	// the oldest handshake whose peer has not answered for 0.1 s gives way: one of a network that
	// has many of them, if there is one. At most as many as Handshakes may be ending because they
	// gave way: a device may be slow to destroy them.
	Handshakes int
	// RequestRate is how many requests one network address may make to the listeners of a loop in a
	// second: 1,000, and 4,000 in a burst. More are rejected. Negative: any number. Loopback
	// addresses may make any number.
	RequestRate int
	SendQueue   int // messages waiting for credits, per connection: 256
	// Mailbox is how many Sends may wait in an identifier's mailbox: 65,536. Further ones fail with
	// ErrQueueFull. Commands have room for 1,024 more.
	Mailbox int
	// ReceiveMemory is the memory for received messages, in bytes, per loop: 1 GiB. On the embedded
	// device a message for which there is no memory waits at its sender, and connections with more
	// than a fair share are stopped first ("Isolation" in the package's documentation). Receive
	// buffers may always take a quarter of the memory, and at most half. On the kernel's devices a
	// connection whose receives do not fit in is refused when it is made. The rest is for large
	// messages. A single large message has at most half of all memory, an eagerly sent one at most
	// an eighth.
	ReceiveMemory int
	// SendMemory is the memory for sent messages, in bytes, per loop: 1 GiB for large messages,
	// which peers read. On the kernel's devices there is as much again for eagerly sent messages. A
	// message for which there is no memory waits, except that each connection may always have one
	// eagerly sent message. SendMemory also bounds a single large message.
	SendMemory int
	// Memory is for one-sided operations (IDConfig.Memory), in bytes, per loop: 1 GiB.
	Memory int
}

// Keepalive sets after which silence the peer of a connection with messages is sent a probe (Idle),
// and after which silence it is given up (Gone). The connection then ends with a *LostError
// (ErrPeerLost, ETIMEDOUT). Zero fields are 15 s and 45 s; in an IDConfig they are the runtime's. A
// negative Idle turns keepalive off. Gone is at least twice Idle. Both are the earliest times: up
// to a third of Idle may be added. While messages flow, keepalive costs nothing. On an idle
// connection one side sends a small message every Idle, and the other answers it.
//
// A peer does not answer while one of its actors blocks its loop, so Gone bounds how long that may
// take. On the kernel's devices an answer also waits behind a Read or Write of either side, so Gone
// bounds those too: split large ones on a slow network, or choose a longer Gone. Raw connections
// have no probes: see IDConfig.Raw.
//
// On soft-iWARP a side that has sent something, and has received nothing for a quarter of a second
// after Established, sends a probe then, also without keepalive (verbs.DeviceAttr.OverlooksFirst).
type Keepalive struct{ Idle, Gone time.Duration }

// Transport is an operator's settings for how connections use their network: their traffic class,
// and on InfiniBand and RoCE how long they wait for acknowledgements. Zero fields have defaults; in
// an IDConfig they are the runtime's. A listener's applies to everything that its connections send,
// whatever the peers have chosen for theirs. A SetOption, or the Param of a Dial, Connect or
// Accept, overrides it. IDInfo.Path shows the result. docs/roce.md explains how to choose.
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
		Address: positiveOr(t.Address, 2*time.Second), Route: positiveOr(t.Route, 2*time.Second),
		Connect: positiveOr(t.Connect, 10*time.Second), Request: positiveOr(t.Request, 8*time.Second),
		Close: positiveOr(t.Close, 5*time.Second),
	}
	*l = Limits{
		Connections: positiveOr(l.Connections, 100_000), PendingRequests: positiveOr(l.PendingRequests, 4096), Handshakes: positiveOr(l.Handshakes, 1024),
		RequestRate: cmp.Or(l.RequestRate, 1000),
		SendQueue:   positiveOr(l.SendQueue, 256), Mailbox: positiveOr(l.Mailbox, 65_536),
		ReceiveMemory: positiveOr(l.ReceiveMemory, 1<<30), SendMemory: positiveOr(l.SendMemory, 1<<30), Memory: positiveOr(l.Memory, 1<<30),
	}
	c.Flight.Records = cmp.Or(c.Flight.Records, flightRecords)
	c.Keepalive = c.Keepalive.or(Keepalive{15 * time.Second, 45 * time.Second})
	return c
}

func positiveOr[T ~int | ~int64](v, byDefault T) T { return cmp.Or(max(v, 0), byDefault) }
