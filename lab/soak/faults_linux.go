package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// kind is a kind of fault.
type kind int

const (
	kill   kind = iota // kill -9; the process is restarted immediately
	stop               // SIGSTOP, and SIGCONT later
	cut                // every packet is lost, in both directions
	deaf               // every packet to one side is lost
	down               // the interface of one side is down, so that it has no address and no route
	vanish             // the link is cut and the process killed, so that it sends no goodbye
)

var kindNames = [...]string{"kill -9", "SIGSTOP", "cut", "cut in one direction", "interface down", "cut and kill -9"}

func (k kind) String() string { return kindNames[k] }

// fault is one fault.
type fault struct {
	Kind    kind
	Side    side
	For     time.Duration // 0: a kill, which takes no time
	Weather weather       // from now on
}

func (f fault) String() string {
	text := kindNames[f.Kind]
	if f.Kind != cut {
		text += fmt.Sprintf(" of the %v", f.Side)
	}
	if f.Kind != kill {
		text += fmt.Sprintf(" for %v", f.For.Round(time.Millisecond))
	}
	return text + fmt.Sprintf(", weather %v", f.Weather)
}

// faults draws one fault after the other.
type faults struct {
	random *rand.Rand
	kinds  []kind
	mortal side // the side that is killed
	scale  scale
}

// nextFault returns the next fault and the pause after it.
func (f *faults) nextFault() (next fault, pause time.Duration) {
	next = fault{Kind: f.kinds[f.random.IntN(len(f.kinds))], Side: side(f.random.IntN(2))}
	const shortest = 100 * time.Millisecond
	longest := f.scale.Longest
	switch next.Kind {
	case kill:
		next.Side, longest = f.mortal, 0
	case vanish:
		next.Side = f.mortal
	case stop:
		longest = f.scale.Gone * 3 / 2
	}
	if longest > 0 { // a short one is as likely as one that is ten times as long
		next.For = time.Duration(float64(shortest) * math.Pow(float64(longest)/float64(shortest), f.random.Float64()))
	}
	if f.random.IntN(2) == 0 {
		next.Weather = weather{
			Delay: upTo(f.random, 30*time.Millisecond), Jitter: upTo(f.random, 10*time.Millisecond), Loss: f.random.Float64() * 0.02,
		}
	}
	return next, upTo(f.random, f.scale.Pause)
}
