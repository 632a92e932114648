// Package onpath is somebody between simulated machines: it reads what they send, and changes some
// of it.
//
// # Ownership
//
// An Attacker is used by one goroutine at a time.
//
// # Ordering
//
// Frames that are left alone keep their order, and arrive when they are whole.
//
// # Errors
//
// There are none: what is no frame passes as it is.
//
// # Limitations
//
// Frames must have no markers, as those of the embedded device. Of devices whose messages come as
// they are, by Message, none is left out, and none overtakes another.
package onpath

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/rdmactor/rdmactor/internal/sim/network"
)

// Act is what is done to what is sent.
type Act uint8

// The acts.
const (
	Nothing Act = iota
	Flip        // a bit is another one, and the frame's CRC is right
	Drop        // a frame is left out
	Repeat      // it comes twice
	Swap        // the next one comes before it
	Cut         // the end of what it carries is missing, and its length and CRC are right
	Splice      // one of another connection's comes in its place
	Replay      // an earlier message is in it, and its headers and CRC are right
	Graft       // so is a message of another connection's, which had the same number there
	Strip       // of the set-up: what the private data says of security is left out
	Relay       // a connection that begins is made to another listener
)

// Attacker is somebody on the path. The zero value with Rand lets everything pass.
type Attacker struct {
	Rand *rand.Rand
	// Acted is called when something was done to a connection. nil: nobody.
	Acted func(f network.Flow, act Act)

	flows     map[network.Flow]*flow
	histories []*history // the oldest first
	dialled   []netip.AddrPort
	armed     []*arm
	last      []byte       // a frame that has passed
	from      network.Flow // and where
}

// arm is something that is to be done, once.
type arm struct {
	act  Act
	skip int // so many times
	to   func(f network.Flow) bool
}

// Arm has the attacker act once, on something in a flow that to chooses, after some that it leaves
// alone.
func (a *Attacker) Arm(act Act, skip int, to func(f network.Flow) bool) {
	a.armed = append(a.armed, &arm{act, skip, to})
}

// Disarm has the attacker do nothing any more.
func (a *Attacker) Disarm() { a.armed = nil }

// due is what is done to something in a flow: the oldest of the acts that fit.
func (a *Attacker) due(to network.Flow, fits func(act Act) bool) Act {
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
	a.acted(to, act)
	return act
}

func (a *Attacker) acted(f network.Flow, act Act) {
	if a.Acted != nil {
		a.Acted(f, act)
	}
}

// Meet implements network.Path. A connection is relayed to another address that somebody has
// dialled before.
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
	if len(others) == 0 || a.due(f, func(act Act) bool { return act == Relay }) == Nothing {
		return f.To
	}
	to := others[a.Rand.IntN(len(others))]
	a.acted(network.Flow{Conn: f.Conn, From: f.From, To: to}, Relay) // that listener's, too
	return to
}

// inSetUp reports whether an act is done to private data.
func inSetUp(act Act) bool { return act == Strip || act == Flip }

// flip changes one of the last bits.
func (a *Attacker) flip(b []byte) {
	if len(b) > 0 {
		b[len(b)-1-a.Rand.IntN(min(len(b), 16))] ^= 1 << a.Rand.IntN(8)
	}
}

// strip takes what private data says of security out of it, or all that it says.
func (a *Attacker) strip(b []byte) {
	const features = 6 // of a hello
	if len(b) > features && a.Rand.IntN(2) == 0 {
		b[features] = 0
		return
	}
	clear(b)
}
