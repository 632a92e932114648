package iwarp

import (
	"sync/atomic"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp/core"
)

const (
	stagingLen = core.SpillLen // bytes of one read
	// peekLen is how much is read besides large payloads: what ends their segments and begins the
	// next, whose payload then is read to where it belongs too.
	peekLen = 512
	// landLen is room for the payloads of a read and what is between them.
	landLen = 32
)

// instance is the Driver on one loop.
type instance struct {
	drv  *Driver
	cfg  Config
	loop *eventloop.Loop
	up   cmid.Upcalls
	dev  *device

	ids     map[cmid.Handle]*ident
	conns   int         // sockets of connections
	setups  connList    // of these, waiting for their Request
	lingers connList    // of these, without an identifier
	crowded []*listener // wait for room among the set-ups
	probes  map[int]int // by address family: a datagram socket that asks the routing table

	staging []byte        // every read goes here first,
	peek    [peekLen]byte // but what ends large payloads, which are read to
	land    [][]byte      // where they belong
	pool    core.Pool
	iov     [][]byte
	sys     sysVec

	reading  *conn // its input is under way: it has the staging buffer
	deferred bool  // Run will come at the end of the turn
	draining bool
	dirty    []*conn // have something to write
	spare    []*conn
	notify   []*completionQueue // have completions to notify of
	low      []*sharedQueue     // are below their limit
	serving  []*sharedQueue     // have receives for connections that wait
	resuming []*conn            // are not paused any more
	kept     int                // bytes that connections which wait have read
	// completed counts completions, for whoever reads.
	completed int
	events    []event // to be delivered, in order
	first     int     // events[first:] is not delivered yet
	// delivering is the event that is being delivered.
	delivering cmid.DriverEvent
	strangers  atomic.Uint64 // connections that ended without a Request
	closed     bool
}

// event is what has happened to an identifier.
type event struct {
	id *ident
	cmid.DriverEvent
}

// report queues ev where the identifier lives. It is delivered at the end of what goes on now,
// behind the completions that came before it.
func (id *ident) report(ev cmid.DriverEvent) {
	in := id.in
	in.events = append(in.events, event{id, ev})
	in.later()
}

// later has Run called at the end of the turn.
func (in *instance) later() {
	if !in.deferred && !in.closed {
		in.deferred = true
		in.loop.Defer(in)
	}
}

// touch has c's output written at the end of the turn: everything that the turn posts goes out in
// one system call.
func (in *instance) touch(c *conn) {
	if !c.dirty && !c.blocked && c.ready() {
		c.dirty = true
		in.dirty = append(in.dirty, c)
		in.later()
	}
}
