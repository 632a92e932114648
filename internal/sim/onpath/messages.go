package onpath

import (
	"slices"

	"github.com/rdmactor/rdmactor/internal/sim/network"
)

// Message is the kind of a message without frames.
type Message uint8

// The messages.
const (
	Request Message = iota // the private data of a request to connect
	Reply                  // the private data of its answer
	Send
	Answer // the bytes that a Read requests
)

// Message returns the bytes that arrive instead of a message. It may change b. Each flow has a
// different Conn.
func (a *Attacker) Message(to network.Flow, kind Message, b []byte) []byte {
	h := a.findHistory(to, kind)
	switch kind {
	case Request, Reply:
		switch a.dueAct(to, inSetUp) {
		case Strip:
			a.stripSecurity(b)
		case Flip:
			a.flipBit(b)
		}
		return b
	case Answer:
		if a.dueAct(to, func(act Act) bool { return act == Flip }) == Flip {
			a.flipBit(b)
		}
		return b
	}
	var earlier, others [][]byte
	if len(a.armed) > 0 {
		earlier, others = h.earlierMessages(b), a.otherMessages(h, b)
	}
	act := a.dueAct(to, func(act Act) bool {
		return act == Flip || act == Cut && len(b) > 0 || act == Replay && len(earlier) > 0 || act == Graft && len(others) > 0
	})
	h.addMessage(b)
	switch act {
	case Flip:
		a.flipBit(b)
	case Cut:
		return b[:a.Rand.IntN(len(b))]
	case Replay:
		return earlier[a.Rand.IntN(len(earlier))]
	case Graft:
		return others[a.Rand.IntN(len(others))]
	}
	return b
}

// findHistory returns the history of a flow.
func (a *Attacker) findHistory(to network.Flow, kind Message) *history {
	i := slices.IndexFunc(a.histories, func(h *history) bool { return h.to == to })
	if i < 0 {
		return a.newHistory(to, kind == Request)
	}
	return a.histories[i]
}
