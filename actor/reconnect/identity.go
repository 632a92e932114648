package reconnect

import (
	"errors"
	"fmt"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A secured connection has the identity of its peer, but does not prove that the peer is the node
// that it claims to be: each node that has a key could pass for all others. PeersConfig.Proves
// decides which identity belongs to which node. It is called before a request can change anything,
// and before the owner of a dial is notified of its connection.

// ErrWrongIdentity: the peer is authenticated, but not as the node that it claims to be, or that
// was dialled (PeersConfig.Proves).
var ErrWrongIdentity = errors.New("the peer's identity is not that node's")

// mayBeNode reports whether a peer with this identity may be the node.
func (p *Peers) mayBeNode(identity string, node uint64) bool {
	return p.cfg.Proves == nil || p.cfg.Proves(identity, node)
}

// hasIdentity reports whether a peer that has passed mayBeNode has an authenticated identity.
func (p *Peers) hasIdentity(identity string) bool { return p.cfg.Proves != nil && identity != "" }

// identityReject returns the answer to a request of a peer that is not the node that it claims to
// be.
func (p *Peers) identityReject() *rdma.Reject {
	return &rdma.Reject{PrivateData: p.newHello(helloIdentity).encodeWith(nil)}
}

// checkIdentity checks the identity of the peer that has accepted this side's dial.
func (l *link) checkIdentity(ev *rdma.Established) error {
	if p := l.cfg.Peers; !p.mayBeNode(ev.Identity, l.cfg.Peer) {
		return fmt.Errorf("%w: %q, and it was dialled as node %d", ErrWrongIdentity, ev.Identity, l.cfg.Peer)
	}
	return nil
}
