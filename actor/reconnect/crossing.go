package reconnect

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// request is a peer's request, for the link to answer.
type request struct {
	from   netip.Addr
	hello  hello
	proved bool // the node id is proved
}

// answerRequest answers a peer's request. Either it is accepted, and its connection is the next
// generation, or it is rejected.
func (l *link) answerRequest(ctx actor.Context, ev *rdma.ConnectRequest) {
	h, user, ok := parseHello(ev.PrivateData)
	if !ok || l.cfg.Peers == nil || h.node != l.cfg.Peer {
		l.rt.Logger().Error("reconnect: Unknown has returned the actor of another node", "actor", l.self, "node", h.node)
		ctx.Respond(&rdma.Reject{})
		return
	}
	r := request{hostAddr(ev.Peer), h, l.cfg.Peers.hasIdentity(ev.Identity)}
	kind := l.judgeRequest(r)
	if kind == helloRequest && !l.local.Has(ev.ID) {
		kind = helloAgain // the request could not be moved to this loop
		l.logMissingPlace()
	}
	if kind == helloRequest {
		l.acceptRequest(ctx, ctx.Sender(), r, user)
		return
	}
	if l.local.Has(ev.ID) && l.challengePeer(ctx, challenger{r, ctx.Sender(), append([]byte(nil), user...), kind}) {
		return
	}
	ctx.Respond(&rdma.Reject{PrivateData: l.cfg.Peers.newHello(kind).encodeWith(nil)})
}

// acceptRequest accepts a request, whose connection is the next generation.
func (l *link) acceptRequest(ctx actor.Context, id *actor.PID, r request, user []byte) {
	l.rejectChallenger(ctx)
	switch l.state {
	case LinkDialling:
		l.endGeneration(ctx, ErrSimultaneous, l.local.Now(), thenAccept)
	case LinkUp, LinkAccepting:
		if l.state == LinkUp {
			l.recordLoss(ctx, ErrReplaced)
		}
		l.endGeneration(ctx, ErrReplaced, l.local.Now(), thenAccept)
	}
	l.leaveQueue()
	l.generation++
	l.id, l.peer, l.peerAt = id, r.hello, r.from
	l.user = append([]byte(nil), user...)
	l.enterState(LinkAccepting)
	ctx.Request(id, &rdma.Accept{PrivateData: l.cfg.Peers.newHello(helloRequest).encodeWith(nil)})
}

// logMissingPlace logs, once, that connections arrive at other loops because a listener has no
// Place.
func (l *link) logMissingPlace() {
	if p := l.cfg.Peers; !p.places.Load() && !p.reminded.Swap(true) {
		l.rt.Logger().Error("reconnect: a request came to another loop than its node's actor, and is rejected: the listener needs Peers.Place, too (Peers.Listener)", "actor", l.self)
	}
}

// dialStands is how long the dial of the lower node id keeps the other node's out. It should have
// arrived by then, unless the other node cannot be dialled from here. The node whose dial was kept
// out waits at least as long before the next one. With shorter pauses its dials would collide with
// the other's again and again.
const dialStands = time.Second

// judgeRequest decides on a request. helloRequest: it is accepted. Every other kind is the reason
// of a rejection.
func (l *link) judgeRequest(r request) helloKind {
	live := l.state == LinkUp || l.state == LinkAccepting
	elsewhere := r.from != l.peerAt && !r.proved // from another address than the present peer
	switch h := r.hello; {
	case l.closing:
		return helloAgain
	case live && elsewhere && r.from == l.home:
		return helloRequest
	case live && elsewhere:
		return helloElsewhere
	case live && h.incarnation < l.peer.incarnation:
		return helloStale
	case live && h.incarnation == l.peer.incarnation && !h.isAfter(l.peer):
		// it is from a dial that was given up for the present connection
		return helloSimultaneous
	case l.state == LinkDialling && l.cfg.Peers.cfg.Node < h.node && l.local.Now().Sub(l.dialSince) < dialStands:
		return helloSimultaneous
	}
	return helloRequest
}

// checkPeer checks the reply of the peer that has accepted this side's dial. If the peer has
// dialled, judgeRequest has done so.
func (l *link) checkPeer(ev *rdma.Established) error {
	if l.state == LinkAccepting {
		ev.PrivateData = l.user
		return nil
	}
	if err := l.checkIdentity(ev); err != nil {
		return err
	}
	l.peer, l.peerAt = hello{}, hostAddr(ev.Peer)
	h, user, ok := parseHello(ev.PrivateData)
	switch {
	case !ok:
		return nil // the peer has no Peers
	case h.node != l.cfg.Peer:
		return fmt.Errorf("%w: %d, not %d", ErrWrongNode, h.node, l.cfg.Peer)
	}
	l.peer, l.home, ev.PrivateData = h, l.peerAt, user
	return nil
}

// rejectReason returns why the peer's node has rejected this side's dial; nil: f is no such
// rejection.
func (l *link) rejectReason(f rdma.Failure) error {
	r, ok := f.(*rdma.Rejected)
	if !ok || l.cfg.Peers == nil {
		return nil
	}
	h, _, ok := parseHello(r.PrivateData)
	if !ok {
		return nil
	}
	return h.kind.asError()
}
