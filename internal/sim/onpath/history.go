package onpath

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/rdmactor/rdmactor/internal/sim/network"
)

// Limits of an attacker's memory: messages per flow, length of a message, and flows.
const (
	messages = 64
	longest  = 4 << 10
	flows    = 64
)

// first is the number of the first message worth repeating: those before it are of the handshake,
// and are not delivered to an owner.
const first = 2

// history is the messages sent in one direction of a connection.
type history struct {
	to   network.Flow
	asks bool // of the connecting side
	n    int  // number of messages
	last [messages][]byte
}

// newHistory starts the history of a flow.
func (a *Attacker) newHistory(to network.Flow, asks bool) *history {
	h := &history{to: to, asks: asks}
	if len(a.histories) == flows {
		a.histories = slices.Delete(a.histories, 0, 1)
	}
	a.histories = append(a.histories, h)
	return h
}

// addMessage records a message; nil: one that is too long, or has several frames.
func (h *history) addMessage(m []byte) {
	if len(m) > longest {
		m = nil
	}
	h.last[h.n%messages] = bytes.Clone(m)
	h.n++
}

// messageAt returns the message with a number; nil: unknown, or no longer kept.
func (h *history) messageAt(n int) []byte {
	if n >= h.n || n < h.n-messages {
		return nil
	}
	return h.last[n%messages]
}

// earlierMessages returns the earlier messages that differ from now.
func (h *history) earlierMessages(now []byte) (all [][]byte) {
	for n := max(first, h.n-messages); n < h.n; n++ {
		if m := h.messageAt(n); m != nil && !bytes.Equal(m, now) {
			all = append(all, m)
		}
	}
	return all
}

// clientAddr returns the address of the connecting machine.
func (h *history) clientAddr() netip.Addr {
	if h.asks {
		return h.to.From.Addr()
	}
	return h.to.To.Addr()
}

// otherMessages returns the messages with the next number in other connections of the same machine,
// in the same direction.
func (a *Attacker) otherMessages(h *history, now []byte) (all [][]byte) {
	if h.n < first {
		return nil
	}
	for _, o := range a.histories {
		if o == h || o.asks != h.asks || o.clientAddr() != h.clientAddr() {
			continue
		}
		if m := o.messageAt(h.n); m != nil && !bytes.Equal(m, now) {
			all = append(all, m)
		}
	}
	return all
}
