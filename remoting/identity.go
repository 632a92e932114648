package remoting

import (
	"fmt"
)

// proves is reconnect.PeersConfig.Proves; nil: every peer may be every node.
func (n *Node) proves() func(identity string, node uint64) bool {
	if n.cfg.NodeOf == nil {
		return nil
	}
	return func(identity string, node uint64) bool {
		name := n.nodeOf(identity)
		return name != "" && nodeID(name) == node
	}
}

// mayBe is proves of a name, of which a node's id has only a part.
func (n *Node) mayBe(identity, name string) bool {
	return n.cfg.NodeOf == nil || name != "" && n.nodeOf(identity) == name
}

// nodeOf asks Config.NodeOf, which is the user's.
func (n *Node) nodeOf(identity string) (name string) {
	defer func() {
		if v := recover(); v != nil {
			n.rt.Logger().Error("remoting: NodeOf has panicked", "panic", v)
			name = ""
		}
	}()
	return n.cfg.NodeOf(identity)
}

// maySay returns an error if the peer may not say that a sender is at that node.
func (l *link) maySay(addr string) error {
	switch {
	case addr == "" || addr == l.who.Name || l.n.local(addr):
		return nil
	case l.n.cfg.OwnSenders:
		return fmt.Errorf("its sender is at another node (Config.OwnSenders): %w", ErrDenied)
	case !l.n.mayName(addr, l.who.At.Addr(), l.local.Now()):
		return fmt.Errorf("its sender is at another node, and too many have been named: %w", ErrDenied)
	}
	return nil
}
