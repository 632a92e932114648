package remoting

import (
	rdma "github.com/rdmactor/rdmactor/actor"
)

// Peer is another node.
type Peer struct {
	Name        string // the address in its PIDs
	Member      string // the id of its actor system, or its Config.Member
	Incarnation uint64
	At          rdma.Addr // where its device is
	// Identity is who it is, of a secured connection; "": unknown. The fields above are the peer's
	// claims, unless a comment states otherwise: Config.NodeOf checks the name against the
	// identity.
	Identity string
}

// PeerInfo describes a peer (Node.Peers).
type PeerInfo struct {
	Peer      Peer // of the latest connection; before the first one only the Name
	Connected bool
	Failure   error // of the last attempt to connect; nil: none since it was connected
	Waiting   int   // bytes that wait to be sent
	Futures   int   // waiting for answers of the peer
	Watching  int   // watches of this node's actors
	Watched   int   // watches of the peer's
	Counts    Counts
}

// Counts are messages, since the node has begun to deal with the peer.
type Counts struct {
	Sent        uint64 // accepted from this node's actors
	Received    uint64 // from the peer
	Overflowed  uint64 // found no room (Config.Overflow)
	DeadLetters uint64 // of Sent, those that were not sent in time
	Unknown     uint64 // of Sent, those that may or may not have arrived
	Refused     uint64 // of Received, those that were not delivered (*Refused)
	Late        uint64 // of Received, answers to futures that no longer wait
	Unreported  uint64 // events and dead letters dropped beside slow subscribers
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
