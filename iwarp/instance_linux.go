package iwarp

import (
	"sync/atomic"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/sockets"
)

const (
	inputLen = core.SpillLen // bytes of one read
	// peekLen is how many bytes are read in addition to large payloads: the end of their segments
	// and the headers of the next one. So the next payload can be read to its destination, too.
	peekLen = 512
	// landLen is the initial capacity of instance.land: slices for the payloads of one read and for
	// the bytes between them.
	landLen = 32
)

// instance is the Driver on one loop.
type instance struct {
	drv  *Driver
	cfg  Config
	loop *eventloop.Loop
	up   cmid.Upcalls
	dev  *device

	ids     map[cmid.Handle]*driverID
	conns   int         // how many connections have sockets
	setups  connList    // connections that wait for their Request
	lingers connList    // connections without an identifier that linger
	crowded []*listener // wait until there is room for another set-up
	probes  map[int]int // by address family: a datagram socket that asks the routing table

	input  []byte        // destination of every read,
	peek   [peekLen]byte // except bytes after large payloads
	land   [][]byte      // destinations of large payloads
	pool   core.Pool
	iov    [][]byte
	sys    sockets.Stack
	random [12]byte // filled by sys

	unkept    *conn   // a message waits, and what was read behind it is still in input or peek
	deferred  bool    // Run will be called at the end of the turn
	reporting bool    // deliverReports is running
	dirty     []*conn // connections with something to write
	spare     []*conn
	notify    []*completionQueue // queues whose owners are to be notified
	low       []*sharedQueue     // queues below their limit
	serving   []*sharedQueue     // queues with receives for connections that wait
	kept      int                // memory for what waiting connections have read
	events    []event            // to be delivered, in order
	first     int                // events[first:] is not delivered yet
	// delivering is the event that is being delivered.
	delivering cmid.DriverEvent
	strangers  atomic.Uint64 // connections that ended without a Request
	closed     bool
}

// event is an event of an identifier.
type event struct {
	id *driverID
	cmid.DriverEvent
}

// queueEvent queues ev on the identifier's loop. It is delivered by the next deliverReports, after
// the completions that came before it.
func (id *driverID) queueEvent(ev cmid.DriverEvent) {
	in := id.in
	in.events = append(in.events, event{id, ev})
	in.deferRun()
}

// deferRun schedules Run for the end of the turn.
func (in *instance) deferRun() {
	if !in.deferred && !in.closed {
		in.deferred = true
		in.loop.Defer(in)
	}
}

// scheduleOutput schedules c's output for the end of the turn, so that all work requests of the
// turn are written in one system call.
func (in *instance) scheduleOutput(c *conn) {
	if !c.dirty && !c.blocked && c.isRunning() {
		c.dirty = true
		in.dirty = append(in.dirty, c)
		in.deferRun()
	}
}
