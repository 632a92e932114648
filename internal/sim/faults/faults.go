// Package faults lists the faults of the machines of a simulated world: of their processes, links,
// devices and kernels.
package faults

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/onpath"
	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// Class is the effect of a Kind, under the name by which a user selects it. Classes are bits.
type Class uint

// The classes.
const (
	Kill     Class = 1 << iota // a process is killed
	Freeze                     // processes are stopped
	PowerOff                   // a machine stops without notice
	Cut                        // a link is cut, in both directions or one
	Delay                      // messages take longer, or are lost and sent again
	Reset                      // a connection is reset on the path, or closed when it starts
	Device                     // a device or an address is removed
	Scarce                     // memory and descriptors are short
	Reorder                    // completions and events overtake each other
	Attack                     // an attacker on the path changes the traffic
	Suspend                    // time passes without any turn
)

// Kind is a kind of fault.
type Kind struct {
	Class Class
	// Name describes the fault.
	Name string
	// Hits is the set of connections that may notice.
	Hits Extent
	// Lasts is the longest useful time between Begin and End.
	Lasts time.Duration
	// Begin starts the fault, and End undoes it. A momentary fault has no End.
	Begin func(s *Scene)
	End   func(s *Scene)
}

// Extent is the part of a world that a fault affects.
type Extent uint8

// The extents.
const (
	Nobody   Extent = iota // affects no client that dials machine A twice
	Late                   // machine A is late by less than 10 s
	First                  // the Scene's machine A
	Peers                  // machine A, if it has a connection
	Link                   // A, B, and the link between them
	All                    // everything
	Attacked               // the connections that World.OnPath reports, once it does
)

// Scene is the place of a fault. Whether both machines matter, or only the first, or the link
// between them, depends on the Kind.
type Scene struct {
	World *world.World
	Rand  *rand.Rand
	// Latency is the network's latency when nothing slows it down.
	Latency time.Duration
	// A and B are two different machines.
	A, B *world.Machine
	// Kill kills the program of a machine, and Restart starts it again. Restart is called for a
	// machine that is on, and that may have been restarted already.
	Kill, Restart func(m *world.Machine)
}

// Of lists the kinds that have an effect on machines with such devices. Their order matters to
// callers that draw from them.
func Of(device world.Kind) []*Kind {
	if device == world.Embedded {
		return slices.Concat(anywhere, onNetworks, InSetUp)
	}
	return slices.Concat(anywhere, onTwins)
}

var anywhere = []*Kind{
	{Kill, "is killed, and started again at once", First, 0, killAndRestart, nil},
	{Kill, "is killed, and started again later", First, time.Minute, killMachine, restartMachine},
	{Freeze, "stands still", First, 2 * time.Minute, freezeMachine, thawMachine},
	{PowerOff, "loses its power", First, 2 * time.Minute, powerOff, powerOn},
	{PowerOff, "loses its power for a moment", First, 0, powerCycle, nil},
	{Cut, "is cut off", Link, 2 * time.Minute, cutLink, healLink},
	{Cut, "has its link flap", Link, 10 * time.Second, cutLink, healLink},
	{Device, "loses its device", First, time.Minute, removeDevice, addDevice},
	{Delay, "is far away", All, time.Minute, setFarLatency, resetLatency},
	{Scarce, "runs out of memory and descriptors", All, 20 * time.Second, startScarcity, clearScarcity},
	{Suspend, "has its clock jump", All, 0, jumpTime, nil},
}

// InSetUp are kinds for the set-up of connections. They are useful before the first connections are
// made, and when few other faults disturb those.
var InSetUp = []*Kind{
	{Reset, "has its first connections hung up on", Nobody, time.Minute, hangUp, pickUp},
	{Freeze, "stands still when it has accepted a connection", Late, time.Minute, startStall, clearStall},
}

// Twins have no segments that could be lost, and no connections that a middlebox sees.
var onNetworks = []*Kind{
	{Cut, "is not heard", Link, 2 * time.Minute, cutOneWay, healLink},
	{Reset, "has a connection reset", Peers, 0, resetConns, nil},
	{Delay, "has a bad link", All, time.Minute, setLossyLatency, resetLatency},
}

// Only twins report completions and events separately.
var onTwins = []*Kind{
	{Reorder, "has its events overtake completions", All, time.Minute, startReorder, clearReorder},
}

// OnPath lists the kinds for worlds with World.OnPath whose machines have such devices. Only
// secured connections survive them. They wait for something that they can change.
func OnPath(device world.Kind) []*Kind {
	if device == world.Embedded {
		return slices.Concat(onMessages, onFrames)
	}
	return onMessages
}

var onMessages = []*Kind{
	{Attack, "has a bit changed", Attacked, 0, attackWith(onpath.Flip), nil},
	{Attack, "has a message cut", Attacked, 0, attackWith(onpath.Cut), nil},
	{Attack, "has an earlier message in a message's place", Attacked, 0, attackWith(onpath.Replay), nil},
	{Attack, "has a message of another connection's in a message's place", Attacked, 0, attackWith(onpath.Graft), nil},
	{Attack, "has its hello stripped", Attacked, 0, attackWith(onpath.Strip), nil},
}

var onFrames = []*Kind{
	{Attack, "has a frame left out", Attacked, 0, attackWith(onpath.Drop), nil},
	{Attack, "has a frame repeated", Attacked, 0, attackWith(onpath.Repeat), nil},
	{Attack, "has two frames swapped", Attacked, 0, attackWith(onpath.Swap), nil},
	{Attack, "has a frame of another connection's", Attacked, 0, attackWith(onpath.Splice), nil},
	{Attack, "has a connection made to another listener", Attacked, 0, attackWith(onpath.Relay), nil},
}

// Calm ends every fault.
func Calm(w *world.World, machines []*world.Machine, restart func(m *world.Machine)) {
	w.Latency(0, 0, 0)
	w.Scarce(0)
	w.Reorder(false)
	w.Disarm()
	for i, m := range machines {
		m.HangUp(false)
		m.FreezeOnAccept(0)
		m.PowerOn()
		m.AddDevice()
		for _, other := range machines[:i] {
			m.Heal(other)
		}
		m.Thaw()
	}
	for _, m := range machines {
		restart(m)
	}
}

func attackWith(act onpath.Act) func(s *Scene) {
	return func(s *Scene) { s.A.Attack(act, s.Rand) }
}

func killMachine(s *Scene)    { s.Kill(s.A) }
func restartMachine(s *Scene) { s.Restart(s.A) }

func killAndRestart(s *Scene) {
	killMachine(s)
	restartMachine(s)
}

func freezeMachine(s *Scene) { s.A.Freeze() }
func thawMachine(s *Scene)   { s.A.Thaw() }

func powerOff(s *Scene) {
	s.Kill(s.A)
	s.A.PowerOff()
}

func powerOn(s *Scene) {
	s.A.PowerOn()
	s.Restart(s.A)
}

func powerCycle(s *Scene) {
	powerOff(s)
	powerOn(s)
}

func cutLink(s *Scene)         { s.A.Cut(s.B, false) }
func cutOneWay(s *Scene)       { s.A.Cut(s.B, true) }
func healLink(s *Scene)        { s.A.Heal(s.B) }
func removeDevice(s *Scene)    { s.A.RemoveDevice() }
func addDevice(s *Scene)       { s.A.AddDevice() }
func resetConns(s *Scene)      { s.A.Reset(s.Rand) }
func hangUp(s *Scene)          { s.A.HangUp(true) }
func pickUp(s *Scene)          { s.A.HangUp(false) }
func clearStall(s *Scene)      { s.A.FreezeOnAccept(0) }
func setFarLatency(s *Scene)   { s.World.Latency(50*time.Millisecond, 20*time.Millisecond, 0) }
func setLossyLatency(s *Scene) { s.World.Latency(time.Millisecond, 5*time.Millisecond, 0.2) }
func resetLatency(s *Scene)    { s.World.Latency(s.Latency, s.Latency/2, 0) }
func clearScarcity(s *Scene)   { s.World.Scarce(0) }
func startReorder(s *Scene)    { s.World.Reorder(true) }
func clearReorder(s *Scene)    { s.World.Reorder(false) }

// startScarcity makes some calls fail. A twin's program makes few calls that can fail, so all of
// them may.
func startScarcity(s *Scene) {
	if s.World.Kind() == world.Embedded {
		s.World.Scarce(0.05)
		return
	}
	s.World.Scarce([]float64{0.05, 0.3, 1}[s.Rand.IntN(3)])
}

// jumpTime suspends the computers for a while: programs see a jump in time.
func jumpTime(s *Scene) { s.World.Suspend(time.Duration(1+s.Rand.IntN(100)) * time.Second) }

// startStall lasts longer than a device waits for a peer's Request, and less than for a Reply.
func startStall(s *Scene) {
	s.A.FreezeOnAccept(5*time.Second + time.Duration(1+s.Rand.Int64N(int64(4*time.Second))))
}
