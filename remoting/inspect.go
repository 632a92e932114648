package remoting

// PeerInfo is what Node.Peers says of a peer.
type PeerInfo struct {
	Peer      Peer // of the latest connection; before the first one only the Name
	Connected bool
	Waiting   int // bytes that wait to be sent
	Futures   int // that wait for answers of the peer
	Watching  int // watches of this node's actors
	Watched   int // watches of the peer's
	Counts    Counts
}

// Counts are messages, since the node has begun to deal with the peer.
type Counts struct {
	Sent        uint64 // accepted from this node's actors
	Received    uint64 // from the peer
	Overflowed  uint64 // found no room (Config.Overflow)
	DeadLetters uint64 // of Sent, those that were not sent in time
	Unknown     uint64 // of Sent, those of which nobody knows whether they have arrived
	Refused     uint64 // of Received, those that were not delivered (*Refused)
	Late        uint64 // of Received, answers to futures that nobody asks for any more
	Unreported  uint64 // events and dead letters dropped beside slow subscribers
}

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
		forgotten.Add(p.info().Counts)
	}
	n.mu.Unlock()
	peers = make([]PeerInfo, 0, len(list))
	for _, p := range list {
		peers = append(peers, p.info())
	}
	return peers, forgotten
}

// forgetLocked keeps only the counts of a peer that has ended. n.mu is locked.
func (n *Node) forgetLocked(p *peer, c Counts) {
	if _, ended := n.ended[p]; ended {
		delete(n.ended, p)
		n.forgotten.Add(c)
	}
}

// Add adds what another peer has counted.
func (c *Counts) Add(more Counts) {
	c.Sent += more.Sent
	c.Received += more.Received
	c.Overflowed += more.Overflowed
	c.DeadLetters += more.DeadLetters
	c.Unknown += more.Unknown
	c.Refused += more.Refused
	c.Late += more.Late
	c.Unreported += more.Unreported
}

func (p *peer) info() PeerInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := PeerInfo{
		Peer: p.who, Connected: p.state == linkOpen, Waiting: p.user.bytes + p.system.bytes, Futures: p.futures.waiting(),
		Watching: p.watches.ours.len(), Watched: p.watches.theirs.len(), Counts: p.countsLocked(),
	}
	i.Peer.Name = p.name
	return i
}

func (p *peer) countsLocked() Counts {
	c := p.counts
	c.Received, c.Unreported = p.received.Load(), p.unreported.Load()
	return c
}

// Writable reports whether at most half of the queue for the node at addr is in use. It is a hint:
// others send, too. Any goroutine.
func (n *Node) Writable(addr string) bool {
	p := n.find(nodeID(addr))
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.user.bytes <= p.user.limit/2
}
