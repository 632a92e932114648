package remoting

// Peers reports on the nodes that this one deals with, in the order in which it has begun to. It
// waits for no loop. Any goroutine.
func (n *Node) Peers() []PeerInfo {
	peers, _ := n.Account()
	return peers
}

// Account is Peers, and what all those peers have counted that this node has forgotten. No message
// is missing from both, and none is in both, so their sums only grow.
func (n *Node) Account() (peers []PeerInfo, forgotten Counts) {
	n.mu.Lock()
	list := n.peersLocked()
	forgotten = n.forgotten
	for p := range n.ended {
		forgotten.Add(p.peerInfo().Counts)
	}
	n.mu.Unlock()
	peers = make([]PeerInfo, 0, len(list))
	for _, p := range list {
		peers = append(peers, p.peerInfo())
	}
	return peers, forgotten
}

// Writable reports whether at most half of the queue for the node at addr is in use. It is a hint:
// others send, too. Any goroutine.
func (n *Node) Writable(addr string) bool {
	p := n.findPeer(nodeID(addr))
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.user.Bytes() <= p.user.Limit()/2
}
