package actor

import (
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
)

// inbound is a message that has come from the peer. It is part of what the layer above has for it,
// so that the two are one allocation, and comes back to that from the loop.
type inbound struct {
	of    any // the pointer to what it is part of; it never changes
	data  []byte
	since time.Time // when it came, if it has had to wait in the connection
	conn  *conn     // nil: there is nothing to give back
	chunk *chunk    // with data in it
}

// keepInbound is how many idle ones a loop keeps.
const keepInbound = 1024

// newInbound hands out one.
func (l *pathLoop) newInbound() *inbound {
	if n := len(l.idle); n > 0 {
		m := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return m
	}
	return l.makeInbound()
}

// freeInbound takes it back. Where memory is overwritten that was given back none is used again: who
// still has it is found.
func (l *pathLoop) freeInbound(m *inbound) {
	*m = inbound{of: m.of}
	if !overwrite.On && len(l.idle) < keepInbound {
		l.idle = append(l.idle, m)
	}
}
