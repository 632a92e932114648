package tables

import (
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Named are the nodes that peers have named as those of senders, and that this node has not met. An
// answer to such a sender makes a connection there, and its queue occupies a place for Patience.
// They are forgotten after as long. They belong to the roster's mutex.
type Named struct {
	since time.Time
	names map[string]struct{}
	by    fairshare.Shares[netip.Addr] // from where they were named
}

// May reports whether from may name one more node now, most of which may be named at a time.
func (n *Named) May(addr string, from netip.Addr, most int, patience time.Duration, now time.Time) bool {
	if now.Sub(n.since) >= patience {
		*n = Named{since: now, names: make(map[string]struct{})}
	}
	if _, ok := n.names[addr]; ok {
		return true
	}
	if !n.by.May(from, most) {
		return false
	}
	n.by.Take(from)
	n.names[addr] = struct{}{}
	return true
}
