package remoting

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/outbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// peer is the state that this node keeps for another one, from the first message or connection
// until no messages wait and there is no connection. Any goroutine puts messages into it; its link,
// an actor on a loop, sends them.
type peer struct {
	host       *host
	id         uint64        // made of the name
	link       *actor.PID    // the actor
	number     uint64        // among the node's links
	secret     uint64        // names its futures to the nodes that may answer them
	from       netip.Addr    // a stranger's: whence it came first; zero: it is none
	received   atomic.Uint64 // messages
	unreported atomic.Uint64 // events and dead letters

	over atomic.Bool // as ended, for those who do not lock mu

	mu          sync.Mutex
	name        string     // "": it has connected, and its hello has not arrived
	conn        *actor.PID // its reconnecting actor; nil: none
	connections int        // made so far
	ended       bool       // it accepts nothing: the next message makes another peer
	state       linkState
	failure     error // of the last attempt to connect; nil: none since it was connected
	who         Peer  // while it is connected
	most        int   // bytes that it takes in one message; 0: not known
	awake       bool  // the link knows that something waits
	stuck       bool  // the link knows that system messages find no room
	user        outbox.Queue
	system      outbox.Lane
	futures     tables.Futures
	watches     tables.Watches
	grants      tables.Grants
	spawns      tables.Spawns
	counts      Counts
}

// linkState is how far the link is.
type linkState uint8

const (
	linkDown   linkState = iota // there is no connection, and perhaps a dial is under way
	linkBroken                  // the last dial has failed, and another follows after a pause
	linkOpen                    // both sides have admitted each other
)

func newPeer(h *host, id, number uint64, name string) *peer {
	p := &peer{host: h, id: id, number: number, name: name, futures: tables.MakeFutures(number)}
	p.user, p.system = outbox.MakeQueue(h.cfg.Queue), outbox.MakeLane(max(h.cfg.Queue/systemShare, outbox.FrameBytes))
	return p
}

// isStranger reports whether the peer is a stranger.
func (p *peer) isStranger() bool { return p.from.IsValid() }

// hasMet reports whether there has been a connection.
func (p *peer) hasMet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most > 0
}

// waitsLocked reports whether something waits for the peer.
func (p *peer) waitsLocked() bool { return !p.user.Empty() || !p.system.Empty() }

// readyLocked reports whether something may be sent.
func (p *peer) readyLocked() bool { return p.user.Ready() || !p.system.Empty() }

// sendersLocked calls do for the local senders of queued messages.
func (p *peer) sendersLocked(do func(sender string)) {
	p.user.Each(func(r *frame.Record) {
		if r.Sender.ID != "" && r.Sender.Address == "" {
			do(r.Sender.ID)
		}
	})
}

func (p *peer) peerInfo() PeerInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	ours, theirs := p.watches.Len()
	p.futures.Sweep(p.host.hasProcess)
	i := PeerInfo{
		Peer: p.who, Connected: p.state == linkOpen, Failure: p.failure, Waiting: p.user.Bytes() + p.system.Bytes(), Futures: p.futures.Waiting(),
		Watching: ours, Watched: theirs, Counts: p.countsLocked(),
	}
	i.Peer.Name = p.name
	return i
}

func (p *peer) countsLocked() Counts {
	c := p.counts
	c.Received, c.Unreported = p.received.Load(), p.unreported.Load()
	return c
}

// What wakes a link: something waits, or system messages find no room.
type (
	flush struct{}
	stuck struct{}
)

var (
	flushMsg any = &flush{}
	stuckMsg any = &stuck{}
)
