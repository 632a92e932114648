package datapath

import (
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
)

// Inbound is a message that has come from the peer. It is part of what the layer above has for it,
// so that the two are one allocation, and comes back to that from the loop.
type Inbound struct {
	Of    any // the pointer to what it is part of; it never changes
	Data  []byte
	Since time.Time // when it came, if it has had to wait in the connection
	Conn  *Conn     // nil: there is nothing to give back
	Chunk *chunk    // with data in it
}

// keepInbound is how many idle ones a loop keeps.
const keepInbound = 1024

// newInbound hands out one.
func (l *Loop) newInbound() *Inbound {
	if n := len(l.idle); n > 0 {
		m := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return m
	}
	return l.NewInbound()
}

// freeInbound takes it back. Where memory is overwritten that was given back none is used again: who
// still has it is found.
func (l *Loop) freeInbound(m *Inbound) {
	*m = Inbound{Of: m.Of}
	if !overwrite.On && len(l.idle) < keepInbound {
		l.idle = append(l.idle, m)
	}
}
