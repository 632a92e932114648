package conformance

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Rig is a driver set up for Run, and what the suite has to know about where it runs.
type Rig struct {
	// Active connects, Passive listens; one driver may be both.
	Active, Passive cmid.Driver
	// Clock is the drivers' time when it is virtual; nil for devices that need the real one.
	Clock *eventlooptest.Clock

	// Address is an address of a device of Passive, which Active reaches. Second is another one of
	// that device, and Local one of Active's.
	Address, Second, Local netip.Addr
	// Other is Passive's as well, on another device than Address. Zero: there is one device.
	Other netip.Addr
	// NotLocal is no address of this host. It must not be reachable when Silent is not set.
	NotLocal netip.Addr
	// Silent can be routed to, and never answers when its address is resolved. Zero: no peer is
	// asked before the connection is made (iWARP over TCP).
	Silent netip.Addr
	// NoRoute is an IPv6 address without a route. Zero: there may be one for every address.
	NoRoute netip.Addr
	// Plain is Passive's, on an interface without an RDMA device. Zero: every interface has one.
	Plain netip.Addr
	// Privileged says that ports below 1024 may be bound.
	Privileged bool
	// Datagrams says that UD identifiers exist. Whether they have queue pairs is the device's
	// Attr.MaxDatagram.
	Datagrams bool
	// Group is an IPv4 group whose datagrams get from Active's device to Passive's. Zero: both are
	// one port, which does not receive its own.
	Group netip.Addr
	// Patience is how long, in real time, an answer may take (0: 15 s), and Quiet how long nothing
	// has to happen until nothing will (0: 30 ms).
	Patience, Quiet time.Duration
	// RemoveDevice takes the device with Address away. nil: it cannot go.
	RemoveDevice func()

	// Differences lists where the driver does something else than the kernel, and why. One that
	// does not show fails.
	Differences []Difference
}

// Difference is one deliberate deviation.
type Difference struct {
	What What
	Why  string
}

// What is a deviation that the suite knows. It checks what the driver does instead.
type What string

// The deviations.
const (
	// LoopbackOnly: a listener on 127.0.0.1 is reached over loopback only, as rdma_listen(3) says.
	// The kernel's is reached at every local address.
	LoopbackOnly What = "a listener on 127.0.0.1 hears loopback only"
	// RefusedIsRejected: where nobody listens, Rejected with -111 follows. On soft-iWARP Connect
	// fails with ECONNREFUSED.
	RefusedIsRejected What = "nobody listening is Rejected, not a failing Connect"
	// LoopbackHasDevice: 127.0.0.1 is an address of the device. The kernel treats it like a
	// wildcard.
	LoopbackHasDevice What = "127.0.0.1 is an address of the device"
	// BacklogIsTCPs: a request that finds a listener's backlog full waits. On soft-iWARP it is
	// rejected. TCP's backlog has room for one more.
	BacklogIsTCPs What = "the backlog is TCP's"
	// OverflowHarms: a full backlog has a test of its own, because it damages the kernel.
	OverflowHarms What = "a backlog is not filled"
	// NoMigration, NoQPAttr, NoPath (SetIBPath and the queries for paths and GIDs) and
	// NoUserEvent: the driver does not offer these calls, which fail with EOPNOTSUPP.
	NoMigration What = "identifiers stay on their channel"
	NoQPAttr    What = "no attributes for queue pairs"
	NoPath      What = "no path records and no GIDs"
	NoUserEvent What = "no user events"
	// SeparateFamilies: an IPv4 request to a listener on :: is rejected.
	SeparateFamilies What = "a listener on :: is IPv6's only"
	// TooLongIsRemOp: a Send that is longer than its receive completes with StatusRemOp, not with
	// StatusRemInvReq.
	TooLongIsRemOp What = "a Send longer than its receive is a remote operation error"
	// TooLongEnds: a queue pair receives no datagram after one that was longer than its receive.
	TooLongEnds What = "a datagram longer than its receive is the last one"
	// OneMoreNotification: the first completion after CQ.ReqNotify(true) notifies, solicited or
	// not.
	OneMoreNotification What = "one more notification of what is not solicited"
	// SentBehindRefused: a Send behind a Read that the peer refuses succeeds all the same, and may
	// be received.
	SentBehindRefused What = "a Send succeeds behind a Read that is refused"
	// CaughtWriteFails: a Write that is still being sent when the peer's refusal of it arrives may
	// complete with StatusLocQPOp.
	CaughtWriteFails What = "a Write that is refused while it is being sent may fail"
	// ReadsUnchecked: a Read of memory without RemoteRead succeeds.
	ReadsUnchecked What = "a Read needs no right to read"
	// EndsWithoutReason: the Disconnected of a connection that a target gave up has no Err.
	EndsWithoutReason What = "the end of a connection comes without its reason"
	// AcceptServesAsked: the accepting side serves as many Reads as the request asks for, even if
	// its ConnParam says fewer.
	AcceptServesAsked What = "accept serves as many Reads as are asked for"
	// DestroyAwaitsAnswer: an identifier that is destroyed while it connects goes only when its
	// peer has answered.
	DestroyAwaitsAnswer What = "destroy waits for the answer to a connect"
)

// run is one run of the suite.
type run struct {
	open func(t *testing.T) Rig
	used map[What]bool
	// flavor is that of the device with Address, once it is known.
	flavor *states.Flavor
	left   int // groups and scenarios that were not run: go test -run chooses
}

// scenarios are subtests by name; each has a world of its own.
type scenarios map[string]func(w *world)

func (s scenarios) run(t *testing.T, r *run) {
	for name, fn := range s {
		r.left++
		t.Run(name, func(t *testing.T) {
			r.left--
			fn(r.world(t))
		})
	}
}

// where runs the scenarios only if can returns true.
func (s scenarios) where(can func(w *world) bool) scenarios {
	for name, fn := range s {
		s[name] = func(w *world) {
			if can(w) {
				fn(w)
			}
		}
	}
	return s
}

// and adds more scenarios.
func (s scenarios) and(more scenarios) scenarios {
	maps.Copy(s, more)
	return s
}

// device is the address of Passive's device, and a port that the device chooses.
func (w *world) device() cmid.Addr { return sides.At(w.rig.Address, 0) }

// skipIf skips a scenario that cannot run here.
func (w *world) skipIf(not bool, why string) {
	w.Helper()
	if not {
		w.Skip(why)
	}
}

// differs reports whether the rig lists a deviation, and notes that it has shown.
func (w *world) differs(what What) bool {
	for _, d := range w.rig.Differences {
		if d.What == what {
			w.r.used[what] = true
			return true
		}
	}
	return false
}

// world is a rig's two sides, for one scenario.
type world struct {
	*sides.World
	r    *run
	rig  Rig
	mask verbs.QPAttrMask // that InitQPAttr gave
}

func (r *run) world(t *testing.T) *world {
	t.Helper()
	rig := r.open(t)
	w := sides.New(t, sides.Config{
		Active: rig.Active, Passive: rig.Passive, Clock: rig.Clock, Address: rig.Address,
		Flavor: r.flavor, Patience: rig.Patience, Quiet: rig.Quiet,
	})
	r.flavor = w.Flavor
	return &world{World: w, r: r, rig: rig}
}
