package remoting

// NodeID is what stands for a name where a number is needed.
var NodeID = nodeID

// Blocked is how many senders wait for room in the queue for the node of that name.
func (n *Node) Blocked(name string) int {
	p := n.find(nodeID(name))
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.user.Waiters()
}
