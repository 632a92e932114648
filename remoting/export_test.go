package remoting

// NodeID is what stands for a name where a number is needed.
var NodeID = nodeID

// Blocked is how many senders wait for room in the queue for the node of that name.
func (n *Node) Blocked(name string) int {
	p := n.findPeer(nodeID(name))
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.user.Waiters()
}

// LeftMost bounds the bytes that wait of all peers that have left.
const LeftMost = leftMost

// Leftovers is how many there are.
func (n *Node) Leftovers() int {
	n.leftovers.mu.Lock()
	defer n.leftovers.mu.Unlock()
	return n.leftovers.bytes.Total()
}

// BeginShutdown does what Shutdown does first.
func (n *Node) BeginShutdown() { n.beginShutdown() }
