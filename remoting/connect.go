package remoting

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/plain"
)

// connectLocked makes the reconnecting actor of a peer, which dials addr. p.mu is locked.
func (r *roster) connectLocked(p *peer, addr string) {
	cfg := reconnect.Config{
		Dial: r.cfg.Dial, ID: r.cfg.ID, Resolve: r.cfg.Resolve, FailFast: true, Backoff: r.cfg.Backoff,
		Permanent: func(rdma.Failure) bool { return false }, Peers: r.table, Peer: p.id,
	}
	cfg.Dial.Addr = addr
	// the addresses of a name share Patience, which ends the dial a moment before Timeout would
	cfg.Dial.Timeout = cmp.Or(max(cfg.Dial.Timeout, 0), r.cfg.Patience+time.Second)
	p.connections++
	pid, err := r.sys.Root.SpawnNamed(reconnect.Props(r.rt, p.link, cfg), p.link.Id+"/connection-"+strconv.Itoa(p.connections))
	if err != nil { // the name is the node's own
		panic(fmt.Sprintf("remoting: BUG: %v", err))
	}
	p.conn = pid
}

// wake sends waiting messages, or starts a connection for them.
func (l *link) wake(ctx actor.Context) {
	if l.up == nil {
		l.consider(ctx)
		return
	}
	l.flush(ctx)
}

// consider decides what to do without a connection: to dial, to wait, or to end the link.
func (l *link) consider(ctx actor.Context) {
	if l.up != nil || l.ended {
		return
	}
	p := l.p
	p.mu.Lock()
	waits := p.waitsLocked()
	p.awake = waits
	if waits && p.conn == nil && !l.pausing {
		l.closing = false
		l.roster.connectLocked(p, p.name)
	}
	if !waits && p.conn == nil && !l.pausing && p.state == linkBroken {
		p.state = linkDown // the next request dials again
	}
	conn := p.conn
	p.mu.Unlock()
	switch {
	case l.bye && (conn == nil || !waits):
		l.fall(ctx, ErrShutdown)
	case conn != nil && !l.closing && !waits && !l.accepting:
		l.closing = true
		ctx.Send(conn, &rdma.DestroyID{})
	case waits:
		l.await(ctx)
	case conn == nil && !l.pausing && l.behind.bytes == 0:
		l.finish(ctx)
	}
}

// finish ends the link if still nothing waits.
func (l *link) finish(ctx actor.Context) {
	if !l.endIf(func() bool { return !l.p.waitsLocked() }) {
		l.consider(ctx)
		return
	}
	l.quit(ctx)
}

// down takes note that a generation has ended.
func (l *link) down(ctx actor.Context, m *reconnect.Down) {
	if l.ended { // quit has waited for it
		l.up = nil
		l.quit(ctx)
		return
	}
	l.conn = ctx.Sender()
	err := m.Err
	if l.cause != nil {
		err = l.cause
	}
	if errors.Is(err, reconnect.ErrWrongNode) { // it has only numbers in place of names
		err = fmt.Errorf("%w, whose name is not %s", reconnect.ErrWrongNode, plain.Quote(l.whom().Name))
	}
	opened := l.greeting == open
	// a peer that has accepted is there, and has given no reason
	again := transient(err) || m.WasUp && l.cause == nil
	l.noteFailure(err, opened)
	l.accepting = m.Accepting
	if opened {
		l.out.posted.trim(int(m.Counts.Unknown))
		l.lost(ctx, err)
	}
	l.in.drop()
	l.up, l.greeting, l.cause, l.parted, l.out.first, l.out.send = nil, absent, nil, nil, nil, nil
	if l.timer != nil {
		l.timer()
		l.timer = nil
	}
	if !opened && !again {
		l.dialFailed(ctx, err)
	}
	if wait := m.NextTry.Sub(l.local.Now()); !opened && wait > 0 && !l.pausing {
		l.pausing = true // also if the reconnecting actor is no longer needed
		rdma.After(ctx, wait, &paused{})
	}
	if l.bye && (opened || !again) {
		l.fall(ctx, ErrShutdown)
		return
	}
	l.consider(ctx)
}

// dialFailed takes note that the peer was not reached. A future gets no reason with ErrDeadLetter:
// *NotSent has it, and the log: once until the peer is reached or nothing waits, and once until the
// peer is reached if it is because of keys or identities.
func (l *link) dialFailed(ctx actor.Context, err error) {
	unproved := isUnproved(err)
	err = unreachable(err)
	first := l.failed(ctx, err)
	if unproved {
		first = l.notProved(ctx, err)
	}
	if first {
		l.logFailure(err)
	}
}

// logFailure logs why the peer was not reached.
func (l *link) logFailure(err error) {
	if !errors.Is(err, rdma.ErrShutdown) {
		l.host.rt.Logger().Warn("remoting: no connection", "peer", plain.Quote(l.whom().Name), "err", err)
	}
}

// noteFailure remembers why there is no connection, for messages that will not be sent.
func (l *link) noteFailure(err error, opened bool) {
	if err == nil && !opened {
		err = errNoReason
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.p.failure = err
}

// notProved publishes that the peer was not reached because one side did not prove its identity.
// first: no dial has failed for that reason since the peer was last reached.
func (l *link) notProved(ctx actor.Context, err error) (first bool) {
	if !l.roster.noteUnproved(l.p.id) {
		return false
	}
	l.report.notify(ctx, &NotAdmitted{Peer: l.whom(), Err: err})
	return true
}

// closed takes note that the reconnecting actor has ended.
func (l *link) closed(ctx actor.Context, m *reconnect.Closed) {
	l.p.mu.Lock()
	if l.p.conn.Equal(ctx.Sender()) {
		l.p.conn = nil
	}
	l.p.mu.Unlock()
	l.closing = false
	if errors.Is(m.Err, rdma.ErrShutdown) {
		l.fall(ctx, m.Err)
		return
	}
	l.consider(ctx)
}

func (l *link) impatient(ctx actor.Context) {
	l.patience = nil
	if l.greeting == open || l.ended {
		return
	}
	l.p.mu.Lock()
	err := unreachable(l.p.failure)
	l.p.mu.Unlock()
	if l.unreachable(ctx, err) {
		l.logFailure(err)
	}
	l.consider(ctx)
}

// leave sends waiting messages, and then closes the connection politely. Before there is a
// connection it waits for one: the peer may have been sent its first message just now.
func (l *link) leave(ctx actor.Context, timeout time.Duration) {
	if l.ended {
		return
	}
	l.bye = true
	l.p.mu.Lock()
	waits := l.p.waitsLocked()
	l.p.mu.Unlock()
	if l.greeting != open && (!waits || l.pausing) {
		l.fall(ctx, ErrShutdown)
		return
	}
	l.due = l.local.Now().Add(timeout)
	l.deadline = rdma.After(ctx, timeout, &overtime{})
	if l.parted != nil && l.greeting == open {
		l.heed(ctx, l.parted)
		return
	}
	l.wake(ctx)
}

// overtime gives up unsent messages.
func (l *link) overtime(ctx actor.Context) {
	if !l.ended {
		if !l.leaving && l.owes() {
			l.host.shortfall.noteUnsent(l.whom().Name, unix.ETIMEDOUT)
		}
		l.fall(ctx, fmt.Errorf("%w: %w", ErrShutdown, unix.ETIMEDOUT))
	}
}
