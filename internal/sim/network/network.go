// Package network simulates machines, their links, and TCP as seen through Linux's sockets. The
// embedded device runs on it through sockets.Stack.
//
// Everything happens in calls: there are no goroutines and no timers, and time and random numbers
// come from the Config. A Network and all that belongs to it are used by one goroutine at a time.
//
// Everything that takes time is an event. Segments of one socket travel in order. A lost segment
// arrives later, as if it were sent again, and so do those after it. Acknowledgements have no
// separate segments unless the sender waits for one: an arriving segment carries the
// acknowledgement of everything that its sender has received by then.
//
// The files build on one another, from the bottom up: agenda, buffer and segment know no machine.
// network and machine have the addresses and tables, process the descriptors. sock is a socket's
// state; flow, timer and wait belong to it. route and bind find addresses and ports. listen,
// connect, stream, end and close are a socket's actions, receive and probe its reactions to
// segments. option and stack are the calls; power, fault and middlebox are the faults of a machine.
package network

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Config configures a Network. Zero values stand for the defaults in brackets.
type Config struct {
	Now  func() time.Time // the current time; required
	Rand *rand.Rand       // makes all random choices; required
	Link Link             // the default link between machines; see SetLink

	// MinBuffer and MaxBuffer are the range from which the sizes of each socket's send buffer and
	// receive buffer are drawn, in bytes [128 KiB both].
	MinBuffer, MaxBuffer int
	// Short is the probability, from 0 to 1, that a segment is shorter than possible, or that a
	// read or a write transfers less than possible [0].
	Short float64
	// LowPort and Ports are the range of ephemeral ports: the lowest, and how many [32768, 28232].
	LowPort, Ports int
	// Files is how many descriptors all processes of a machine may have open [65536].
	Files int
	// Fail is called by each call that may fail through no fault of its caller. 0 lets the call
	// continue. Errnos has the possible errnos of Linux. [never]
	Fail func(m *Machine, call string) unix.Errno
	// Accepted is called by accept(2) when it returns another machine's connection from which no
	// byte has arrived yet. [never]
	Accepted func(m *Machine)
}

// Link is how segments travel in one direction. A Link without Delay and MSS is fast and lossless.
type Link struct {
	Delay, Jitter time.Duration // each segment takes Delay and up to Jitter more
	Loss          float64       // share of lost segments, from 0 to below 1
	MSS           int           // maximum of bytes in a segment [65483, as on loopback]
	Down          bool          // nothing arrives
}

const (
	defaultBuffer = 128 << 10
	defaultMSS    = 65483
	lowestPort    = 32768
	portCount     = 28232
	defaultFiles  = 65536
)

// Network is machines and the links between them.
type Network struct {
	cfg      Config
	machines []*Machine
	owners   map[netip.Addr]*Machine // without zones
	links    map[[2]*Machine]Link
	agenda   agenda
	conns    uint64 // of the newest attempt to connect
	between  Path
	inFlight int // bytes that were sent and have not arrived
}

// New makes a network without machines.
func New(cfg Config) *Network {
	if cfg.MinBuffer <= 0 {
		cfg.MinBuffer = defaultBuffer
	}
	cfg.MaxBuffer = max(cfg.MaxBuffer, cfg.MinBuffer)
	if cfg.LowPort <= 0 || cfg.Ports <= 0 {
		cfg.LowPort, cfg.Ports = lowestPort, portCount
	}
	if cfg.Files <= 0 {
		cfg.Files = defaultFiles
	}
	return &Network{cfg: cfg, owners: make(map[netip.Addr]*Machine), links: make(map[[2]*Machine]Link)}
}

// Next returns when the earliest event is due, which may be in the past. ok is false if there is
// none.
func (n *Network) Next() (due time.Time, ok bool) { return n.agenda.next() }

// Due returns how many events are due at now.
func (n *Network) Due(now time.Time) int { return n.agenda.due(now) }

// Step runs event i of those that are due, and describes it in a line. i counts from 0, the event
// that was due first.
func (n *Network) Step(i int) string { return n.agenda.runEvent(i) }

// InFlight returns how many bytes were sent and have not arrived.
func (n *Network) InFlight() int { return n.inFlight }

// Link returns how segments travel from one machine to another, or inside one machine.
func (n *Network) Link(from, to *Machine) Link {
	l, ok := n.links[[2]*Machine{from, to}]
	if !ok && from != to {
		l = n.cfg.Link
	}
	if l.MSS <= 0 {
		l.MSS = defaultMSS
	}
	return l
}

// SetLink changes how segments travel from one machine to another. Delay and MSS apply to segments
// sent from now on.
func (n *Network) SetLink(from, to *Machine, l Link) { n.links[[2]*Machine{from, to}] = l }

// SetDown cuts the path from one machine to another, or restores it. Segments that would have
// arrived while it was cut are sent again after a while.
func (n *Network) SetDown(from, to *Machine, down bool) {
	l := n.Link(from, to)
	l.Down = down
	n.SetLink(from, to, l)
}

// chance returns true with probability p.
func (n *Network) chance(p float64) bool { return p > 0 && n.cfg.Rand.Float64() < p }

// drawLength returns a number from 1 to at most most, and usually most.
func (n *Network) drawLength(most int) int {
	if most > 1 && n.chance(n.cfg.Short) {
		return 1 + n.cfg.Rand.IntN(most)
	}
	return most
}

// drawBufferSize draws the size of a socket's buffer.
func (n *Network) drawBufferSize() int {
	return n.cfg.MinBuffer + n.cfg.Rand.IntN(n.cfg.MaxBuffer-n.cfg.MinBuffer+1)
}

// drawTravel draws how long a segment from one machine to another takes, and whether it is lost.
func (n *Network) drawTravel(from, to *Machine) (d time.Duration, lost bool) {
	l := n.Link(from, to)
	d = l.Delay
	if l.Jitter > 0 {
		d += time.Duration(n.cfg.Rand.Int64N(int64(l.Jitter) + 1))
	}
	return d, n.chance(l.Loss)
}
