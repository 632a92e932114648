package remoting

import (
	"net/netip"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Received messages belong to this node, also if the sending node leaves: its link stays until the
// targets have consumed them, or have consumed nothing for Patience. How much that is has a bound
// for all peers together, of which those of one address have as much as is left for all others.
// Messages beyond the bound are refused. Frames that were not read are dropped, because their
// messages may need much more memory than they do. Their sender has no confirmation of them, and
// one that leaves in order waits for that.

// leftMost is how many bytes may wait of all peers that are not connected.
const leftMost = 64 << 20

// behind counts the messages that a disconnected peer has left behind.
type behind struct {
	from  netip.Addr
	bytes int64 // included in leftovers
}

// leaveBehind keeps the waiting messages when a connection ends.
func (l *link) leaveBehind() {
	l.behind.from = l.who.At.Source()
	in := l.in.inbox
	in.Trim(l.keepWaiting(in.Backlog()))
	if l.keepWaiting(in.Backlog()) > 0 {
		in.Leave()
	}
}

// keepWaiting counts the waiting bytes, and returns how many of them may stay.
func (l *link) keepWaiting(waits int64) (may int64) {
	l.behind.bytes = l.host.leftovers.keepBytes(l.behind.from, l.behind.bytes, waits)
	return l.behind.bytes
}

// lookBehind notices that targets have consumed the messages that a peer has left behind.
func (l *link) lookBehind(ctx actor.Context) {
	if l.behind.bytes > 0 && l.keepWaiting(l.in.inbox.Backlog()) == 0 {
		l.in.inbox.Return()
		l.decideConnect(ctx)
	}
}

// peerReturned releases the waiting bytes, as the peer is connected again or the link ends.
func (l *link) peerReturned() {
	l.keepWaiting(0)
	l.in.inbox.Return()
}

// leftovers counts the waiting messages of all disconnected peers, by address. Any goroutine.
type leftovers struct {
	mu    sync.Mutex
	bytes fairshare.Shares[netip.Addr]
}

// keepBytes replaces the bytes that a peer had with wants, or with as many of them as it may have.
func (s *leftovers) keepBytes(from netip.Addr, had, wants int64) (may int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.bytes.Set(from, int(had), int(wants), leftMost))
}
