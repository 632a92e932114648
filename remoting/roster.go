package remoting

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/fairshare"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// roster is the peers that a node deals with, and what bounds their number.
type roster struct {
	*host
	table *reconnect.Peers // nil: it does not listen yet

	mu        sync.Mutex
	peers     map[uint64]*peer             // keyed by the id of the node
	linked    map[uint64]*peer             // keyed by the secret
	ended     map[*peer]struct{}           // removed from both; their reporters still run
	forgotten Counts                       // of those whose reporters have ended, too
	strangers fairshare.Shares[netip.Addr] // of peers, those that are
	departed  tables.Departed
	named     tables.Named
	unproved  tables.Unproved
	links     uint64 // made so far
	reporters int    // there are
	closing   bool
	alone     chan struct{} // closed when closing and there are no peers
	idle      chan struct{} // closed when there are no reporters either

	unconnected atomic.Int64 // peers that are not connected, and no strangers
}

func newRoster(h *host) *roster {
	return &roster{
		host: h, peers: make(map[uint64]*peer), linked: make(map[uint64]*peer), ended: make(map[*peer]struct{}),
		alone: make(chan struct{}), idle: make(chan struct{}),
	}
}

// halfPeers returns how many strangers there may be, and how many others that are not connected.
func (r *roster) halfPeers() int { return (r.cfg.Peers + 1) / 2 }

// findPeer returns the peer with that id; nil: there is none.
func (r *roster) findPeer(id uint64) *peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peers[id]
}

// findAsker returns the peer whose futures have a slot of that name; nil: there is none.
func (r *roster) findAsker(name string) *peer {
	secret, ok := tables.LinkOf(name)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.linked[secret]
}

// peersLocked returns the peers in the order in which they were made.
func (r *roster) peersLocked() []*peer {
	return slices.SortedFunc(maps.Values(r.peers), func(a, b *peer) int { return int(a.number) - int(b.number) })
}

// closeLinks sends m to every link, and prevents new ones.
func (r *roster) closeLinks(m any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = true
	r.emptiedLocked()
	r.tellLocked(m)
}

// tellLocked sends every link m.
func (r *roster) tellLocked(m any) {
	for _, p := range r.peersLocked() {
		r.sys.Root.Send(p.link, m)
	}
}

// stopLinks ends every link immediately. They can be stopped also if the runtime was shut down,
// when messages no longer reach them.
func (r *roster) stopLinks() {
	r.mu.Lock()
	peers := r.peersLocked()
	r.mu.Unlock()
	for _, p := range peers {
		r.sys.Root.Stop(p.link)
	}
}

// forgetLocked keeps only the counts of a peer that has ended. r.mu is locked.
func (r *roster) forgetLocked(p *peer, c Counts) {
	if _, ended := r.ended[p]; ended {
		delete(r.ended, p)
		r.forgotten.Add(c)
	}
}

// emptiedLocked closes idle when there are no links and none can come.
func (r *roster) emptiedLocked() {
	if r.closing && len(r.peers) == 0 {
		closeOnce(r.alone)
		if r.reporters == 0 {
			closeOnce(r.idle)
		}
	}
}

// closeOnce closes c, once.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// mayName reports whether a peer may name a sender at another node. A quarter of the peers that
// this node may have are for those that it has not met.
func (r *roster) mayName(addr string, from netip.Addr, now time.Time) bool {
	if r.isLocal(addr) {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.peers[nodeID(addr)]; p != nil && p.hasMet() {
		return true
	}
	return r.named.May(addr, from, (r.cfg.Peers+3)/4, r.cfg.Patience, now)
}

// noteUnproved remembers that a peer could not be reached because of who it is, or this node.
func (r *roster) noteUnproved(id uint64) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unproved.Note(id, r.cfg.Peers)
}

// forgetUnproved forgets that a peer could not be reached because of who it is.
func (r *roster) forgetUnproved(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unproved.Forget(id)
}
