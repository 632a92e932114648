package remoting

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// down takes note that a generation has ended.
func (l *link) down(ctx actor.Context, m *reconnect.Down) {
	l.conn = ctx.Sender()
	err := m.Err
	if l.cause != nil {
		err = l.cause
	}
	opened := l.greeting == open
	// who has accepted is there, and has said no reason
	again := transient(err) || m.WasUp && l.cause == nil
	if opened {
		l.posted.trim(int(m.Counts.Unknown))
		l.lost(ctx, err)
	}
	l.up, l.greeting, l.cause, l.first, l.send = nil, absent, nil, nil, nil
	if l.timer != nil {
		l.timer()
		l.timer = nil
	}
	if !opened && !again {
		l.dialFailed(ctx, err)
	}
	if wait := m.NextTry.Sub(l.local.Now()); !opened && wait > 0 && !l.pausing {
		l.pausing = true // also if the reconnecting actor is not needed any more
		rdma.After(ctx, wait, &paused{})
	}
	if l.bye && (opened || !again) {
		l.fall(ctx, ErrShutdown)
		return
	}
	l.consider(ctx)
}

// dialFailed takes note that the peer was not reached. A future gets no reason with ErrDeadLetter:
// the log has it, once until the peer is reached or nothing waits; once until the peer is reached
// if it is because of keys or identities.
func (l *link) dialFailed(ctx actor.Context, err error) {
	unproved := isUnproved(err)
	if err == nil {
		err = ErrUnreachable
	} else {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	first := l.failed(err)
	if unproved {
		first = l.notProved(ctx, err)
	}
	if first && !errors.Is(err, rdma.ErrShutdown) {
		l.n.rt.Logger().Warn("remoting: no connection", "peer", l.whom().Name, "err", err)
	}
}

// lost ends what an open link has had under way: requests whose answers have not come, and
// watches. What was not posted waits for the next connection.
func (l *link) lost(ctx actor.Context, err error) {
	l.in.drop()
	p := l.p
	p.mu.Lock()
	p.state = linkDown
	l.backLocked()
	futures := p.futures.takeThose(func(r *request) bool { return r.packet < l.sent })
	ours, theirs := p.watches.end()
	spawns := p.spawns.end()
	p.purgeLocked()
	p.counts.Unknown += uint64(l.posted.records)
	d := &Disconnected{Peer: l.who, Err: err, Unsent: p.user.records(), Unknown: l.posted.records}
	p.mu.Unlock()
	l.count(true)
	for i := range futures {
		l.n.answer(&futures[i], &Unknown{Target: futures[i].target, Err: err}, 0)
	}
	l.endWatches(ours, theirs)
	failSpawns(spawns, &Unknown{Target: actor.NewPID(l.who.Name, ""), Err: err})
	l.notify(ctx, d)
}

// failed ends what fails at once when a dial fails: requests of futures, whose callers can decide
// what to do next, and watches. Other messages wait for the next attempt. first: it has not failed
// since the peer was reached, or nothing waited.
func (l *link) failed(err error) (first bool) {
	p := l.p
	p.mu.Lock()
	first = p.state != linkBroken
	p.state = linkBroken
	futures := p.futures.takeThose(func(*request) bool { return true })
	if len(futures) > 0 {
		waited := p.user.records()
		p.user.filter(func(r *frame.Record) bool { return r.Sender.Address != "" || !isFuture(r.Sender.ID) })
		p.counts.DeadLetters += uint64(waited - p.user.records())
		p.releaseLocked()
	}
	ours, theirs := p.watches.end()
	spawns := p.spawns.end()
	p.purgeLocked()
	p.mu.Unlock()
	for i := range futures {
		l.n.answer(&futures[i], &actor.DeadLetterResponse{Target: futures[i].target}, 0)
	}
	l.endWatches(ours, theirs)
	failSpawns(spawns, notSpawned(err))
	return first
}

// unreachable makes what waits dead letters.
func (l *link) unreachable(err error) {
	l.failed(err)
	p := l.p
	p.mu.Lock()
	l.backLocked()
	var list []packet
	for _, lane := range []*lane{&p.system, &p.user} {
		for {
			out, ok := lane.take()
			if !ok {
				break
			}
			lane.bytes -= len(out.bytes())
			list = append(list, out)
			if lane == &p.user {
				p.counts.DeadLetters += uint64(out.records)
			}
		}
	}
	p.awake = false
	name := p.name
	p.releaseLocked()
	p.mu.Unlock()
	l.deadLetters(name, list)
}

// backLocked puts back what was taken and not posted.
func (l *link) backLocked() {
	switch {
	case l.out.buf == nil:
		return
	case l.out.system:
		l.p.system.back(l.out)
	default:
		l.p.user.back(l.out)
	}
	l.out, l.send = packet{}, nil
}

// purgeLocked drops the system messages that were for the connection that has ended: the watches on
// both sides are gone with it. A Stop stays.
func (p *peer) purgeLocked() {
	p.system.filter(func(r *frame.Record) bool { return r.Kind == frame.KindStop })
	p.stuck = false
}

// endWatches notifies the watchers of this node, and has its actors forget those of the peer's.
func (l *link) endWatches(ours []watch, theirs []pair) {
	for _, w := range ours {
		l.n.terminated(w, actor.TerminatedReason_AddressTerminated)
	}
	for _, key := range theirs {
		l.forgetWatcher(key.watched, key.watcher)
	}
}
