package differential

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	rdma "github.com/rdmactor/rdmactor/verbs"
)

// Rig is a driver that is set up for one program, and its addresses. All identifiers are on one
// host.
type Rig struct {
	Driver cmid.Driver
	// Clock is the driver's time when it is virtual.
	Clock *eventlooptest.Clock
	// Address is an address of a device. Second is another one of that device, Plain one of an
	// interface without a device, and Foreign one of another host. NoARP can be routed to, and
	// never answers when its address is resolved. NoRoute is an IPv6 address without a route. The
	// zero Addr: there is none.
	Address, Second, Plain, Foreign, NoARP, NoRoute netip.Addr
	// Ports are two that are free.
	Ports [2]uint16
	// Patience is how long to wait for what the other driver has shown. Quiet is how long nothing
	// must happen until nothing will.
	Patience, Quiet time.Duration
}

// host is an address by its name in programs.
type host struct {
	name string
	ip   netip.Addr
}

func (r *Rig) hosts() []host {
	return []host{
		{"dev", r.Address},
		{"second", r.Second},
		{"plain", r.Plain},
		{"foreign", r.Foreign},
		{"noarp", r.NoARP},
		{"any", netip.IPv4Unspecified()},
		{"any6", netip.IPv6Unspecified()},
		{"lo", netip.AddrFrom4([4]byte{127, 0, 0, 1})},
		{"v6", r.NoRoute},
	}
}

// host is the address of a name; invalid when the rig has none.
func (r *Rig) host(name string) netip.Addr {
	for _, h := range r.hosts() {
		if h.name == name {
			return h.ip
		}
	}
	panic(fmt.Sprintf("differential: there is no host %q", name))
}

// world is a driver with what a program has made on it.
type world struct {
	rig             Rig
	loops           sides.Loops
	active, passive *end
	slots           map[string]*slot
	order           []string // of the slots
	children        int
	ports           map[uint16]string // ports by name, in the order in which they were seen
	caught          atomic.Int32
	moved           bool // there was an event since the last look
	err             error
}

// end is one side: a channel on a loop.
type end struct {
	w    *world
	ch   *cmid.Channel
	inst *watchedInstance
}

// slot is a name in programs, and the identifier that has it now.
type slot struct {
	name   string
	end    *end
	id     *cmid.ID // nil before create and after destroy
	qp     rdma.QP
	made   int      // identifiers so far
	events []string // since the last look
	params []string // what they say of depths, retries and the like
	asked  []asked  // commands of this turn
}

// asked is a command and its answer.
type asked struct {
	step   Step
	n      int // in its turn
	cmd    cmid.Command
	before states.State
	answer string
}

var errNoDevice = errors.New("no device")

// lastQPN numbers queue pairs that do not exist. The range is beyond what soft devices use.
var lastQPN atomic.Uint32

func nextQPN() uint32 { return 0x400000 + lastQPN.Add(1)%0x3fffff }

func (w *world) add(name string, e *end) *slot {
	s := &slot{name: name, end: e}
	w.slots[name] = s
	w.order = append(w.order, name)
	return s
}

// alive reports that there is an identifier whose end has not begun.
func (s *slot) alive() bool { return s.id != nil && s.id.State() != states.Destroying }
