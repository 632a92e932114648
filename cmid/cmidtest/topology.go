package cmidtest

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Largest backlog, and longest message.
const (
	maxBacklog = 1024
	maxMessage = 16 << 20
)

// Fabric is a network in memory: hosts, their devices and addresses, and what goes wrong between
// them. All methods may be called by any goroutine.
type Fabric struct {
	iwarp    bool
	embedded bool // iwarp, as package iwarp plays it
	reserved bool
	left     ledger

	// mu guards all below, in hosts, devices and bindings too. Nothing is called while it is held.
	mu     sync.Mutex
	rng    *rand.Rand
	hosts  map[string]*Host
	order  []*Host
	opened int                    // drivers, all in all
	addrs  map[netip.Addr]*device // of every host
	faults faults
	// members are the queue pairs that are attached to a group.
	members map[netip.Addr][]member
}

// Host is a machine: its devices, its addresses and its port numbers. Several loops may open its
// Driver, as several programs or several loops of one.
type Host struct {
	f         *Fabric
	name      string
	devices   []*device
	plain     []netip.Prefix // addresses of interfaces without an RDMA device
	ports     map[port][]*binding
	instances []*instance
	nextQPN   uint32
	datagrams map[uint32]*qp // by number
	// requests has the child of whoever asked, endpoint to endpoint, until the child is destroyed.
	requests sync.Map
}

// device is a device of a host. What a loop sees of it is a view.
type device struct {
	host    *Host
	name    string
	addrs   []netip.Prefix
	removed bool
}

// member is a queue pair that is attached to a group, and the address at which its host is reached.
type member struct {
	q  *qp
	ip netip.Addr
}

// port is a number in a port space.
type port struct {
	ps  cmid.PortSpace
	num uint16
}

// binding is an identifier's hold of a port. Guarded by the Fabric's lock.
type binding struct {
	id        *ident // its pointer and what never changes in it; the rest belongs to its loop
	ip        netip.Addr
	port      port
	reuse     bool
	afOnly    bool
	listening bool
	backlog   int
	unread    int // requests under way or not yet told
}

// endpoint is one end of a connection: an identifier on an instance. The zero endpoint is nobody.
type endpoint struct {
	in *instance
	h  cmid.Handle
}

// instance is a host's devices on one loop.
type instance struct {
	f      *Fabric
	host   *Host
	loop   *eventloop.Loop
	up     cmid.Upcalls
	ids    map[cmid.Handle]*ident
	views  map[*device]*view
	closed bool
	salt   byte // odd; the low byte of every key

	box       inbox
	batch     []packet // taken out of box, to be handled in this turn
	spare     []packet
	late      []latePacket // by due time
	lastDue   map[*instance]time.Time
	lateTimer *eventloop.Timer

	dirty   []*cq       // have completions nobody was told of
	held    []heldEvent // Reorder keeps them back
	telling []heldEvent // no longer

	frozen bool     // the loop stands in box.ice
	untold []func() // what the program is told when it goes on
}

// inbox is what arrives for an instance, from any goroutine.
type inbox struct {
	mu        sync.Mutex
	in        []packet
	scheduled bool
	closed    bool
	ice       *ice                      // that the loop stands in; nil: it runs
	moved     map[cmid.Handle]*detached // where what comes for an identifier is passed on to
}

// ice is what a loop stands in.
type ice struct {
	thawed chan struct{}
	came   chan struct{} // holds a token when something has arrived
	killed chan struct{} // holds a token when the program is to be
	dead   bool          // it was; under inbox.mu
}

type latePacket struct {
	packet
	due time.Time
}

type heldEvent struct {
	id *ident
	ev cmid.DriverEvent
}

// detached is an identifier on its way from one loop to another, and afterwards the way that what
// comes for it takes: peers go on sending to the instance that made it, which passes on what
// comes, also once it is closed.
type detached struct {
	from     *instance
	id       *ident
	ticking  bool // its timer ran
	held     []heldEvent
	late     []latePacket
	children []*detached // of requests that nobody was told of

	mu   sync.Mutex
	to   *instance // nil: on its way
	gone bool      // destroyed on its way
	came []packet  // meanwhile
}

// String names the host in reports.
func (h *Host) String() string {
	if h.name == "" {
		return "the host"
	}
	return "the host " + h.name
}

// count notes that an identifier of the host was made or destroyed.
func (h *Host) count(n int) {
	h.f.left.add(resIdentifier, h.String(), n)
}

// isRemoved reports whether there was a device, and is none any more.
func (d *device) isRemoved() bool {
	if d == nil {
		return false
	}
	d.host.f.mu.Lock()
	defer d.host.f.mu.Unlock()
	return d.removed
}

// remove takes the device out of its host. f.mu is held.
func (d *device) remove() {
	d.removed = true
	for _, p := range d.addrs {
		delete(d.host.f.addrs, p.Addr())
	}
	d.host.devices = slices.DeleteFunc(d.host.devices, func(other *device) bool { return other == d })
}

// count notes that something of the device was made or given back.
func (d *device) count(what resource, n int) { d.host.f.left.add(what, d.name, n) }

// now is the loop's time, which stands still while the loop does.
func (in *instance) now() time.Time {
	if in.frozen {
		return time.Now()
	}
	return in.loop.Now()
}
