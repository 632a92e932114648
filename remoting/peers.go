package remoting

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/fairshare"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// open is the peer of that name, which is made if there is none.
func (r *roster) open(name string) (*peer, error) {
	if name == "" || r.local(name) || len(name) > frame.MaxName {
		return nil, ErrNotRemote
	}
	id := nodeID(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch p := r.peers[id]; {
	case r.closing:
		return nil, ErrShutdown
	case p != nil:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.name == "" {
			p.name = name // it has connected, and not said its name yet
		}
		return p, nil
	case len(r.peers) >= r.cfg.Peers || r.unconnected.Load() >= int64(r.half()):
		return nil, ErrTooManyPeers
	}
	return r.newLinkLocked(id, name, netip.Addr{}), nil
}

// newLinkLocked makes a peer and its link. from: it is a stranger, from there. r.mu is locked.
func (r *roster) newLinkLocked(id uint64, name string, from netip.Addr) *peer {
	r.links++
	p := newPeer(r.host, id, r.links, name)
	p.from, p.secret = from, r.rt.Scheduler().Uint64()
	p.futures = tables.MakeFutures(p.secret)
	l := newLink(r, p)
	props := actor.PropsFromProducer(func() actor.Actor { return l }, r.rt.OnLoop(), resuming)
	pid, err := r.sys.Root.SpawnNamed(props, r.own+"/link-"+strconv.FormatUint(r.links, 10))
	if err != nil { // the name is the node's own
		panic(fmt.Sprintf("remoting: BUG: %v", err))
	}
	p.link = pid
	l.report = r.newReporterLocked(p, pid)
	r.peers[id], r.linked[p.secret] = p, p
	if p.stranger() {
		r.strangers.Take(from)
	}
	l.count(true)
	return p
}

// A stranger is a peer that has come by itself, before this node has sent it anything. It is one
// for as long as this node remembers it, connected or not. So who comes again and again, by names
// that he invents, takes no places of the peers that this node sends to, and not all of the
// strangers' either.

// stranger is reconnect.PeersConfig.Unknown: a node that nobody here has sent anything has dialled.
func (r *roster) stranger(s reconnect.Stranger) *actor.PID {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, from := r.peers[s.Node], s.From.Addr()
	switch {
	case p != nil:
	case r.closing || len(r.peers) >= r.cfg.Peers:
		return nil
	case !r.strangers.May(from, r.half()):
		r.forgetOneLocked(from)
		return nil
	default:
		p = r.newLinkLocked(s.Node, "", from)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil || p.ended {
		return nil
	}
	r.connectLocked(p, "")
	return p.conn
}

// forgetOneLocked has this node forget a stranger from an address that is only remembered, so that
// another one finds a place when it dials again.
func (r *roster) forgetOneLocked(from netip.Addr) {
	var oldest *peer
	for _, p := range r.peers {
		if p.stranger() && fairshare.Network(p.from) == fairshare.Network(from) && p.idle() && (oldest == nil || p.number < oldest.number) {
			oldest = p
		}
	}
	if oldest != nil {
		r.sys.Root.Send(oldest.link, &forgotten{})
	}
}
