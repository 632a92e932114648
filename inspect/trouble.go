package inspect

import (
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/states"
)

// Thresholds of the field trouble.
const (
	waitsLong  = time.Second     // a connection without credits
	queuesMany = 64              // messages that wait for credits
	stuckAfter = 5 * time.Second // a state that another side has to end
)

// trouble is why an operator should look at an identifier.
type trouble struct {
	text  string // "": nothing to see
	worse int    // sort key: kinds of trouble by their effect
	much  float64
}

// loopTrouble is what a loop does to its identifiers.
type loopTrouble struct{ blocked, shortOfMemory bool }

// troublesOf returns the loops that are in trouble, by name.
func troublesOf(loops []rdma.LoopInfo) map[string]loopTrouble {
	found := make(map[string]loopTrouble)
	for i := range loops {
		l := &loops[i]
		t := loopTrouble{blocked: l.Blocked != nil}
		for _, m := range l.Memory {
			t.shortOfMemory = t.shortOfMemory || m.Waiting > 0
		}
		if t != (loopTrouble{}) {
			found[l.Name] = t
		}
	}
	return found
}

// troubleOf returns an identifier's worst trouble.
func (s *snapshot) troubleOf(i *rdma.IDInfo) trouble {
	loop := s.troubles[i.Loop]
	c := &i.Credits
	waits := i.Traffic.WaitsFor
	switch {
	case i.State == states.Removed:
		return trouble{"device removed", 6, i.InState.Seconds()}
	case loop.blocked:
		return trouble{"loop blocked", 5, i.InState.Seconds()}
	case i.State == states.Failed:
		return trouble{"failed", 4, i.InState.Seconds()}
	case waits >= waitsLong:
		return trouble{"peer takes nothing", 3, waits.Seconds()}
	case waits > 0 && c.Queued >= queuesMany:
		return trouble{"peer is slow", 3, float64(c.Queued) / 1e6} // after those that take nothing
	case loop.shortOfMemory && c.Unfreed > 0:
		return trouble{"retains memory", 2, float64(c.Unfreed)}
	case awaitsAnswer(i.State) && i.InState >= stuckAfter:
		return trouble{"no answer", 1, i.InState.Seconds()}
	}
	return trouble{}
}

// awaitsAnswer reports whether another side has to end the state: the kernel, the peer or the
// owner.
func awaitsAnswer(s states.State) bool {
	switch s {
	case states.AddrQuery, states.RouteQuery, states.Connecting, states.ConnectRequested, states.Accepting,
		states.Disconnecting, states.Destroying:
		return true
	}
	return false
}

// troubleKey returns the sort key of an identifier's trouble.
func (s *snapshot) troubleKey(i *rdma.IDInfo) key {
	const most = 1e9 // s, or messages
	t := s.troubleOf(i)
	return key{number: float64(t.worse) + min(t.much, most-1)/most}
}
