package remoting

import (
	"net/netip"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// What was received is this node's, also if the node that has sent it leaves: its link stays until
// the targets have consumed it, or have consumed nothing for Patience. How much that is has a bound
// for all peers together, of which those of one address have as much as is left for all others.
// What is beyond is refused. Frames that were not read are dropped, because what is in them may
// need much more memory than they do. Their sender has no confirmation of them, and one that leaves
// in order waits for that.

// leftMost is how many bytes may wait of all peers that are not connected.
const leftMost = 64 << 20

// behind is what a peer that is not connected has left behind.
type behind struct {
	from  netip.Addr
	bytes int64 // that count in leftovers
}

// leaveBehind keeps what waits when a connection ends.
func (l *link) leaveBehind() {
	l.behind.from = l.who.At.Source()
	l.in.drop()
	in := l.in.inbox
	in.Trim(l.keep(in.Backlog()))
	if l.keep(in.Backlog()) > 0 {
		in.Leave()
	}
}

// keep counts what waits, and returns how much of it may.
func (l *link) keep(waits int64) (may int64) {
	l.behind.bytes = l.host.leftovers.keep(l.behind.from, l.behind.bytes, waits)
	return l.behind.bytes
}

// lookBehind notices that targets have consumed what a peer has left behind.
func (l *link) lookBehind(ctx actor.Context) {
	if l.behind.bytes > 0 && l.keep(l.in.inbox.Backlog()) == 0 {
		l.in.inbox.Return()
		l.consider(ctx)
	}
}

// back takes note that the peer is connected again, or that the link ends.
func (l *link) back() {
	l.keep(0)
	l.in.inbox.Return()
}

// leftovers is what waits of all peers that are not connected, by addresses. Any goroutine.
type leftovers struct {
	mu    sync.Mutex
	bytes fairshare.Shares[netip.Addr]
}

// keep replaces the bytes that a peer had with wants, or with as many of them as it may have.
func (s *leftovers) keep(from netip.Addr, had, wants int64) (may int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.bytes.Set(from, int(had), int(wants), leftMost))
}
