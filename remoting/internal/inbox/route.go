package inbox

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// route is the way to one process. All processes that are no actors, of one name, have one.
type route struct {
	in      *Inbox
	process *actor.ActorProcess // nil: no actor
	box     rdma.Mailbox        // of an OnLoop or OffLoop actor
	carried bool                // box reports consumption
	touches bool                // answers to Touch report it
	queue   actor.Mailbox       // then, if it is known: counts its messages
	off     bool                // it is sent to off the loop
	lanes   [2]lane             // then: for user and for system messages
	spawned time.Time           // not before it has been spawned for sure
	direct  atomic.Bool         // it may be sent to on the loop, as was found out off it

	sent      int64 // bytes
	large     int64 // the last user message's, if it was larger than a window
	seen      int64 // of done, when it was looked at
	forgotten int64 // bytes still unconsumed, of messages that no longer count
	marks     []*mark
	marked    int64         // bytes before the last mark
	again     time.Time     // when there is another Touch, if that mark is not answered
	gap       time.Duration // then, the next time

	noted  int64        // of seen, when progress was noted
	behind int64        // then: posted, without those in the queue
	posted atomic.Int64 // messages to the queue

	done atomic.Int64 // bytes that were consumed
	wake atomic.Int64 // the inbox is woken when done is so much
}

// never is more than anybody sends.
const never = math.MaxInt64

// inFlight returns how much is not known to be consumed.
func (r *route) inFlight() int64 { return r.sent - r.seen }

// routeTo returns the line's way to process; nil: to dead letters. If another process has taken the
// name, it also gets the messages that were not yet sent to the previous one.
func (l *line) routeTo(process actor.Process) *route {
	a, _ := process.(*actor.ActorProcess)
	if r := l.route; r != nil && r.process == a {
		l.moveToLoop(r)
		return r
	}
	if l.route != nil {
		l.putBack()
		l.route.release()
		l.refused = false
	}
	l.route = l.newRoute(a)
	return l.route
}

func (l *line) newRoute(a *actor.ActorProcess) *route {
	r := &route{in: l.in, process: a}
	r.wake.Store(never)
	if a != nil {
		r.box, r.carried = l.in.cfg.Runtime.MailboxOf(l.name, a)
	}
	if r.off = !r.carried; r.off && a != nil {
		if r.touches = l.in.kinds.needsTouch(a); r.touches {
			r.queue = l.in.kinds.mailboxOf(a)
		}
		if l.in.mayBeSpawning(l.name, a) {
			r.spawned = l.in.local.Now().Add(spawnTime)
		}
	}
	return r
}

// spawnTime is longer than Proto.Actor takes from giving an actor a name to having started it. A
// message to a default mailbox in between fails with a nil dispatcher, and keeps the actor from
// ever running.
const spawnTime = time.Millisecond

// Spawned begins the names of actors that peers have had spawned, as with Proto.Actor's remote.
const Spawned = "Remote$"

// mayBeSpawning reports whether an actor may not be started yet when a peer knows its name: if the
// name was chosen rather than generated, and it has a default mailbox.
func (in *Inbox) mayBeSpawning(name string, a *actor.ActorProcess) bool {
	last := name[strings.LastIndexByte(name, '/')+1:]
	generated := strings.Contains(last, "$") && !strings.HasPrefix(last, Spawned)
	return !generated && in.kinds.isDefault(a)
}

// moveToLoop switches an actor's messages to the loop, once that cannot block.
func (l *line) moveToLoop(r *route) {
	if !r.off || r.process == nil || !r.lanesIdle() {
		return
	}
	if r.direct.Load() {
		r.off = false
		return
	}
	if !r.touches { // it may have been in the middle of its spawn
		if r.box, r.carried = l.in.cfg.Runtime.MailboxOf(l.name, r.process); r.carried {
			r.off = false
		}
	}
}

// putBack returns the messages that a goroutine has not yet sent to the line's process to the line.
func (l *line) putBack() {
	back := l.route.lanes[0].takeAll()
	if len(back) == 0 {
		return
	}
	for _, it := range slices.Backward(back) {
		if it.mark != nil {
			continue
		}
		l.waiting.PushFront(it.message)
		l.bytes += it.cost
		l.route.sent -= it.cost
	}
	l.noteSlow()
	l.in.wakeActor()
}

// release stops waiting for messages that were sent to a process. The route is not used again.
func (r *route) release() {
	r.updateConsumed()
	r.forgetUnconsumed()
	r.wake.Store(never)
	for _, m := range r.marks {
		r.in.answers.remove(m)
	}
	r.marks = nil
}

// forgetUnconsumed stops counting the unconsumed bytes of a process.
func (r *route) forgetUnconsumed() {
	r.in.pending -= r.inFlight() - r.forgotten
	r.forgotten = r.inFlight()
}

// updateConsumed updates the count of consumed bytes.
func (r *route) updateConsumed() {
	d := r.done.Load() - r.seen
	r.seen += d
	f := min(d, r.forgotten)
	r.forgotten -= f
	r.in.pending -= d - f
	if d > 0 {
		r.marks = slices.DeleteFunc(r.marks, func(m *mark) bool { return m.upTo <= r.seen })
		r.gap = 0
	}
}

// refresh calls updateConsumed, and notices that the line's process has ended.
func (l *line) refresh() {
	r := l.route
	if r == nil {
		return
	}
	r.updateConsumed()
	if r.process == nil || r.inFlight() == 0 || r.carried {
		return
	}
	if p, _ := l.in.cfg.System.ProcessRegistry.GetLocal(l.name); p != actor.Process(r.process) {
		l.putBack()
		r.release()
		l.route, l.refused = nil, false
	}
}

// hasRoom reports whether the target may have a message of that cost. If not, the inbox is woken
// when that may have changed.
func (r *route) hasRoom(cost int64) bool {
	for {
		if n := r.inFlight(); n == 0 || n+cost <= r.in.window {
			return true
		}
		r.updateConsumed()
		if n := r.inFlight(); n == 0 || n+cost <= r.in.window {
			return true
		}
		if !r.awaitConsumed() {
			return false
		}
	}
}

// awaitConsumed arranges that the inbox is woken when the target has consumed half of its
// unconsumed bytes. True: it has done so already.
func (r *route) awaitConsumed() (consumed bool) {
	at := r.sent - r.inFlight()/2
	if r.touches {
		if len(r.marks) == 0 {
			r.sendTouch()
			r.gap = 0
		}
		at = r.marks[0].upTo
	}
	r.wake.Store(at)
	return r.done.Load() >= at && r.wake.CompareAndSwap(at, never)
}

// passMessage sends the target a message.
func (r *route) passMessage(process actor.Process, m message) {
	r.sent += m.cost
	if !m.system {
		if r.large = 0; m.cost > r.in.window { // all earlier messages are consumed
			r.large = m.cost
		}
	}
	switch {
	case r.off:
		if process == nil {
			process = r.in.cfg.System.DeadLetter
		}
		r.queueItem(item{message: m, process: process})
	case !r.carried:
		r.in.callGuarded(m, func() { sendTo(r.process, m) }) // it counts until the next Touch
		r.countPosted(m)
		r.in.local.Woke()
	case m.system:
		r.process.SendSystemMessage(m.target, m.msg)
		r.sendParcel(message{cost: m.cost})
	default:
		r.sendParcel(m)
	}
	if r.touches && r.sent-r.marked >= r.in.window/2 {
		r.sendTouch()
	}
}

// countConsumed counts bytes that the target has consumed. Any goroutine.
func (r *route) countConsumed(cost int64) { r.wakeIfReached(r.done.Add(cost)) }

// consumedUpTo counts all that was sent before a mark. Any goroutine.
func (r *route) consumedUpTo(mark int64) {
	for {
		done := r.done.Load()
		if done >= mark {
			return
		}
		if r.done.CompareAndSwap(done, mark) {
			r.wakeIfReached(mark)
			return
		}
	}
}

func (r *route) wakeIfReached(done int64) {
	if at := r.wake.Load(); done >= at && r.wake.CompareAndSwap(at, never) {
		r.in.wakeActor()
	}
}

// parcel is a message in the mailbox of an OnLoop or OffLoop actor.
type parcel struct {
	rdma.Carrier
	to   *route
	cost int64
}

var parcels sync.Pool

// sendParcel sends a message to an OnLoop or OffLoop actor. Without a message, it only reports when
// all earlier messages are consumed.
func (r *route) sendParcel(m message) {
	p, ok := parcels.Get().(*parcel)
	if !ok {
		p = new(parcel)
		p.Consumed = p.handleConsumed
	}
	p.Message, p.to, p.cost = m.msg, r, m.cost
	carried := false
	defer func() {
		if !carried {
			p.handleConsumed()
		}
	}()
	carried = r.in.callGuarded(m, func() { r.box.Carry(&p.Carrier) })
}

// handleConsumed counts a consumed message, and keeps the parcel for another one. Any goroutine.
func (p *parcel) handleConsumed() {
	r, cost := p.to, p.cost
	p.Message, p.to = nil, nil
	parcels.Put(p)
	r.countConsumed(cost)
}

// countPosted counts a message in the queue of a default mailbox. Any goroutine.
func (r *route) countPosted(m message) {
	if !m.system {
		r.posted.Add(1)
	}
}

// hasProgressed reports whether the process has consumed something since the last call. A default
// mailbox shows that before its next Touch is answered: fewer messages are in it than were posted
// since. Messages of other senders may hide that, until the Touch is answered.
func (r *route) hasProgressed() bool {
	moved := r.seen != r.noted
	r.noted = r.seen
	if r.queue != nil {
		behind := r.posted.Load() - int64(r.queue.UserMessageCount())
		moved = moved || behind > r.behind
		r.behind = behind
	}
	return moved
}
