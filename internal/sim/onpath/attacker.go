// Package onpath is somebody between simulated machines: it reads iWARP's frames, and changes some.
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
// Frames must have no markers, as those of the embedded device.
package onpath

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"github.com/rdmactor/rdmactor/internal/sim/network"
	"github.com/rdmactor/rdmactor/iwarp/wire"
)

// Act is what is done to a frame.
type Act uint8

// The acts.
const (
	Nothing Act = iota
	Flip        // a bit of its payload is another one, and its CRC is right
	Drop        // it is left out
	Repeat      // it comes twice
	Swap        // the next one comes before it
	Cut         // its end is missing
	Splice      // one of another connection's comes in its place
	Replay      // the message before it is in it, and its headers and CRC are right
	Strip       // of the set-up: what the private data says is left out
)

// Attacker is somebody on the path. The zero value with Rand lets everything pass.
type Attacker struct {
	Rand *rand.Rand
	// Acted is called when something was done to a connection. nil: nobody.
	Acted func(f network.Flow, act Act)

	flows map[network.Flow]*flow
	armed []*arm
	last  []byte       // a frame that has passed
	from  network.Flow // and where
}

// arm is something that is to be done, once.
type arm struct {
	act  Act
	skip int // so many frames
	to   func(f network.Flow) bool
}

// flow is one direction of a connection.
type flow struct {
	set  bool   // its frame of the set-up has passed
	part []byte // of a frame
	said []byte // the last message
	late []byte // a whole one, that the next one overtakes
}

// Arm has the attacker act once, on a frame of a flow that to chooses, after some others.
func (a *Attacker) Arm(act Act, skip int, to func(f network.Flow) bool) {
	a.armed = append(a.armed, &arm{act, skip, to})
}

// Disarm has the attacker do nothing any more.
func (a *Attacker) Disarm() { a.armed = nil }

// Pass implements network.Path.
func (a *Attacker) Pass(to network.Flow, b []byte) []byte {
	if a.flows == nil {
		a.flows = make(map[network.Flow]*flow)
	}
	f := a.flows[to]
	if f == nil {
		f = &flow{}
		a.flows[to] = f
	}
	f.part = append(f.part, b...)
	var out []byte
	for {
		n := f.whole()
		if n == 0 {
			return out
		}
		frame := slices.Clone(f.part[:n])
		f.part = f.part[n:]
		out = append(out, a.frame(to, f, frame)...)
		f.set = true
	}
}

// End implements network.Path.
func (a *Attacker) End(to network.Flow) []byte {
	f := a.flows[to]
	if f == nil {
		return nil
	}
	delete(a.flows, to)
	return append(f.late, f.part...)
}

// whole is the length of the frame at the beginning; 0: it is not whole.
func (f *flow) whole() int {
	const header = 20 // of a frame of the set-up; the length of its private data is its end
	n := header
	switch {
	case f.set && len(f.part) < wire.LengthLen, !f.set && len(f.part) < header:
		return 0
	case f.set:
		n = wire.FPDULen(int(f.part[0])<<8 | int(f.part[1]))
	default:
		n += int(f.part[header-2])<<8 | int(f.part[header-1])
	}
	if len(f.part) < n {
		return 0
	}
	return n
}

// frame is what arrives in a frame's place.
func (a *Attacker) frame(to network.Flow, f *flow, b []byte) []byte {
	if late := f.late; late != nil {
		f.late = nil
		return append(b, late...)
	}
	act := a.act(to, f)
	before, from := a.last, a.from
	if f.set && !bytes.Equal(b, before) {
		a.last, a.from = slices.Clone(b), to
	}
	said := f.said
	f.said = sent(b)
	switch act {
	case Replay:
		return replay(b, said)
	case Flip:
		return a.flip(b)
	case Drop:
		return nil
	case Repeat:
		return append(b, b...)
	case Swap:
		f.late = b
		return nil
	case Cut:
		return b[:len(b)-1-a.Rand.IntN(len(b)-1)]
	case Splice:
		if before != nil && from != to {
			return before
		}
		return a.flip(b)
	case Strip:
		clear(b[20:]) // the private data
	}
	return b
}

// act is what is done to the next frame.
func (a *Attacker) act(to network.Flow, f *flow) Act {
	i := slices.IndexFunc(a.armed, func(x *arm) bool {
		if (x.act == Strip) == f.set || !x.to(to) {
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
	if a.Acted != nil {
		a.Acted(to, act)
	}
	return act
}

// flip changes a bit of the last bytes of a frame, and its CRC.
func (a *Attacker) flip(b []byte) []byte {
	f, _, err := wire.ConsumeFPDU(b)
	if err != nil || len(f.ULPDU) == 0 {
		return b
	}
	i := len(f.ULPDU) - 1 - a.Rand.IntN(min(len(f.ULPDU), 16))
	f.ULPDU[i] ^= 1 << a.Rand.IntN(8)
	f.CRC = f.Checksum()
	return wire.AppendFPDU(nil, &f)
}

// sent is the part of a Send that a frame has; nil: it has none.
func sent(b []byte) []byte {
	f, _, err := wire.ConsumeFPDU(b)
	if err != nil || len(f.ULPDU) < wire.UntaggedLen || f.ULPDU[0]&0x80 != 0 || f.ULPDU[1]&0xf != 3 {
		return nil
	}
	return f.ULPDU[wire.UntaggedLen:]
}

// replay puts an earlier message into a frame, if both have one.
func replay(b, said []byte) []byte {
	now := sent(b)
	if said == nil || now == nil {
		return b
	}
	f, _, _ := wire.ConsumeFPDU(b) // as sent has
	f.ULPDU = slices.Concat(f.ULPDU[:wire.UntaggedLen], said)
	f.CRC = f.Checksum()
	return wire.AppendFPDU(nil, &f)
}
