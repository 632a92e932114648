package remoting

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// unproved are the peers whose last dials have failed because one side does not believe who the
// other is. Without an end of its own a node would dial such a peer with each message, and log it
// each time: a link does not live as long as that. They belong to the node's mutex.
type unproved map[uint64]struct{}

// isUnproved reports whether a dial has failed because of keys, certificates or identities.
func isUnproved(err error) bool {
	if errors.Is(err, reconnect.ErrWrongIdentity) {
		return true
	}
	_, ok := errors.AsType[*rdma.HandshakeError](err)
	return ok && !errors.Is(err, unix.EAGAIN)
}

// notProved publishes that the peer was not reached because of who it is, or who this node is.
// first: that was not so the last time.
func (l *link) notProved(ctx actor.Context, err error) (first bool) {
	if !l.n.noteUnproved(l.p.id) {
		return false
	}
	l.notify(ctx, &NotAdmitted{Peer: l.whom(), Err: err})
	return true
}

// noteUnproved remembers such a peer. When there are more than peers may be, it begins anew.
func (n *Node) noteUnproved(id uint64) (first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.unproved[id]; ok {
		return false
	}
	if n.unproved == nil || len(n.unproved) >= n.cfg.Peers {
		n.unproved = make(unproved)
	}
	n.unproved[id] = struct{}{}
	return true
}

// proved forgets that a peer could not be reached because of who it is.
func (n *Node) proved(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.unproved, id)
}
