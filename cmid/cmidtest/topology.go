package cmidtest

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// The largest backlog, and the longest message in bytes.
const (
	maxBacklog = 1024
	maxMessage = 16 << 20
)

// Fabric is a network in memory: hosts, their devices and addresses, and the faults between them.
// Any goroutine may call its methods.
type Fabric struct {
	iwarp     bool
	embedded  bool  // iWARP as package iwarp implements it
	depth     uint8 // the most reads of a queue pair, each way
	reserved  bool
	left      ledger
	scheduler *sched.Scheduler
	tap       tap

	// mu guards the fields below, and those of hosts, devices and bindings. Methods that end in
	// Locked are called with it held. The program is never called with it held.
	mu     sync.Mutex
	rng    *rand.Rand
	hosts  map[string]*Host
	order  []*Host
	opened int                    // number of times that a driver was opened
	addrs  map[netip.Addr]*device // of every host
	names  map[string][]string    // addresses by host name
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
	datagrams map[uint32]*qp // keyed by number
	// requests maps the endpoint that has sent a request to the endpoint of the child, until the
	// child is destroyed.
	requests sync.Map
}

// device is a device of a host. Each loop has its own view of it.
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

// binding is the use of a port by an identifier. The Fabric's mutex guards it.
type binding struct {
	owner     endpoint
	ip        netip.Addr
	port      port
	reuse     bool
	afOnly    bool
	listening bool
	backlog   int
	unread    int // requests that are under way, or not delivered yet
}

// endpoint is one end of a connection: an identifier on an instance. The zero endpoint is empty.
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
	ids    map[cmid.Handle]*driverID
	views  map[*device]*view
	closed bool
	salt   byte // odd; the low byte of every key

	box       inbox
	batch     []packet // taken out of box, to be handled in this turn
	spare     []packet // memory for the next batch
	late      []packet // sorted by due time
	lastDue   map[*instance]time.Time
	lateTimer *eventloop.Timer

	dirty      []*cq       // the program was not notified of their completions
	serving    []*srq      // queue pairs wait for their receives
	kept       []keptEvent // Reorder delays them
	delivering []keptEvent // being delivered

	frozen    bool     // the loop stands in box.ice
	suspended []func() // calls of the program, made when it goes on
}

// inbox has what arrives for an instance. Any goroutine may use it.
type inbox struct {
	mu        sync.Mutex
	in        []packet
	scheduled bool
	closed    bool
	ice       *ice                      // nil while the loop runs
	moved     map[cmid.Handle]*detached // identifiers that have left
}

// ice is where the loop of a frozen program stands.
type ice struct {
	thawed chan struct{}
	came   chan struct{} // has a token when something has arrived
	killed chan struct{} // has a token when the program is to be killed
	dead   bool          // it was killed; guarded by inbox.mu
}

// keptEvent is an event that Reorder delays.
type keptEvent struct {
	id *driverID
	ev cmid.DriverEvent
}

// detached is an identifier on its way from one loop to another. Peers go on sending to the
// instance that made the identifier, even after that instance is closed. detached passes on what
// arrives there.
type detached struct {
	from     *instance
	id       *driverID
	ticking  bool // its timer ran
	kept     []keptEvent
	late     []packet
	children []*detached // of requests that were not delivered

	mu   sync.Mutex
	to   *instance // nil while it is on its way
	gone bool      // destroyed on its way
	came []packet  // arrived in between
}

// String returns the host's name in the lists of Missed and Left.
func (h *Host) String() string {
	return strings.TrimSpace("the host " + h.name)
}

// countDriverIDs records that n identifiers of the host were made, or destroyed if n is negative.
func (h *Host) countDriverIDs(n int) {
	h.f.left.add(resIdentifier, h.String(), n)
}

// isRemoved reports whether there is a device that was removed.
func (d *device) isRemoved() bool {
	if d == nil {
		return false
	}
	d.host.f.mu.Lock()
	defer d.host.f.mu.Unlock()
	return d.removed
}

// removeLocked takes the device out of its host.
func (d *device) removeLocked() {
	d.removed = true
	for _, p := range d.addrs {
		delete(d.host.f.addrs, p.Addr())
	}
	d.host.devices = slices.DeleteFunc(d.host.devices, func(other *device) bool { return other == d })
}

// countObjects records that n objects of the device were made, or freed if n is negative.
func (d *device) countObjects(what resource, n int) { d.host.f.left.add(what, d.name, n) }

// now returns the loop's time. It stands still while the loop does.
func (in *instance) now() time.Time {
	if in.frozen {
		return time.Now()
	}
	return in.loop.Now()
}
