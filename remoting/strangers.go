package remoting

import (
	"net/netip"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// A stranger is a peer that has come by itself, before this node has sent it anything. It is one
// for as long as this node remembers it, connected or not. So who comes again and again, by names
// that he invents, takes no places of the peers that this node sends to, and not all of the
// strangers' either.

// stranger reports whether it is one.
func (p *peer) stranger() bool { return p.from.IsValid() }

// half is how many strangers there may be, and how many others that are not connected.
func (n *Node) half() int { return (n.cfg.Peers + 1) / 2 }

// stranger is reconnect.PeersConfig.Unknown: a node that nobody here has sent anything has dialled.
func (n *Node) stranger(s reconnect.Stranger) *actor.PID {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, from := n.peers[s.Node], s.From.Addr()
	switch {
	case p != nil:
	case n.closing || len(n.peers) >= n.cfg.Peers:
		return nil
	case !n.strangers.May(from, n.half()):
		n.forgetOneLocked(from)
		return nil
	default:
		p = n.newLinkLocked(s.Node, "", from)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil || p.ended {
		return nil
	}
	n.connectLocked(p, "")
	return p.conn
}

// forgetOneLocked has this node forget a stranger from an address that is only remembered, so that
// another one finds a place when it dials again.
func (n *Node) forgetOneLocked(from netip.Addr) {
	var oldest *peer
	for _, p := range n.peers {
		if p.stranger() && fairshare.Network(p.from) == fairshare.Network(from) && p.idle() && (oldest == nil || p.number < oldest.number) {
			oldest = p
		}
	}
	if oldest != nil {
		n.sys.Root.Send(oldest.link, &forgotten{})
	}
}

// idle reports whether nothing waits for it, and it is not connected.
func (p *peer) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn == nil && !p.waitsLocked()
}
