package onpath

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/rdmactor/rdmactor/internal/sim/network"
)

// What somebody on the path remembers: so many messages of each flow that are not longer than this,
// of so many flows.
const (
	messages = 64
	longest  = 4 << 10
	flows    = 64
)

// first is the number of the first message that is worth to be repeated: those before it are of the
// handshake, and no owner sees them.
const first = 2

// history is what somebody has sent on a connection.
type history struct {
	to   network.Flow
	asks bool // it is of the side that has connected
	n    int  // messages
	last [messages][]byte
}

// history begins that of a flow.
func (a *Attacker) history(to network.Flow, asks bool) *history {
	h := &history{to: to, asks: asks}
	if len(a.histories) == flows {
		a.histories = slices.Delete(a.histories, 0, 1)
	}
	a.histories = append(a.histories, h)
	return h
}

// sent remembers a message; nil: one that is too long, or has several frames.
func (h *history) sent(m []byte) {
	if len(m) > longest {
		m = nil
	}
	h.last[h.n%messages] = bytes.Clone(m)
	h.n++
}

// at is the message with a number; nil: it is not known, or not any more.
func (h *history) at(n int) []byte {
	if n >= h.n || n < h.n-messages {
		return nil
	}
	return h.last[n%messages]
}

// earlier are the messages that came before, but for those that are the same.
func (h *history) earlier(now []byte) (all [][]byte) {
	for n := max(first, h.n-messages); n < h.n; n++ {
		if m := h.at(n); m != nil && !bytes.Equal(m, now) {
			all = append(all, m)
		}
	}
	return all
}

// client is the machine that has connected.
func (h *history) client() netip.Addr {
	if h.asks {
		return h.to.From.Addr()
	}
	return h.to.To.Addr()
}

// others are the messages that have the next number in other connections of the same machine, in
// the same direction.
func (a *Attacker) others(h *history, now []byte) (all [][]byte) {
	if h.n < first {
		return nil
	}
	for _, o := range a.histories {
		if o == h || o.asks != h.asks || o.client() != h.client() {
			continue
		}
		if m := o.at(h.n); m != nil && !bytes.Equal(m, now) {
			all = append(all, m)
		}
	}
	return all
}
