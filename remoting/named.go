package remoting

import (
	"net/netip"
	"time"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// named are the nodes that peers have named as those of senders, and that this node has not met.
// Who answers such a sender makes a connection there, and what waits for that takes a place for
// Patience. They are forgotten after as long. They belong to the node's mutex.
type named struct {
	since time.Time
	names map[string]struct{}
	by    fairshare.Places // from where they were named
}

// mayName reports whether a peer may name a sender at another node. A quarter of the peers that
// this node may have are for those that it has not met.
func (n *Node) mayName(addr string, from netip.Addr, now time.Time) bool {
	if n.local(addr) {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.peers[nodeID(addr)]; p != nil && p.met() {
		return true
	}
	if now.Sub(n.named.since) >= n.cfg.Patience {
		n.named = named{since: now, names: make(map[string]struct{})}
	}
	if _, ok := n.named.names[addr]; ok {
		return true
	}
	if !n.named.by.May(from, (n.cfg.Peers+3)/4) {
		return false
	}
	n.named.by.Take(from)
	n.named.names[addr] = struct{}{}
	return true
}

// met reports whether there has been a connection.
func (p *peer) met() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most > 0
}
