package datapath

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/limits"
	"github.com/rdmactor/rdmactor/actor/internal/memory"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/fairshare"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// Loop is shared by the connections of one loop: devices with their queues, and the memory for sent
// and received messages, with the connections that wait for some. Loop goroutine.
type Loop struct {
	el     *eventloop.Loop
	log    *slog.Logger
	limits Limits
	// Observed: each change of a connection's counts is reported.
	Observed bool

	Devices    []*Device
	RecvBudget *memory.Budget // memory to receive into
	Shares     shares         // of that
	// bytes of receives that have become large (resize.go), by peer address
	largeReceives fairshare.Shares[netip.Addr]
	SendBudget    *memory.Budget // memory that messages are sent from directly
	HeldBudget    *memory.Budget // memory that peers read messages from
	Sources       memory.Sources
	segments      segments // of large messages, to be sealed or opened
	gathering     gathering
	Persons       map[limits.Person]*occupied

	MemoryBudget int // bytes for one-sided operations that may still be registered
	Kept         int // memories in use beyond their connection's end
	// memory was returned for which Shutdown waits; nil: it does not wait
	Returned   func()
	Lookouts   map[Keepalive]*Lookout
	idle       []*Inbound
	NewInbound func() *Inbound // makes one with the value that contains it
}

// Limits bound the resources of a loop, in bytes but for Queue.
type Limits struct {
	Receive int // received messages
	Send    int // sent messages
	Memory  int // memory for one-sided operations
	Queue   int // messages that wait, per connection
}

// Init makes it ready for connections.
func (l *Loop) Init(el *eventloop.Loop, log *slog.Logger, most Limits) {
	l.el, l.log, l.limits = el, log, most
	l.MemoryBudget, l.Lookouts, l.Persons = most.Memory, make(map[Keepalive]*Lookout), make(map[limits.Person]*occupied)
	l.RecvBudget = memory.NewBudget(l.el, most.Receive, most.Receive/4, most.Receive/2)
	l.SendBudget = memory.NewBudget(l.el, most.Send, 0, most.Send)
	l.HeldBudget = memory.NewBudget(l.el, most.Send, 0, 0)
	l.Sources = memory.NewSources(l.el, l.RecvBudget)
	l.Shares = shares{l: l, limit: l.RecvBudget.Most()}
	l.RecvBudget.Retained = l.Shares.heldBytes
	l.segments.timer = el.NewTimer(l.segments.runJobs)
	l.gathering.l = l
}

// Device is shared by a loop's connections over one device: completion queues, and protection
// domains with memory to receive into and to send from. Loop goroutine.
type Device struct {
	l          *Loop
	Verbs      verbs.Device
	attr       verbs.DeviceAttr
	Queues     []*completions
	at         int          // the queue that is polled
	wc         [64]verbs.WC // polled; those from next on are still to be handled
	next       int
	got        int
	ready      bool // there are more than a turn's budget: Run is queued
	unbundling unbundling
	bundled    []byte             // memory for bundles that the device copies, or that are sealed
	due        []*Conn            // to be pumped
	Shared     *domain            // of the connections without a private one
	Domains    map[*domain]uint64 // value: its number
	domains    uint64             // number of the last one
	Recvs      []*recvPool        // index: number; nil: gone
	wr         verbs.SendWR
	sgl        [1]verbs.SGE
	Conns      int // connections whose queue pairs the device still has
	areas      int
	memory     int // bytes for one-sided operations
	// it has gone: so does this, with the last connection and the last message of an owner's
	removed bool
}

// domain is a protection domain, and the memory in it that its connections receive into and send
// from: one for each device and loop, which connections share, and on a device that does not share
// the memory of its domain (verbs.DeviceAttr.SharesMemory) one for each connection that has a
// private protection domain. Loop goroutine.
type domain struct {
	d    *Device
	pd   verbs.PD
	recv map[int]*recvPool
	Send [maxArenaShift - minArenaShift + 1]*memory.Arena
	// sinks is what large messages are read into.
	sinks *memory.RegionCache
	own   bool // of one connection
	left  bool // the connection has gone
}

// completions is a completion queue with what its connections may put into it at a time. One that
// is too short loses completions and takes its queue pairs along.
type completions struct {
	cq   verbs.CQ
	Room int // entries that no connection has a claim to
}

// recvPool is the receive buffers for messages up to one size. Where the device asks for receives
// they are posted to a shared receive queue when a message finds it empty: an idle connection
// costs no buffer. Elsewhere see postReceives.
type recvPool struct {
	d      *Device
	number uint32
	srq    verbs.SRQ // nil: the device does not ask
	batch  int       // receives posted at a time
	Arena  *memory.Arena
	conns  int             // connections that receive into it
	posted []*memory.Chunk // nil: the index is free
	free   []uint32
	aside  int           // handed out, and not posted yet (resize.go)
	copies memory.Copies // of messages that owners have
}

// Conn is an identifier's data path: its queue pair, its credits, and what it sends and receives.
// doc.go lists its parts. Loop goroutine.
type Conn struct {
	ID         *cmid.ID
	identifier Identifier
	l          *Loop
	terms      Terms // its Mode becomes ModeForeign if the peer sends no hello
	Device     *Device
	res        resources
	QP         verbs.QP

	Out     sending
	In      intake
	Session wire.Session // credits; in other modes only the granted ones
	Sec     *security    // nil: it is not secured
	Beat    heartbeat
	end     ending
	state   connState
	traffic traffic
}

// sending is the half of a connection that sends.
type sending struct {
	c      *Conn
	queue  sendQueue
	Flight flight
	sizes  sizes
	offers *offers // nil: no large message was sent
}

// Mode is how messages travel.
type Mode uint8

const (
	ModeMessages Mode = iota // hello, headers, credits
	ModeRaw                  // because the owner wants it
	ModeForeign              // because the peer has no hello
)

func (m Mode) String() string {
	switch m {
	case ModeRaw:
		return "raw"
	case ModeForeign:
		return "raw (foreign peer)"
	}
	return "messages"
}

// Terms are an identifier's wishes for its connection.
type Terms struct {
	Credits   int // messages that the peer may send before the owner has to consume some
	Messages  int // bytes of the largest
	SendMost  int // bytes of the largest to a peer without a hello; 0: what suits the mode
	Sends     int // posted at a time where receives are posted beforehand; 0: by the credits
	Eager     int // bytes that are sent directly; 0: the device's default
	Keepalive Keepalive
	Promised  int // bytes that a receive holds, by an earlier hello; 0: Hello's choice
	Rekey     int // tests': after so many records this side changes its key; 0: when that is due
	Mode      Mode
	Reads     bool  // this side makes Reads
	Serves    bool  // and serves them
	Stream    bool  // nothing may leave behind a message that was not sent
	Features  uint8 // how it is secured, as in a hello; 0: not
	// hello of the peer's request; zero: the peer has not asked, or has no hello
	Peer wire.Hello
}

// connState is how far a connection's data path is on its way. It only goes forward.
//
//	connecting ──► open ──► draining ──► drained ──► over ──► released
//	     │           └─────────┴──────────────────────▲          ▲
//	     └──────────► aborted ───────────────────────────────────┘
//
// The goodbye (ending.go) is independent of this: it is sent with or without draining, before over
// or after it. From then on nothing else is sent.
type connState uint8

const (
	// connConnecting has a queue pair. It sends nothing; messages wait until the owner was notified
	// of Established.
	connConnecting connState = iota
	// connOpen sends and delivers messages.
	connOpen
	// connDraining has been asked to close, takes no further messages, and waits until the peer has
	// consumed those it has, or on a raw connection until the device has sent them.
	connDraining
	// connDrained has nothing left to wait for.
	connDrained
	// connOver sends and delivers nothing: waiting messages were answered. The queue pair still
	// exists, and the device may have some of its memory.
	connOver
	// connAborted is connOver of one that was never open.
	connAborted
	// connReleased has no queue pair, nor a claim to its device's memory and queues.
	connReleased
)

// intake is the half of a connection that receives: its part of what its loop receives (share.go),
// and what waits for the owner.
type intake struct {
	c        *Conn
	Arrivals *arrivals // nil: no message has had to wait
	person   membership
	relief   relief
	// nil: the device does not ask for receives, and there is nothing to share
	qp       verbs.Pauser
	bytes    int // held by its owner, or waiting for delivery, on every device
	messages int
	at       int       // its place among the loop's paused ones, if it is listed
	wants    int       // what placed it there
	early    int       // bytes of receives for messages before Established
	pool     *recvPool // of the receives
	resize   *resizing // nil: the receives keep their size
	fetching int32     // Reads and atomic operations under way
	paused   bool
	listed   bool
	counted  bool
	granted  bool // the peer has a key to notify with
}

// shares is a loop's account of what its connections receive (share.go). Loop goroutine. It is no
// fairshare.Shares: each message counts, in the connection itself, and what wants memory is ordered
// by how much has to be free for it.
type shares struct {
	l       *Loop
	limit   int         // bytes: what arenas may have (budget)
	large   int         // of large messages, which are not shared out here
	Held    int         // of others that owners hold, or that wait to be delivered
	Floor   int         // of a receive for each connection
	Owed    int         // as Floor, for connections whose owners hold nothing
	paused  pausedConns // over their share, and go on when there is memory
	starved []*recvPool // pools with messages that may find no memory
	queued  bool        // Run is
	warned  time.Time
}

// arrivals contains the incoming messages of a connection that cannot be delivered yet, in order:
// those before Established, offers that are to be read, and all messages behind them. A connection
// has one from the first of these on. Loop goroutine.
//
// An offer is read when the loop's budget has memory for it, in parts, of which a few are under way
// at a time.
type arrivals struct {
	c       *Conn
	from    netip.Addr // the peer's Addr.Source
	Waiting ring.Ring[pending]
	next    int // of those: the oldest that is not asked for completely
	held    int // bytes of memory for offers: being read into, read, the owner's
	wait    bool
	ended   bool // the queue pair has ended: no Reads are begun
	reads   [ReadsMax]OneSided
	Begun   uint32 // Reads
	Done    uint32
	filling int       // offers that memory was taken for, and are not here
	since   time.Time // start of the wait for the next bytes
	seen    uint32    // done when the timer was set
	timer   *eventloop.Timer
	armed   bool
	queued  bool  // step is
	silent  uint8 // looks at the timer since then that found nothing new
}

// pending is an incoming message.
type pending struct {
	m     *Inbound   // its Data is set when it is here
	from  wire.Offer // where it is to be read, sealed or not; Length 0: it was sent directly
	asked uint32     // bytes
	came  uint32

	length uint32            // of the message
	number uint64            // of it, if it is sealed
	open   *secure.LargeOpen // it is here, and is being opened
}

// pausedConns contains the connections that are paused and go on when there is enough memory: a
// heap, because there may be thousands, and each returned message may be enough for one of them.
// The one that wants least is first.
type pausedConns []*Conn

const (
	// ReadsMax is how many Reads a connection has under way at most, and readPart how much one
	// reads: other messages of the peer wait for at most that.
	ReadsMax = 4
	ReadPart = 1 << 20
	// ReadPatience is how long a peer may take for a Read that it has offered.
	ReadPatience = 30 * time.Second
	// readLooks is how often one looks for an answer in that time.
	readLooks = 3
)

const (
	minArenaShift = 8  // 256 bytes
	maxArenaShift = 27 // 128 MiB
)
