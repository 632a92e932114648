package remoting

import (
	"fmt"

	"github.com/rdmactor/rdmactor/internal/plain"
)

// The events on the actor system's EventStream, besides *Refused. Subscribers are called off the
// loops, for each peer one event after the other.
type (
	// Connected: this node and the peer have admitted each other.
	Connected struct{ Peer Peer }
	// NotAdmitted: the peer was refused, or has refused this node, by Config.Admit. Or a dial has
	// failed because one side does not believe who the other is: *rdma.HandshakeError, as of a key
	// or a certificate, or reconnect.ErrWrongIdentity. That comes once until they are connected,
	// and at the side that dials.
	NotAdmitted struct {
		Peer Peer // only the Name is known before the peer's hello
		Err  error
	}
	// Disconnected: the connection with the peer has ended. The watches between the two have ended
	// (AddressTerminated), and the futures whose requests had been sent have got *Unknown.
	Disconnected struct {
		Peer Peer
		Err  error // why; nil: it was ended in order
		// messages that wait for the next connection, for Config.Patience at most
		Unsent int
		// messages that were sent, and may or may not have reached the peer. They are not repeated.
		Unknown int
		// further unsent or unknown messages by which Proto.Actor keeps a cluster running, such as
		// gossip
		Upkeep int
	}
	// NotSent: so many messages, and requests of futures, become dead letters now, because the
	// peer is not connected. Err is ErrUnreachable, and in it why the last attempt to connect has
	// failed; or ErrShutdown. A request for a peer whose last dial has failed is *Refused.
	NotSent struct {
		Peer     Peer // of a peer that has not been connected, only the Name is known
		Messages int
		Err      error
	}
	// Unreported: so many events and dead letters of the peer's were dropped, because subscribers
	// have been too slow for twice Config.Queue. It is published when they have caught up, and at
	// the end of this node's state of the peer.
	Unreported struct {
		Peer  Peer
		Count uint64
	}
)

// String is one line for logs.
func (c *Connected) String() string { return "connected with " + plain.Quote(c.Peer.Name) }

// String is one line for logs.
func (d *Disconnected) String() string {
	return fmt.Sprintf("disconnected from %s%s: %d messages unsent, %d unknown", plain.Quote(d.Peer.Name), causeText(d.Err), d.Unsent, d.Unknown)
}

// String is one line for logs.
func (n *NotSent) String() string {
	return fmt.Sprintf("%d messages for %s were not sent: %v", n.Messages, plain.Quote(n.Peer.Name), n.Err)
}

// String is one line for logs.
func (u *Unreported) String() string {
	return fmt.Sprintf("%d events and dead letters of %s were dropped: subscribers are too slow", u.Count, plain.Quote(u.Peer.Name))
}

// String is one line for logs.
func (a *NotAdmitted) String() string {
	return fmt.Sprintf("not connected with %s: %v", plain.Quote(a.Peer.Name), a.Err)
}
