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

// Loop is what the connections of one loop share: devices with their queues, and the memory for
// what is sent and received, with who waits for it. Loop goroutine.
type Loop struct {
	el     *eventloop.Loop
	log    *slog.Logger
	limits Limits
	// observed: somebody wants to know of each change of a connection's counts.
	Observed bool

	Devices    []*Device
	RecvBudget *memory.Budget // of what is received into
	Shares     shares         // of that
	// bytes of receives that have become large (resize.go), by peer address
	largeReceives fairshare.Shares[netip.Addr]
	SendBudget    *memory.Budget // of what messages are sent from at once
	HeldBudget    *memory.Budget // of what peers read messages from
	Sources       memory.Sources
	segments      segments // of large messages, to be sealed or opened
	Persons       map[limits.Person]*occupied

	MemoryBudget int // bytes for one-sided operations that may still be registered
	Kept         int // memories that somebody uses beyond their connection's end
	// something was given back for which Shutdown waits; nil: it does not
	Returned   func()
	Lookouts   map[Keepalive]*Lookout
	idle       []*Inbound
	NewInbound func() *Inbound // makes one with what it is part of
}

// Limits bound what the loop has, in bytes but for Queue.
type Limits struct {
	Receive int // of what is received
	Send    int // of what is sent
	Memory  int // for one-sided operations
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
	l.RecvBudget.Retained = l.Shares.retained
	l.segments.timer = el.NewTimer(l.segments.turn)
}

// Device is what a loop's connections over one device share: completion queues, and protection
// domains with what is received into and sent from. Loop goroutine.
type Device struct {
	l       *Loop
	Verbs   verbs.Device
	attr    verbs.DeviceAttr
	Queues  []*completions
	at      int          // the queue that is polled
	wc      [64]verbs.WC // polled; those from next on are still to be handled
	next    int
	got     int
	ready   bool               // there are more than a turn's budget: Run is queued
	due     []*Conn            // to be pumped
	Shared  *domain            // of the connections that have none of their own
	Domains map[*domain]uint64 // with their numbers
	domains uint64             // that there have been
	Recvs   []*recvPool        // by number; nil: gone
	wr      verbs.SendWR
	sgl     [1]verbs.SGE
	Conns   int // whose queue pairs the device has not given back
	areas   int
	memory  int // bytes for one-sided operations
	// it has gone: so does this, with the last connection and the last message of an owner's
	removed bool
}

// domain is a protection domain, and the memory in it that its connections receive into and send
// from: one for each device and loop, which connections share, and on a device that does not share
// the memory of its domain (verbs.DeviceAttr.SharesMemory) one for each connection that has a
// protection domain of its own. Loop goroutine.
type domain struct {
	d    *Device
	pd   verbs.PD
	recv map[int]*recvPool
	Send [maxArenaShift - minArenaShift + 1]*memory.Arena
	// sinks is what large messages are read into.
	sinks *memory.RegionCache
	own   bool // of one connection
	left  bool // which has gone
}

// completions is a completion queue with what its connections may put into it at a time. One that
// is too short loses completions and takes its queue pairs along.
type completions struct {
	cq   verbs.CQ
	Room int // entries that no connection has a claim to
}

// recvPool is the receive buffers for messages up to one size. Where the device asks for receives
// they are posted to a shared receive queue when a message finds it empty: an idle connection
// costs no buffer. Elsewhere see reserve.
type recvPool struct {
	d      *Device
	number uint32
	srq    verbs.SRQ // nil: the device does not ask
	batch  int       // receives posted at a time
	Arena  *memory.Arena
	conns  int             // that receive into it
	posted []*memory.Chunk // by index; nil: free
	free   []uint32
	aside  int           // handed out, and not posted yet (resize.go)
	copies memory.Copies // of messages that owners have
}

// Conn is an identifier's data path: its queue pair, its credits, what waits to be sent. Loop
// goroutine.
type Conn struct {
	ID     *cmid.ID
	up     Identifier
	l      *Loop
	terms  Terms
	Device *Device
	res    resources
	QP     verbs.QP
	recv   intake
	mode   Mode
	sec    *security // nil: it is not secured
	state  connState
	end    ending
	Beat   heartbeat
	person membership

	queue    sendQueue
	Arrivals *arrivals // nil: no message has had to wait
	out      *offers   // nil: no large message was sent

	sizes   sizes
	Flight  flight
	Session wire.Session // of messages; of other modes what is granted
	due     bool         // in the device's list of what to pump
	relief  relief

	traffic traffic
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

// Terms is what an identifier wants of its connection.
type Terms struct {
	Mode      Mode
	Credits   int   // messages that the peer may send before the owner has to consume some
	Messages  int   // bytes of the largest
	SendMost  int   // bytes of the largest to a peer without a hello; 0: what suits the mode
	Sends     int   // posted at a time where receives are posted beforehand; 0: by the credits
	Eager     int   // bytes that are sent at once; 0: what suits the device
	Area      *Area // of the owner's one-sided operations; nil: there are none
	Reads     bool  // this side makes Reads
	Serves    bool  // and serves them
	Keepalive Keepalive
	Stream    bool  // nothing may leave behind a message that was not sent
	Features  uint8 // how it is secured, as in a hello; 0: not
	Promised  int   // bytes that a receive holds, if a hello says so already; 0: what Hello says
	Rekey     int   // tests': after so many records this side changes its key; 0: when that is due
	// what its request says; zero: it was not the peer who has asked, or it has no hello
	Peer wire.Hello
	// makes it a secured one; nil: it is not to be
	Handshake Handshake
}

// connState is how far a connection's data path is on its way. It only goes forward.
//
//	connecting ──► open ──► draining ──► drained ──► over ──► released
//	     │           └─────────┴──────────────────────▲          ▲
//	     └──────────► aborted ───────────────────────────────────┘
//
// The goodbye (ending.go) is independent of this: it is said with or without draining, before over
// or after it. From then on nothing else is sent.
type connState uint8

const (
	// connConnecting has a queue pair. Nothing is sent; what comes waits until the owner has heard
	// of Established.
	connConnecting connState = iota
	// connOpen sends and delivers messages.
	connOpen
	// connDraining has been asked to close, takes no further messages, and waits until the peer has
	// consumed what was taken, or on a raw connection until the device has sent it.
	connDraining
	// connDrained has nothing left to wait for.
	connDrained
	// connOver sends and delivers nothing: what had waited was answered. The queue pair is still
	// there, and what the device has of its memory.
	connOver
	// connAborted is connOver of one that was never open.
	connAborted
	// connReleased has no queue pair any more, nor a claim to its device's memory and queues.
	connReleased
)

// intake is a connection's part of what its loop receives (share.go).
type intake struct {
	// nil: the device does not ask for receives, and there is nothing to share
	qp       verbs.Pauser
	bytes    int // that its owner holds, or that wait to be delivered, on every device
	messages int
	paused   bool
	listed   bool // at place at of the loop's paused ones
	at       int
	wants    int // what placed it there
	fetching int // Reads and atomic operations under way
	counted  bool
	early    int       // bytes of receives for what came before Established
	pool     *recvPool // of the receives
	resize   *resizing // nil: the receives keep their size
	granted  bool      // the peer has a key to notify with
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
	Owed    int         // the same, for those whose owners hold nothing
	paused  pausedConns // over their share, and go on when there is memory
	starved []*recvPool // for messages that may come in and find no memory
	queued  bool        // Run is
	warned  time.Time
}

// arrivals is the messages of a connection that have come and cannot be delivered yet, in order:
// those that come before Established, offers that are to be read, and what has come behind them. A
// connection has one from the first of these on. Loop goroutine.
//
// An offer is read when the loop's budget has memory for it, in parts, of which a few are under
// way at a time.
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
	since   time.Time // of what is being read nothing has come
	seen    uint32    // done when the timer was set
	timer   *eventloop.Timer
	armed   bool
	queued  bool  // step is
	silent  uint8 // looks at the timer since then that found nothing new
}

// pending is a message that has come.
type pending struct {
	m     *Inbound   // with Data when it is here
	from  wire.Offer // where it is to be read, sealed or not; Length 0: it came at once
	asked uint32     // bytes
	came  uint32

	length uint32            // of the message
	number uint64            // of it, if it is sealed
	open   *secure.LargeOpen // it is here, and is being opened
}

// pausedConns is the connections that are paused and go on when there is enough memory: a heap,
// because there may be thousands, and each message that is given back may be what one of them waits
// for. First is who wants least.
type pausedConns []*Conn

const (
	// ReadsMax is how many Reads a connection has under way at most, and readPart how much one
	// reads: what the peer sends besides waits for no more than that.
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
