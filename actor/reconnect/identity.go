package reconnect

import (
	"errors"
	"fmt"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A secured connection says who its peer is, but not that the peer is the node that it claims to
// be: each node that has a key could pass for all others. PeersConfig.Proves says which identity is
// which node's. It is asked before a request can change anything, and before the owner of a dial
// hears of its connection.

// ErrWrongIdentity: the peer is authenticated, but not as the node that it claims to be, or that
// was dialled (PeersConfig.Proves).
var ErrWrongIdentity = errors.New("the peer's identity is not that node's")

// proves reports whether a peer with this identity may be the node.
func (p *Peers) proves(identity string, node uint64) bool {
	return p.cfg.Proves == nil || p.cfg.Proves(identity, node)
}

// proved reports whether a peer that has passed has shown who it is, so that nothing follows from
// its address.
func (p *Peers) proved(identity string) bool { return p.cfg.Proves != nil && identity != "" }

// impostor is the answer to a request of who is not the node that it claims to be.
func (p *Peers) impostor() *rdma.Reject {
	return &rdma.Reject{PrivateData: p.hello(helloIdentity).put(nil)}
}

// checkIdentity checks who has accepted our dial.
func (l *link) checkIdentity(ev *rdma.Established) error {
	if p := l.cfg.Peers; !p.proves(ev.Identity, l.cfg.Peer) {
		return fmt.Errorf("%w: %q, and it was dialled as node %d", ErrWrongIdentity, ev.Identity, l.cfg.Peer)
	}
	return nil
}
