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

// sendOrDial sends waiting messages, or starts a connection for them.
func (l *link) sendOrDial(ctx actor.Context) {
	if l.up == nil {
		l.decideConnect(ctx)
		return
	}
	l.sendWaiting(ctx)
}

// decideConnect decides what to do without a connection: to dial, to wait, or to end the link.
func (l *link) decideConnect(ctx actor.Context) {
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
		l.failLink(ctx, ErrShutdown)
	case conn != nil && !l.closing && !waits && !l.accepting:
		l.closing = true
		ctx.Send(conn, &rdma.DestroyID{})
	case waits:
		l.startTimeout(ctx)
	case conn == nil && !l.pausing && l.behind.bytes == 0:
		l.closeIfIdle(ctx)
	}
}

// closeIfIdle ends the link if still nothing waits.
func (l *link) closeIfIdle(ctx actor.Context) {
	if !l.endIf(func() bool { return !l.p.waitsLocked() }) {
		l.decideConnect(ctx)
		return
	}
	l.stopActor(ctx)
}

// handleDown handles the end of a generation.
func (l *link) handleDown(ctx actor.Context, m *reconnect.Down) {
	if l.ended { // stopActor has waited for it
		l.up = nil
		l.stopActor(ctx)
		return
	}
	l.conn = ctx.Sender()
	err := m.Err
	if l.cause != nil {
		err = l.cause
	}
	if errors.Is(err, reconnect.ErrWrongNode) { // it has only numbers in place of names
		err = fmt.Errorf("%w, whose name is not %s", reconnect.ErrWrongNode, plain.Quote(l.knownPeer().Name))
	}
	opened := l.greeting == open
	// a peer that has accepted is there, and has given no reason
	again := isTransient(err) || m.WasUp && l.cause == nil
	l.noteFailure(err, opened)
	l.accepting = m.Accepting
	if opened {
		l.out.posted.trim(int(m.Counts.Unknown))
		l.failOnLoss(ctx, err)
	}
	l.in.releaseUnread()
	l.up, l.greeting, l.cause, l.parted, l.out.first, l.out.send = nil, absent, nil, nil, nil, nil
	if l.timer != nil {
		l.timer()
		l.timer = nil
	}
	if !opened && !again {
		l.handleDialFailure(ctx, err)
	}
	if wait := m.NextTry.Sub(l.local.Now()); !opened && wait > 0 && !l.pausing {
		l.pausing = true // also if the reconnecting actor is no longer needed
		rdma.After(ctx, wait, &paused{})
	}
	if l.bye && (opened || !again) {
		l.failLink(ctx, ErrShutdown)
		return
	}
	l.decideConnect(ctx)
}

// handleDialFailure takes note that the peer was not reached. A future gets no reason with
// ErrDeadLetter: *NotSent has it, and the log: once until the peer is reached or nothing waits, and
// once until the peer is reached if it is because of keys or identities.
func (l *link) handleDialFailure(ctx actor.Context, err error) {
	unproved := isUnproved(err)
	err = unreachableWith(err)
	first := l.failOnDial(ctx, err)
	if unproved {
		first = l.publishUnproved(ctx, err)
	}
	if first {
		l.logFailure(err)
	}
}

// logFailure logs why the peer was not reached. A shutdown, here or at the peer, is no warning: it
// was intended.
func (l *link) logFailure(err error) {
	log, peer := l.host.rt.Logger(), plain.Quote(l.knownPeer().Name)
	switch {
	case errors.Is(err, rdma.ErrShutdown):
	case errors.Is(err, ErrPeerShutdown):
		log.Info("remoting: the peer was shut down", "peer", peer)
	default:
		log.Warn("remoting: no connection", "peer", peer, "err", err)
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

// publishUnproved publishes that the peer was not reached because one side did not prove its
// identity. first: no dial has failed for that reason since the peer was last reached.
func (l *link) publishUnproved(ctx actor.Context, err error) (first bool) {
	if !l.roster.noteUnproved(l.p.id) {
		return false
	}
	l.report.publishEvent(ctx, &NotAdmitted{Peer: l.knownPeer(), Err: err})
	return true
}

// handleClosed handles the end of the reconnecting actor.
func (l *link) handleClosed(ctx actor.Context, m *reconnect.Closed) {
	l.p.mu.Lock()
	if l.p.conn.Equal(ctx.Sender()) {
		l.p.conn = nil
	}
	l.p.mu.Unlock()
	l.closing = false
	if errors.Is(m.Err, rdma.ErrShutdown) {
		l.failLink(ctx, m.Err)
		return
	}
	l.decideConnect(ctx)
}

func (l *link) handleTimeout(ctx actor.Context) {
	l.patience = nil
	if l.greeting == open || l.ended {
		return
	}
	l.p.mu.Lock()
	err := unreachableWith(l.p.failure)
	l.p.mu.Unlock()
	if l.failWaiting(ctx, err) {
		l.logFailure(err)
	}
	l.decideConnect(ctx)
}

// closeWhenSent sends waiting messages, and then closes the connection politely. Before there is a
// connection it waits for one: the peer may have been sent its first message just now.
func (l *link) closeWhenSent(ctx actor.Context, timeout time.Duration) {
	if l.ended {
		return
	}
	l.bye = true
	l.p.mu.Lock()
	waits := l.p.waitsLocked()
	l.p.mu.Unlock()
	if l.greeting != open && (!waits || l.pausing) {
		l.failLink(ctx, ErrShutdown)
		return
	}
	l.due = l.local.Now().Add(timeout)
	l.deadline = rdma.After(ctx, timeout, &overtime{})
	if l.parted != nil && l.greeting == open {
		l.handleParting(ctx, l.parted)
		return
	}
	l.sendOrDial(ctx)
}

// failUnsent fails unsent messages after the time-out.
func (l *link) failUnsent(ctx actor.Context) {
	if !l.ended {
		if !l.leaving && l.hasUnsent() {
			l.host.shortfall.noteUnsent(l.knownPeer().Name, unix.ETIMEDOUT)
		}
		l.failLink(ctx, fmt.Errorf("%w: %w", ErrShutdown, unix.ETIMEDOUT))
	}
}
