package remoting

import (
	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/outbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// failOnLoss ends the operations of an open link: requests without answers, and watches. Frames
// that were not posted wait for the next connection.
func (l *link) failOnLoss(ctx actor.Context, err error) {
	l.leaveBehind()
	p := l.p
	p.mu.Lock()
	p.state = linkDown
	l.out.backLocked()
	p.user.FreeAll() // the peer repeats it
	waiting := p.user.Numbers()
	futures := p.futures.TakeThose(func(r *tables.Request) bool { return !waiting[r.Packet] })
	ours, theirs := p.watches.End()
	spawns := p.spawns.End()
	p.grants.Disconnected(l.local.Now())
	p.purgeLocked()
	unsent, unknown := p.unsentLocked(), l.out.posted.messages
	p.counts.Unknown += uint64(unknown.all)
	p.mu.Unlock()
	l.noteShortfall(unsent, unknown)
	l.countUnconnected(true)
	for i := range futures {
		l.host.answerFuture(&futures[i], &Unknown{Target: futures[i].Target, Err: err}, 0)
	}
	l.endWatches(ours, theirs)
	failSpawns(spawns, &Unknown{Target: actor.NewPID(l.who.Name, ""), Err: err})
	l.report.publishEvent(ctx, &Disconnected{
		Peer: l.who, Err: err, Unsent: unsent.sentByApp(), Unknown: unknown.sentByApp(), Upkeep: unsent.upkeep + unknown.upkeep,
	})
}

// unsentLocked returns how many messages wait.
func (p *peer) unsentLocked() messages {
	return messages{all: p.user.Records(), upkeep: p.user.Upkeep()}
}

// noteShortfall counts lost messages for the error of Shutdown.
func (l *link) noteShortfall(unsent, unknown messages) {
	if l.bye && unsent.sentByApp() > 0 { // there is no other connection
		l.host.shortfall.noteUnsent(l.who.Name, unix.ECONNRESET)
	}
	if l.host.leaving.Load() && unknown.sentByApp() > 0 {
		l.host.shortfall.noteUnconfirmed(l.who.Name, unknown.sentByApp())
	}
}

// hasUnsent reports whether messages that the application has sent, or a Stop, still wait.
func (l *link) hasUnsent() bool {
	taken := &l.out.taken
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.p.unsentLocked().sentByApp() > 0 || !l.p.system.Empty() || taken.System || taken.Records > taken.Upkeep
}

// failOnDial ends the operations that fail immediately when a dial fails: requests of futures,
// whose callers can decide what to do next, and watches. Other messages wait for the next attempt.
// first: it has not failed since the peer was reached, or nothing waited.
func (l *link) failOnDial(ctx actor.Context, err error) (first bool) {
	p := l.p
	p.mu.Lock()
	first = p.state != linkBroken
	p.state = linkBroken
	futures := p.futures.TakeThose(func(*tables.Request) bool { return true })
	if len(futures) > 0 {
		waited := p.user.Records()
		p.user.Filter(func(r *frame.Record) bool { return r.Sender.Address != "" || !tables.IsFuture(r.Sender.ID) })
		p.counts.DeadLetters += uint64(waited - p.user.Records())
		p.releaseLocked()
	}
	ours, theirs := p.watches.End()
	spawns := p.spawns.End()
	p.purgeLocked()
	p.mu.Unlock()
	l.publishNotSent(ctx, len(futures), err)
	l.host.answerNotSent(futures)
	l.endWatches(ours, theirs)
	failSpawns(spawns, notSpawned(err))
	return first
}

// publishNotSent publishes why so many messages become dead letters.
func (l *link) publishNotSent(ctx actor.Context, messages int, err error) {
	if messages > 0 {
		l.report.publishEvent(ctx, &NotSent{Peer: l.knownPeer(), Messages: messages, Err: err})
	}
}

// failWaiting turns waiting messages into dead letters, because of err. first: as for failOnDial.
func (l *link) failWaiting(ctx actor.Context, err error) (first bool) {
	first = l.failOnDial(ctx, err)
	p := l.p
	messages := 0
	p.mu.Lock()
	var list []outbox.Packet
	for {
		out, ok := p.system.Take()
		if !ok {
			break
		}
		p.system.Gone(&out)
		list = append(list, out)
	}
	p.user.FreeAll()
	for {
		out, ok := p.user.Take()
		if !ok {
			break
		}
		p.user.Gone(&out)
		list = append(list, out)
		messages += out.Records
	}
	p.counts.DeadLetters += uint64(messages)
	p.awake = false
	name := p.name
	p.releaseLocked()
	p.mu.Unlock()
	l.publishNotSent(ctx, messages, err)
	l.report.deadLetters(name, list)
	return first
}

// purgeLocked drops the system messages that were for the connection that has ended: the watches on
// both sides are gone with it. A Stop stays.
func (p *peer) purgeLocked() {
	p.system.Filter(func(r *frame.Record) bool { return r.Kind == frame.KindStop })
	p.stuck = false
}

// endWatches notifies the watchers of this node, and has its actors forget those of the peer's.
func (l *link) endWatches(ours []tables.Watch, theirs []tables.Pair) {
	for _, w := range ours {
		l.host.deliverTerminated(w, actor.TerminatedReason_AddressTerminated)
	}
	for _, key := range theirs {
		l.in.forgetWatcher(key.Watched, key.Watcher)
	}
}

// failSpawns ends calls that will get no answer.
func failSpawns(list []chan<- tables.Spawned, err error) {
	for _, c := range list {
		c <- tables.Spawned{Err: err}
	}
}
