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

// Rig is a driver set up for one program, with its addresses. All identifiers are on one host.
type Rig struct {
	Driver cmid.Driver
	// Clock is the driver's virtual time, or nil.
	Clock *eventlooptest.Clock
	// Address is an address of a device. Second is another address of that device. Plain is an
	// address of an interface without a device, and Foreign one of another host. NoARP has a route,
	// and never answers when it is resolved. NoRoute is an IPv6 address without a route. The zero
	// Addr means that there is none.
	Address, Second, Plain, Foreign, NoARP, NoRoute netip.Addr
	// Ports are two free ports.
	Ports [2]uint16
	// Patience is how long to wait for what the other driver has shown. When nothing has happened
	// for the time Quiet, nothing more is expected.
	Patience, Quiet time.Duration
}

// host is an address with its name in programs.
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

// host returns the address of a name. It is invalid if the rig has none.
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
	ports           map[uint16]string // names of ports, in the order in which they were seen
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

// slot is a name in programs, with the identifier that has it now.
type slot struct {
	name   string
	end    *end
	id     *cmid.ID // nil before create and after destroy
	qp     rdma.QP
	made   int      // identifiers so far
	events []string // since the last look
	params []string // the connection parameters in the events
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

// alive reports whether the slot has an identifier that is not being destroyed.
func (s *slot) alive() bool { return s.id != nil && s.id.State() != states.Destroying }
