package remoting

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// openPeer returns the peer of that name, and makes it if there is none.
func (r *roster) openPeer(name string) (*peer, error) {
	if name == "" || r.isLocal(name) || len(name) > frame.MaxName {
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
			p.name = name // it has connected, and its hello has not arrived
		}
		return p, nil
	case len(r.peers) >= r.cfg.Peers || r.unconnected.Load() >= int64(r.halfPeers()):
		return nil, ErrTooManyPeers
	}
	return r.newLinkLocked(id, name, netip.Addr{}), nil
}

// newLinkLocked makes a peer and its link. from: it is a stranger, from there. r.mu is locked.
func (r *roster) newLinkLocked(id uint64, name string, from netip.Addr) *peer {
	r.links++
	p := newPeer(r.host, id, r.links, name)
	p.from, p.secret = from, r.rt.Scheduler().Uint64()
	p.futures, p.grants = tables.MakeFutures(p.secret), r.departed.Take(id)
	l := newLink(r, p)
	props := actor.PropsFromProducer(func() actor.Actor { return l }, r.rt.OnLoop(), resuming)
	pid, err := r.sys.Root.SpawnNamed(props, r.own+"/link-"+strconv.FormatUint(r.links, 10))
	if err != nil { // the name is the node's own
		panic(fmt.Sprintf("remoting: BUG: %v", err))
	}
	p.link = pid
	l.report = r.newReporterLocked(p, pid)
	r.peers[id], r.linked[p.secret] = p, p
	if p.isStranger() {
		r.strangers.Take(from)
	}
	l.countUnconnected(true)
	return p
}

// A stranger is a peer that has dialled before this node sent it anything. It is one until its link
// ends. So a peer that dials under ever new names takes no places of the peers that this node sends
// to, and not all places of strangers.

// addStranger implements reconnect.PeersConfig.Unknown: a node that was sent nothing has dialled.
func (r *roster) addStranger(s reconnect.Stranger) *actor.PID {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, from := r.peers[s.Node], s.From.Source()
	switch {
	case p != nil:
	case r.closing || len(r.peers) >= r.cfg.Peers || !r.strangers.May(from, r.halfPeers()):
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
