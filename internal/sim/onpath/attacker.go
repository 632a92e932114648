// Package onpath is an attacker between simulated machines: it reads their traffic, and changes
// some of it.
//
// # Ownership
//
// An Attacker is used by one goroutine at a time.
//
// # Ordering
//
// Unchanged frames keep their order, and arrive when they are complete.
//
// # Errors
//
// There are none: bytes that are not a frame pass unchanged.
//
// # Limitations
//
// Frames must have no markers, like those of the embedded device. For devices whose messages arrive
// without frames, through Message, none is dropped, and none overtakes another.
package onpath

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/rdmactor/rdmactor/internal/sim/network"
)

// Act is a change of the traffic.
type Act uint8

// The acts.
const (
	Nothing Act = iota
	Flip        // a bit is flipped, and the frame's CRC is correct
	Drop        // a frame is dropped
	Repeat      // a frame arrives twice
	Swap        // the next frame overtakes it
	Cut         // the end of its payload is missing, and its length and CRC are correct
	Splice      // a frame of another connection replaces it
	Replay      // it contains an earlier message, with correct headers and CRC
	Graft       // it contains the message with the same number of another connection
	Strip       // in set-up: the security fields of the private data are removed
	Relay       // a new connection is made to another listener
)

// Attacker is an attacker on the path. The zero value with Rand lets everything pass.
type Attacker struct {
	Rand *rand.Rand
	// Acted is called after a change of a connection. nil: not called.
	Acted func(f network.Flow, act Act)

	flows     map[network.Flow]*flow
	histories []*history // the oldest first
	dialled   []netip.AddrPort
	armed     []*arm
	last      []byte       // a frame that has passed
	from      network.Flow // its flow
}

// arm is one planned act.
type arm struct {
	act  Act
	skip int // matches to skip
	to   func(f network.Flow) bool
}

// Arm makes the attacker act once, on something in a flow that to selects, after skipping some.
func (a *Attacker) Arm(act Act, skip int, to func(f network.Flow) bool) {
	a.armed = append(a.armed, &arm{act, skip, to})
}

// Disarm cancels all planned acts.
func (a *Attacker) Disarm() { a.armed = nil }

// dueAct returns the act for something in a flow: the oldest planned one that fits.
func (a *Attacker) dueAct(to network.Flow, fits func(act Act) bool) Act {
	i := slices.IndexFunc(a.armed, func(x *arm) bool {
		if !x.to(to) || !fits(x.act) {
			return false
		}
		x.skip--
		return x.skip < 0
	})
	if i < 0 {
		return Nothing
	}
	act := a.armed[i].act
	a.armed = slices.Delete(a.armed, i, i+1)
	a.reportActed(to, act)
	return act
}

func (a *Attacker) reportActed(f network.Flow, act Act) {
	if a.Acted != nil {
		a.Acted(f, act)
	}
}

// Meet implements network.Path. A relayed connection goes to another address that was dialled
// before.
func (a *Attacker) Meet(f network.Flow) netip.AddrPort {
	var others []netip.AddrPort
	for _, at := range a.dialled {
		if at != f.To && at.Addr() != f.From.Addr() {
			others = append(others, at)
		}
	}
	if !slices.Contains(a.dialled, f.To) {
		a.dialled = append(a.dialled, f.To)
	}
	if len(others) == 0 || a.dueAct(f, func(act Act) bool { return act == Relay }) == Nothing {
		return f.To
	}
	to := others[a.Rand.IntN(len(others))]
	a.reportActed(network.Flow{Conn: f.Conn, From: f.From, To: to}, Relay) // also for that listener
	return to
}

// inSetUp reports whether an act changes private data.
func inSetUp(act Act) bool { return act == Strip || act == Flip }

// flipBit changes one of the last bits.
func (a *Attacker) flipBit(b []byte) {
	if len(b) > 0 {
		b[len(b)-1-a.Rand.IntN(min(len(b), 16))] ^= 1 << a.Rand.IntN(8)
	}
}

// stripSecurity removes some or all of the security fields of private data.
func (a *Attacker) stripSecurity(b []byte) {
	const features = 6 // of a hello
	if len(b) > features && a.Rand.IntN(2) == 0 {
		b[features] = 0
		return
	}
	clear(b)
}
