package remoting

import (
	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// fall ends the link immediately: there is no connection, and none will be made.
func (l *link) fall(ctx actor.Context, err error) {
	if !l.ended {
		l.collapse(ctx, err)
		l.quit(ctx)
	}
}

// collapse ends the connection, and answers everything that waits.
func (l *link) collapse(ctx actor.Context, err error) {
	if l.greeting == open {
		l.out.settle()
		l.lost(ctx, err)
	}
	l.p.mu.Lock()
	conn := l.p.conn
	l.p.mu.Unlock()
	if conn != nil {
		ctx.Send(conn, &rdma.DestroyID{})
	}
	l.endIf(func() bool { return true })
	l.unreachable(ctx, err)
}

// quit stops the link's actor, when the rest has ended. What still waits for slow targets of this
// node is refused, while the reporter can make it dead letters. Unread frames wait for Down.
func (l *link) quit(ctx actor.Context) {
	if l.up != nil && l.in.unread.Len() > 0 {
		l.greeting = refusing
		return
	}
	l.close()
	ctx.Stop(l.self)
}

// endIf ends the link if that is allowed: from then on nothing can be queued.
func (l *link) endIf(allowed func() bool) (ended bool) {
	kept := true // the grants
	defer func() {
		if !kept {
			l.host.rt.Logger().Warn("remoting: no room to remember what a peer may still answer: its answers will be refused when it is back", "peer", l.whom().Name)
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
	if p.stranger() {
		r.strangers.Free(p.from)
	}
	l.count(false)
	r.emptiedLocked()
	l.stopTimers()
	return true
}

// stopping handles a stop of the link from outside.
func (l *link) stopping(ctx actor.Context) {
	if l.ended {
		return
	}
	err := rdma.ErrStopped
	if l.host.down.Load() {
		err = ErrShutdown
		if l.owes() {
			l.host.shortfall.noteUnsent(l.whom().Name, unix.ETIMEDOUT)
		}
	}
	l.collapse(ctx, err)
	l.close()
}

// close releases the resources of an ended link. Its peer may stay in memory for long: PIDs keep
// it.
func (l *link) close() {
	l.in.drop()
	l.back()
	l.in.inbox.Close()
	l.report.end()
	l.p.mu.Lock()
	l.p.futures = tables.Futures{}
	l.p.mu.Unlock()
}
