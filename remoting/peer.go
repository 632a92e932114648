package remoting

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// Peer is another node.
type Peer struct {
	Name        string // the address in its PIDs
	Member      string // the id of its actor system, or what its Config.Member says
	Incarnation uint64
	At          rdma.Addr // where its device is
	// Identity is who it is, of a secured connection; "": nobody knows. What is above is what the
	// peer says, or where it says so: Config.NodeOf holds it to it.
	Identity string
}

// peer is what this node keeps for another one, from the first message or connection until nothing
// waits and there is no connection. Any goroutine puts messages into it; its link, an actor on a
// loop, sends them.
type peer struct {
	node       *Node
	id         uint64        // made of the name
	link       *actor.PID    // the actor
	number     uint64        // among the node's links
	from       netip.Addr    // a stranger's: whence it came first; zero: it is none
	received   atomic.Uint64 // messages
	unreported atomic.Uint64 // events and dead letters

	over atomic.Bool // as ended, for those who do not lock mu

	mu          sync.Mutex
	name        string     // "": it has connected, and not said yet
	conn        *actor.PID // its reconnecting actor; nil: none
	connections int        // made so far
	ended       bool       // it takes nothing any more: the next message makes another peer
	state       linkState
	who         Peer // while it is connected
	most        int  // bytes that it takes in one message; 0: not known
	awake       bool // the link knows that something waits
	stuck       bool // the link knows that system messages find no room
	user        lane
	system      lane
	futures     futures
	watches     watches
	grants      grants
	spawns      spawns
	waiters     waiters
	counts      Counts
}

// linkState is how far the link is.
type linkState uint8

const (
	linkDown   linkState = iota // there is no connection, and perhaps a dial is under way
	linkBroken                  // the last dial has failed, and another follows after a pause
	linkOpen                    // both sides have admitted each other
)

func newPeer(n *Node, id uint64, name string) *peer {
	p := &peer{node: n, id: id, name: name}
	p.futures.prefix = slotPrefix
	p.user.limit, p.system.limit = n.cfg.Queue, max(n.cfg.Queue/systemShare, frameBytes)
	return p
}

// alive reports whether this node has a process of that name.
func (n *Node) alive(id string) bool {
	_, ok := n.sys.ProcessRegistry.GetLocal(id)
	return ok
}

// outgoing is a message on its way out, not encoded.
type outgoing struct {
	target *actor.PID
	header actor.ReadonlyMessageHeader
	msg    any
	sender *actor.PID
	future actor.Process // the sender's, if it is a future of this node's
	room   *peer         // where room is reserved for it; nil: nowhere
}

// verdict is what has become of a message.
type verdict uint8

const (
	accepted  verdict = iota
	elsewhere         // the peer has ended: another one takes it
	full              // there is no room
	refused           // for the error
)

// put queues a user message. m is what is encoded in r.
func (p *peer) put(r *frame.Record, m *outgoing) (v verdict, err error) {
	size := r.Size()
	p.mu.Lock()
	first := m.room == p || p.waiters.Len() == 0
	p.unreserveLocked(m, size)
	if v, err = p.putLocked(r, m, size, first); v == accepted {
		p.unlock()
		return v, nil
	}
	p.releaseLocked() // what was reserved for it is the next one's
	p.mu.Unlock()
	return v, err
}

// putLocked queues a message of this size. first: nobody waits for room before it.
func (p *peer) putLocked(r *frame.Record, m *outgoing, size int, first bool) (verdict, error) {
	switch {
	case p.ended:
		return elsewhere, nil
	case size > frameBytes && p.most > 0 && size > p.most:
		return refused, fmt.Errorf("about %d bytes, and the peer takes %d: %w", size, p.most, ErrTooLarge)
	case size > p.user.limit:
		return refused, fmt.Errorf("about %d bytes, and the queue has %d: %w", size, p.user.limit, ErrTooLarge)
	case m.future != nil && p.state == linkBroken:
		return refused, ErrUnreachable
	case !first || !p.user.room(size+p.waiters.reserved):
		return full, nil
	case m.future != nil && !p.futures.room(p.node.alive):
		return refused, fmt.Errorf("%d futures wait: %w", futuresMost, ErrQueueFull)
	}
	if m.future != nil {
		r.Sender.ID, r.Sender.Request = p.futures.next(), uint32(p.node.rt.Scheduler().Uint64())
	}
	if err := p.user.append(r, size); err != nil {
		return refused, err
	}
	p.counts.Sent++
	switch {
	case m.future != nil:
		p.futures.add(request{target: m.target, future: m.sender, proc: m.future, packet: p.user.number, token: r.Sender.Request})
	case r.Sender.ID != "" && r.Sender.Address == "":
		if proc, ok := p.node.sys.ProcessRegistry.GetLocal(m.sender.Id); ok {
			p.grants.sent(m.sender.Id, proc)
		}
	}
	return accepted, nil
}

// putSystem queues a record of our own, if before allows it, which is called first, with the lock.
func (p *peer) putSystem(r *frame.Record, before func(*peer) bool) (queued, ended bool) {
	p.mu.Lock()
	switch {
	case p.ended:
		p.mu.Unlock()
		return false, true
	case before != nil && !before(p):
		p.mu.Unlock()
		return false, false
	}
	p.putSystemLocked(r)
	p.unlock()
	return true, false
}

// putSystemLocked queues a record of our own. If there is no room for it the link cannot go on,
// because the peer would wait for ever for what it does not get.
func (p *peer) putSystemLocked(r *frame.Record) {
	switch {
	case p.system.room(r.Size()):
		// a name that no frame takes is none of the peer's actors'
		_ = p.system.append(r, r.Size())
	case !p.stuck && p.state == linkOpen: // another one has no answers of ours to send
		p.stuck = true
		p.node.sys.Root.Send(p.link, stuckMsg)
	}
}

// unlock unlocks mu, and wakes the link if it does not know yet that something waits.
func (p *peer) unlock() {
	wake := !p.awake && !p.ended
	p.awake = true
	p.mu.Unlock()
	if wake {
		p.node.sys.Root.Send(p.link, flushMsg)
	}
}
