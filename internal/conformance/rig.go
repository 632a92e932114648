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

// Rig is a driver set up for Run, and the facts about its environment that the suite needs.
type Rig struct {
	// Active is the driver that connects, and Passive the one that listens. They may be the same.
	Active, Passive cmid.Driver
	// Clock is the drivers' virtual time. It is nil for devices that need real time.
	Clock *eventlooptest.Clock

	// Address is an address of a device of Passive that Active can reach. Second is another address
	// of that device. Local is an address of Active.
	Address, Second, Local netip.Addr
	// Other is an address of another device of Passive. It is zero if there is only one device.
	Other netip.Addr
	// NotLocal is an address that this host does not have. It must not be reachable if Silent is
	// not set.
	NotLocal netip.Addr
	// Silent is an address with a route that never answers when it is resolved. It is zero if the
	// driver asks no peer before it connects (iWARP over TCP).
	Silent netip.Addr
	// NoRoute is an IPv6 address without a route. It is zero if every address may have a route.
	NoRoute netip.Addr
	// Plain is an address of Passive on an interface without an RDMA device. It is zero if every
	// interface has one.
	Plain netip.Addr
	// Privileged: ports below 1024 may be bound.
	Privileged bool
	// Datagrams: UD identifiers exist. The device's Attr.MaxDatagram shows whether they have queue
	// pairs.
	Datagrams bool
	// Group is an IPv4 group whose datagrams get from Active's device to Passive's. It is zero if
	// both are one port, which does not receive its own datagrams.
	Group netip.Addr
	// Patience is how long an answer may take in real time (0: 15 s). When nothing has happened for
	// the time Quiet, nothing more is expected (0: 30 ms).
	Patience, Quiet time.Duration
	// RemoveDevice removes the device with Address. It is nil if that is not possible.
	RemoveDevice func()
	// Reset resets the connection of an identifier of Active, as a middle box does. Both ends
	// learn of it. It is nil if that is not possible, or if devices do not keep messages for
	// receives that come later.
	Reset func(*cmid.ID)

	// Differences lists where the driver differs from the kernel, and why. A difference that the
	// suite does not see fails the test.
	Differences []Difference
}

// Difference is one deliberate deviation from the kernel.
type Difference struct {
	What What
	Why  string
}

// What is a deviation that the suite knows. The suite checks what the driver does instead.
type What string

// The deviations.
const (
	// LoopbackOnly: a listener on 127.0.0.1 can be reached over loopback only, as rdma_listen(3)
	// says. In the kernel it can be reached at every local address.
	LoopbackOnly What = "a listener on 127.0.0.1 hears loopback only"
	// RefusedIsRejected: a Connect to an address without a listener ends with Rejected and status
	// -111. On soft-iWARP Connect itself fails with ECONNREFUSED.
	RefusedIsRejected What = "nobody listening is Rejected, not a failing Connect"
	// LoopbackHasDevice: 127.0.0.1 is an address of the device. The kernel treats it as a wildcard.
	LoopbackHasDevice What = "127.0.0.1 is an address of the device"
	// BacklogIsTCPs: a request that finds a listener's backlog full waits, and the backlog has room
	// for one request more, as TCP's has. On soft-iWARP the request is rejected.
	BacklogIsTCPs What = "the backlog is TCP's"
	// OverflowHarms: a full backlog damages the kernel, so it has a separate test elsewhere.
	OverflowHarms What = "a backlog is not filled"
	// NoMigration, NoQPAttr, NoPath (SetIBPath and the queries for paths and GIDs) and NoUserEvent:
	// the driver does not implement these calls. They fail with EOPNOTSUPP.
	NoMigration What = "identifiers stay on their channel"
	NoQPAttr    What = "no attributes for queue pairs"
	NoPath      What = "no path records and no GIDs"
	NoUserEvent What = "no user events"
	// OnlyTrafficClass: ID.Path has the TOS that was set, and nothing else. On soft-iWARP it has
	// nothing.
	OnlyTrafficClass What = "a Path has the traffic class alone"
	// SeparateFamilies: an IPv4 request to a listener on :: is rejected.
	SeparateFamilies What = "a listener on :: is IPv6's only"
	// TooLongIsRemOp: a Send that is longer than its receive completes with StatusRemOp, not with
	// StatusRemInvReq.
	TooLongIsRemOp What = "a Send longer than its receive is a remote operation error"
	// TooLongEnds: after a datagram that was longer than its receive, a queue pair receives
	// nothing.
	TooLongEnds What = "a datagram longer than its receive is the last one"
	// OneMoreNotification: the first completion after CQ.ReqNotify(true) notifies, solicited or
	// not.
	OneMoreNotification What = "one more notification of what is not solicited"
	// SentBehindRefused: a Send behind a Read that the peer refuses succeeds nevertheless, and may
	// be received.
	SentBehindRefused What = "a Send succeeds behind a Read that is refused"
	// CaughtWriteFails: a Write that is still being sent when the peer's refusal of it arrives may
	// complete with StatusLocQPOp.
	CaughtWriteFails What = "a Write that is refused while it is being sent may fail"
	// ReadsUnchecked: a Read succeeds on memory without the right RemoteRead.
	ReadsUnchecked What = "a Read needs no right to read"
	// EndsWithoutReason: when a target gives up a connection, Disconnected has no Err.
	EndsWithoutReason What = "the end of a connection comes without its reason"
	// AcceptServesAsked: the accepting side serves as many Reads as the request asks for, even if
	// the ConnParam of its Accept has a lower number.
	AcceptServesAsked What = "accept serves as many Reads as are asked for"
	// DestroyAwaitsAnswer: an identifier that is destroyed while it connects exists until its peer
	// has answered.
	DestroyAwaitsAnswer What = "destroy waits for the answer to a connect"
)

// run is one run of the suite.
type run struct {
	open func(t *testing.T) Rig
	used map[What]bool
	// flavor is the flavor of the device with Address, or nil until it is known.
	flavor *states.Flavor
	left   int // groups and scenarios that go test -run has not chosen
}

// scenarios are subtests by name. Each gets its own world.
type scenarios map[string]func(w *world)

func (s scenarios) runAll(t *testing.T, r *run) {
	for name, fn := range s {
		r.left++
		t.Run(name, func(t *testing.T) {
			r.left--
			fn(r.newWorld(t))
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

// and adds more scenarios to s, and returns s.
func (s scenarios) and(more scenarios) scenarios {
	maps.Copy(s, more)
	return s
}

// deviceAddr returns the address of Passive's device, with port 0.
func (w *world) deviceAddr() cmid.Addr { return sides.At(w.rig.Address, 0) }

// skipIf skips a scenario that cannot run here.
func (w *world) skipIf(not bool, why string) {
	w.Helper()
	if not {
		w.Skip(why)
	}
}

// hasDeviation reports whether the rig lists a deviation, and records that the suite has seen it.
func (w *world) hasDeviation(what What) bool {
	for _, d := range w.rig.Differences {
		if d.What == what {
			w.r.used[what] = true
			return true
		}
	}
	return false
}

// world has the two sides of a rig for one scenario.
type world struct {
	*sides.World
	r    *run
	rig  Rig
	mask verbs.QPAttrMask // returned by InitQPAttr
}

func (r *run) newWorld(t *testing.T) *world {
	t.Helper()
	rig := r.open(t)
	w := sides.New(t, sides.Config{
		Active: rig.Active, Passive: rig.Passive, Clock: rig.Clock, Address: rig.Address,
		Flavor: r.flavor, Patience: rig.Patience, Quiet: rig.Quiet,
	})
	r.flavor = w.Flavor
	return &world{World: w, r: r, rig: rig}
}
