package reconnect

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A node whose machine has lost its power may come back while its peer still has a connection to
// the process before. So a request that is to be rejected in favor of the present connection waits,
// and the present peer is challenged (rdma.Line.Challenge). If it answers, the request is rejected.
// If not, its connection ends, and the request is accepted.
//
// A peer that answers keeps its place, however many requests for it arrive. One request at a time
// waits, and challenges begin at least challengeInterval apart. All other requests are rejected
// immediately.

// challengeInterval is the time between the beginnings of two challenges.
const challengeInterval = 5 * time.Second

// challenger is a request that waits for the answer to a challenge.
type challenger struct {
	request
	id   *actor.PID
	user []byte
	kind helloKind // why the request is rejected if the peer answers
}

// vouched is a message to the link itself: the peer has answered a challenge.
type vouched struct{ generation uint64 }

// challengePeer challenges the present peer on behalf of a request that is to be rejected. False:
// the request has to be rejected now.
func (l *link) challengePeer(ctx actor.Context, c challenger) (waits bool) {
	now := l.local.Now()
	switch {
	case l.state != LinkUp || c.kind != helloElsewhere && c.kind != helloStale:
		return false
	case l.challenger != nil || !l.challenged.IsZero() && now.Sub(l.challenged) < challengeInterval:
		return false
	}
	self, root, m := l.self, ctx.ActorSystem().Root, &vouched{l.generation}
	if !l.out.line.Challenge(func() { root.Send(self, m) }) {
		return false
	}
	l.challenged, l.challenger = now, &c
	return true
}

// rejectChallenger rejects the request that waits for the answer to a challenge.
func (l *link) rejectChallenger(ctx actor.Context) {
	if c := l.challenger; c != nil {
		l.challenger = nil
		ctx.Request(c.id, &rdma.Reject{PrivateData: l.cfg.Peers.newHello(c.kind).encodeWith(nil)})
	}
}

// destroyChallenger drops the request that waits if ctx's message is an event of its identifier:
// the requesting peer has gone.
func (l *link) destroyChallenger(ctx actor.Context) {
	if c := l.challenger; c != nil && c.id.Equal(ctx.Sender()) {
		l.challenger = nil
		ctx.Send(c.id, &rdma.DestroyID{}) // if it is ending already, this does nothing
	}
}

// acceptChallenger accepts the request that waits: the challenged peer has not answered, or its
// connection has ended in another way.
func (l *link) acceptChallenger(ctx actor.Context) {
	if c := l.challenger; c != nil {
		l.challenger = nil
		l.acceptRequest(ctx, c.id, c.request, c.user)
	}
}

// challengeError extends the error of a connection whose peer has not answered a challenge: it
// names the process that takes the peer's place.
func (l *link) challengeError(err error) error {
	if c := l.challenger; c != nil && errors.Is(err, rdma.ErrPeerLost) {
		return fmt.Errorf("%w; the process of incarnation %d at %v takes its place", err, c.hello.incarnation, c.from)
	}
	return err
}
