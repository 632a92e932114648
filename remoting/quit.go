package remoting

import (
	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// failLink ends the link immediately: there is no connection, and none will be made.
func (l *link) failLink(ctx actor.Context, err error) {
	if !l.ended {
		l.failAll(ctx, err)
		l.stopActor(ctx)
	}
}

// failAll ends the connection, and answers everything that waits.
func (l *link) failAll(ctx actor.Context, err error) {
	if l.greeting == open {
		l.out.settlePosted()
		l.failOnLoss(ctx, err)
	}
	l.p.mu.Lock()
	conn := l.p.conn
	l.p.mu.Unlock()
	if conn != nil {
		ctx.Send(conn, &rdma.DestroyID{})
	}
	l.endIf(func() bool { return true })
	l.failWaiting(ctx, err)
}

// stopActor stops the link's actor, when the rest has ended. What still waits for slow targets of
// this node is refused, while the reporter can make it dead letters. Unread frames wait for Down.
func (l *link) stopActor(ctx actor.Context) {
	if l.up != nil && l.in.unread.Len() > 0 {
		l.greeting = refusing
		return
	}
	l.releaseResources()
	ctx.Stop(l.self)
}

// endIf ends the link if that is allowed: from then on nothing can be queued.
func (l *link) endIf(allowed func() bool) (ended bool) {
	kept := true // the grants
	defer func() {
		if !kept {
			l.host.rt.Logger().Warn("remoting: no room to remember what a peer may still answer: its answers will be refused when it is back", "peer", l.knownPeer().Name)
		}
	}()
	r, p := l.roster, l.p
	r.mu.Lock()
	defer r.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !allowed() {
		return false
	}
	l.ended, p.ended = true, true
	p.over.Store(true)
	if !r.closing {
		kept = r.departed.Keep(p.id, p.grants, l.local.Now())
	}
	p.grants = tables.Grants{} // a PID may keep the peer in memory
	p.releaseLocked()
	delete(r.peers, p.id)
	delete(r.linked, p.secret)
	r.ended[p] = struct{}{}
	if l.report.over {
		r.forgetLocked(p, p.countsLocked())
	}
	if p.isStranger() {
		r.strangers.Free(p.from)
	}
	l.countUnconnected(false)
	r.emptiedLocked()
	l.stopTimers()
	return true
}

// handleStopping handles a stop of the link from outside.
func (l *link) handleStopping(ctx actor.Context) {
	if l.ended {
		return
	}
	err := rdma.ErrStopped
	if l.host.down.Load() {
		err = ErrShutdown
		if l.hasUnsent() {
			l.host.shortfall.noteUnsent(l.knownPeer().Name, unix.ETIMEDOUT)
		}
	}
	l.failAll(ctx, err)
	l.releaseResources()
}

// releaseResources releases the resources of an ended link. Its peer may stay in memory for long:
// PIDs keep it.
func (l *link) releaseResources() {
	l.in.releaseUnread()
	l.peerReturned()
	l.in.inbox.Close()
	l.report.stopAfterQueue()
	l.p.mu.Lock()
	l.p.futures = tables.Futures{}
	l.p.mu.Unlock()
}
