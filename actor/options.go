package actor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Option is an option of Open.
type Option func(*config)

type config struct {
	device    cmid.Driver
	log       *slog.Logger
	observer  Observer
	loops     int
	loop      eventloop.Config
	each      func(i int) eventloop.Config
	timeouts  Timeouts
	keepalive datapath.Keepalive
	limits    Limits
}

// Timeouts are how long each phase may take. Zero fields keep their defaults.
type Timeouts struct {
	Address time.Duration // ResolveAddr, and commands that have no phase of their own: 2 s
	Route   time.Duration // ResolveRoute: 2 s
	Connect time.Duration // Connect, Accept until established, Disconnect, a name's look-up: 10 s
	// a ConnectRequest that nobody answers is rejected: 8 s, so that the peer hears it before its
	// own 10 s are over
	Request time.Duration
	Close   time.Duration // Close's wait for the peer: 5 s
}

// Limits bound what peers and programs can make the runtime hold. Zero fields keep their defaults.
type Limits struct {
	Connections int // identifiers of the runtime, listeners included: 100,000
	// PendingRequests are ConnectRequests that nobody has answered yet, per loop: 4,096. More are
	// rejected, and so are those of a listener that has more than is left for all others: one by
	// itself may have 1,921.
	PendingRequests int
	SendQueue       int // messages waiting for credits, per connection: 256
	// Sends waiting in an identifier's mailbox: 65,536; further ones get ErrQueueFull. Commands
	// have room for 1,024 more
	Mailbox int
	// ReceiveMemory is for what is received, in bytes, per loop: 1 GiB. On the embedded device what
	// finds none waits at its sender, and who holds more than a fair share is stopped first: see
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
	Memory     int // bytes of memory for one-sided operations (WithMemory), per loop: 1 GiB
}

func defaultConfig() config {
	return config{
		loops:     1,
		keepalive: datapath.NewKeepalive(15*time.Second, 45*time.Second),
		timeouts:  Timeouts{2 * time.Second, 2 * time.Second, 10 * time.Second, 8 * time.Second, 5 * time.Second},
		limits:    Limits{100_000, 4096, 256, 65_536, 1 << 30, 1 << 30, 1 << 30},
	}
}

// WithDevice says which kind of device the identifiers use: iwarp.New() needs no hardware and no
// privilege.
func WithDevice(d cmid.Driver) Option { return func(c *config) { c.device = d } }

// WithLogger says where to log, with the keys id, state, op (the command, or the event of the
// device, that it comes from), local, peer, device. Transitions are logged at Debug, at once. For
// what others can cause, from Info up, see [Runtime.Logger]: a logger that blocks, as on a pipe
// that nobody reads, stops no loop with that. One that blocks at Debug does, and in Enabled.
// Default: the actor system's.
//
// Proto.Actor's own lines (an actor that has panicked, dead letters) go to the actor system's
// logger directly, and from the loop: that one must not block (actor.WithLoggerFactory).
func WithLogger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

// WithObserver has o told of transitions, events and credits.
func WithObserver(o Observer) Option { return func(c *config) { c.observer = o } }

// WithLoops says how many loops run, each with its own goroutine: 1. Connections are spread over
// them: see docs/design.md. More loops than processors gain nothing.
func WithLoops(n int) Option { return func(c *config) { c.loops = max(n, 1) } }

// WithWait says how the loops wait when there is nothing to do: eventloop.Block.
func WithWait(w eventloop.WaitMode) Option { return func(c *config) { c.loop.Wait = w } }

// WithLoop says how the loops are made, for what the other options do not say. A Poller or a Clock
// in it needs WithLoops(1).
func WithLoop(l eventloop.Config) Option { return func(c *config) { c.loop = l } }

// WithEachLoop is WithLoop, and WithWait, for loops that are not alike: each says how the i-th is
// made, from 0 on. Pollers are to be different ones, and clocks to show the same time.
func WithEachLoop(each func(i int) eventloop.Config) Option { return func(c *config) { c.each = each } }

// WithTimeouts changes how long phases may take.
func WithTimeouts(t Timeouts) Option {
	return func(c *config) {
		d := &c.timeouts
		set(&d.Address, t.Address)
		set(&d.Route, t.Route)
		set(&d.Connect, t.Connect)
		set(&d.Request, t.Request)
		set(&d.Close, t.Close)
	}
}

// WithLimits changes the limits.
func WithLimits(l Limits) Option {
	return func(c *config) {
		d := &c.limits
		set(&d.Connections, l.Connections)
		set(&d.PendingRequests, l.PendingRequests)
		set(&d.SendQueue, l.SendQueue)
		set(&d.Mailbox, l.Mailbox)
		set(&d.ReceiveMemory, l.ReceiveMemory)
		set(&d.SendMemory, l.SendMemory)
		set(&d.Memory, l.Memory)
	}
}

// set takes v unless it is zero or less.
func set[T ~int | ~int64](dst *T, v T) {
	if v > 0 {
		*dst = v
	}
}

// IDOption is an option of CreateID. A listener's options are its connections' too, WithContext
// excepted.
type IDOption func(*idOptions)

type idOptions struct {
	handler       *actor.Props
	maxMessage    int
	eager         int // bytes; 0: the device's
	credits       int
	ps            cmid.PortSpace
	qpType        cmid.QPType // 0: the port space's
	raw           bool
	refuseForeign bool
	manual        bool
	memory        int                 // bytes
	keepalive     *datapath.Keepalive // nil: the runtime's
	accept        time.Duration       // 0: the runtime's
	ctx           context.Context
	closed        func(error) // is called behind Closed, with its error
}

const (
	defaultMaxMessage = 64 << 10
	maxMessageMax     = 1 << 30
	kib               = 1 << 10
)

// WithHandler gives each of a listener's connections an owner of its own, spawned from p on the
// connection's loop when the request comes; it gets the ConnectRequest and all that follows. With
// it connections are spread over the loops (WithLoops), and handlers of one listener run at the
// same time. It is stopped after it has been told Closed; one that hands its connection over stops
// itself. p needs no OnLoop.
func WithHandler(p *actor.Props) IDOption { return func(o *idOptions) { o.handler = p } }

// WithMessages says how large a message the peer may send (64 KiB; rounded up to whole KiB, at
// most 1 GiB and half of Limits.ReceiveMemory) and how many that were not consumed yet (32; at
// most 65,535). The peer's goes for what is sent to it (Established.MaxMessage).
//
// Messages of up to 64 KiB, on the kernel's devices 16 KiB, are sent at once. Larger ones are
// offered, and the receiving side reads them (RDMA Read) when it has memory for them; 8 may be
// offered at a time. For that a connection of a kernel's device needs a protection domain and
// memory of its own, which it has if maxBytes is more than 16 KiB: else it sends no larger
// messages either. Where the ConnParam leaves no Reads to one side there are none, and both
// directions' limits follow.
//
// On the embedded device memory is taken when messages come. On the kernel's devices each
// connection has receives for all credits and fifteen more, of at most 16 KiB, from its beginning,
// or cannot be made (*ResourceError): 0.7 MiB by default. There the credits of both sides also say
// how many sends can be under way at the device; Limits.SendQueue more wait here.
func WithMessages(maxBytes, credits int) IDOption {
	return func(o *idOptions) {
		o.maxMessage = min(max((maxBytes+kib-1)/kib, 1), maxMessageMax/kib) * kib
		o.credits = min(max(credits, 1), 0xFFFF)
	}
}

// WithPortSpace says which port space: PortSpaceTCP. Datagram identifiers have no data path of
// this package's: their owner makes the queue pair, in a Call, before Connect or Accept.
func WithPortSpace(ps cmid.PortSpace) IDOption { return func(o *idOptions) { o.ps = ps } }

// WithQPType says which type of queue pair, where the port space leaves that open: QPTypeUD makes
// an identifier of PortSpaceIB one for datagrams. An identifier of a type that its port space has
// not, or no device here, is not made (Channel.CreateIDFor).
func WithQPType(t cmid.QPType) IDOption { return func(o *idOptions) { o.qpType = t } }

// kind is what the identifier is created as.
func (o *idOptions) kind() *cmid.AddrInfo {
	return &cmid.AddrInfo{PortSpace: o.ps, QPType: o.qpType}
}

// RefuseForeign is for identifiers that speak with peers of this package only. A peer without a
// hello is otherwise accepted as a foreign one: ConnectRequest.Foreign and Established.Foreign say
// so, and with it the connection is as with Raw. With this option a listener rejects it before
// anybody is told, and a Connect or Dial fails (ErrForeignPeer).
func RefuseForeign() IDOption { return func(o *idOptions) { o.refuseForeign = true } }

// ErrForeignPeer is why a connection was given up whose peer has no hello, as RefuseForeign wants
// it.
var ErrForeignPeer = errors.New("the peer is a foreign one")

// Raw puts nothing of ours on the wire: no hello in the private data, no header before a message,
// no credits. For peers that use the verbs directly. The kernel's devices have as many receives as
// WithMessages has credits, each posted again when its message was consumed, and room for as many
// sends at a time. A message that finds none ends the connection on iWARP; on InfiniBand its sender
// tries again, without end unless ConnParam.RNRRetryCount says less. The embedded device has as
// many messages wait for their owner, and stops reading what comes beyond: TCP stops the sender. A
// request is rejected when the connections of its loop need an eighth of Limits.ReceiveMemory for
// one message each (2,048 of 64 KiB), unless WithMessages says at most 4 KiB.
//
// There are no probes either (WithKeepalive): of a peer that is cut off, or whose machine is gone,
// the transport tells. On the embedded device what is not acknowledged for 30 s ends the
// connection, also when nothing is under way, and so does a peer that reads nothing for so long
// (iwarp.Config.UserTimeout). On InfiniBand that is what is sent again ConnParam.RetryCount times,
// and nobody notices the end of a peer that is not sent anything. A peer that is frozen while
// nothing is under way is noticed by nobody.
func Raw() IDOption { return func(o *idOptions) { o.raw = true } }

// Manual leaves to the owner what the man pages oblige it to: Establish, the answering Disconnect,
// DestroyID. On InfiniBand the queue pair is the owner's business too; an iWARP device cannot
// connect without one, so there it is the runtime's. An owner who is told Disconnected of a
// connection that the device still has (its peer has broken the protocol) sends Disconnect or
// DestroyID.
func Manual() IDOption { return func(o *idOptions) { o.manual = true } }

// WithMemory says how many bytes of memory for Read and Write a connection may have (AllocMemory):
// none. With it the connection's queue pair has a protection domain of its own, so that what is
// granted to its peer no other can reach. On the kernel's devices that domain has the connection's
// receive buffers, too, and what it sends from, which connections without WithMemory share.
func WithMemory(bytes int) IDOption { return func(o *idOptions) { o.memory = max(bytes, 0) } }

// WithAcceptTimeout says when a request that nobody answers is rejected.
func WithAcceptTimeout(d time.Duration) IDOption { return func(o *idOptions) { o.accept = d } }

// WithContext destroys the identifier when ctx ends; Closed tells the context's cause.
func WithContext(ctx context.Context) IDOption { return func(o *idOptions) { o.ctx = ctx } }

// WithKeepalive says when a peer of a messages connection that was not heard is sent a probe, and
// after what silence it is given up: 15 s and 45 s. The connection then ends with a *LostError
// (ErrPeerLost, ETIMEDOUT). An idle of 0 is no keepalive; gone is at least twice idle. Both are
// the earliest time, and up to a third of idle may be added. Messages that flow make it cost
// nothing; an idle connection sends and answers one small message in idle, or its peer does.
//
// A peer whose loop one of its actors holds does not answer meanwhile: gone is what it may take.
// On the kernel's devices so is a single Read or Write of the peer's, or of ours, behind which the
// answer waits: with large ones on a slow network cut them, or say more. Peers of version 2, and
// raw connections, have no probes: see Raw.
func WithKeepalive(idle, gone time.Duration) Option {
	return func(c *config) { c.keepalive = datapath.NewKeepalive(idle, gone) }
}

// Keepalive is WithKeepalive for one identifier, or for a listener's connections.
func Keepalive(idle, gone time.Duration) IDOption {
	return func(o *idOptions) {
		k := datapath.NewKeepalive(idle, gone)
		o.keepalive = &k
	}
}
