package inbox

import (
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/ring"
)

// lane is the messages that a goroutine sends for a route, in order. There is a goroutine while
// there are messages.
type lane struct {
	mu    sync.Mutex
	queue ring.Ring[item]
	bytes int64 // of the messages in queue
	busy  bool  // there is a goroutine
}

// item is a message for a process.
type item struct {
	message
	process actor.Process
	mark    *mark // of the Touch that the message is
}

// countedBytes returns the size at which the item counts. Touches count as nothing.
func (it *item) countedBytes() int64 {
	if it.mark != nil {
		return 0
	}
	return it.cost
}

// fewItems is how many an idle lane keeps memory for.
const fewItems = 64

// push adds one. True: a goroutine has to be started.
func (l *lane) push(it item) (start bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Push(it)
	l.bytes += it.countedBytes()
	start = !l.busy
	l.busy = true
	return start
}

// pop returns the next one for the goroutine. Not ok: its work is done.
func (l *lane) pop() (it item, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.Len() == 0 {
		l.busy = false
		if l.queue.Cap() > fewItems {
			l.queue = ring.Ring[item]{}
		}
		return it, false
	}
	it = l.queue.Pop()
	l.bytes -= it.countedBytes()
	return it, true
}

// dropLast removes the item that was pushed last, unless the goroutine has taken it.
func (l *lane) dropLast() (it item, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.Len() == 0 {
		return it, false
	}
	it = *l.queue.At(l.queue.Len() - 1)
	l.queue.DropLast()
	l.bytes -= it.countedBytes()
	return it, true
}

// backlogBytes returns the bytes that the goroutine has not taken.
func (l *lane) backlogBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// takeAll removes all items that the goroutine has not started.
func (l *lane) takeAll() (all []item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.Len() > 0 {
		all = append(all, l.queue.Pop())
	}
	l.bytes = 0
	return all
}

// isIdle reports whether everything was sent.
func (l *lane) isIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.busy
}

// lanesIdle reports whether everything that was to be sent off the loop was sent.
func (r *route) lanesIdle() bool { return r.lanes[0].isIdle() && r.lanes[1].isIdle() }

// queueItem queues a message for the lane's goroutine.
func (r *route) queueItem(it item) {
	l := &r.lanes[0]
	if it.system {
		l = &r.lanes[1]
	}
	if !l.push(it) {
		return
	}
	s := r.in.cfg.Runtime.Scheduler()
	if !r.spawned.IsZero() {
		if d := r.spawned.Sub(r.in.local.Now()); d > 0 {
			s.AfterFunc(d, func() { r.runLane(l) })
			return
		}
		r.spawned = time.Time{}
	}
	s.Go(func() { r.runLane(l) })
	r.in.local.Woke()
}

// turn is how many messages a goroutine sends before it lets others go on.
const turn = 300

// runLane sends the items of a lane. It runs in a separate goroutine, so that foreign code stops no
// other target.
func (r *route) runLane(l *lane) {
	var it item
	inside, s := false, r.in.cfg.Runtime.Scheduler()
	defer func() {
		if !inside {
			return
		}
		why := errExit
		if v := recover(); v != nil {
			why = &rdma.PanicError{Value: v}
		}
		if it.mark == nil {
			r.in.queueFailure(it.message, why)
		}
		if !r.touches {
			r.countConsumed(it.cost)
		}
		s.Go(func() { r.runLane(l) })
	}()
	for n := 1; ; n++ {
		var ok bool
		if it, ok = l.pop(); !ok {
			return
		}
		inside = true
		sendTo(it.process, it.message)
		inside = false
		r.sentOff(it)
		if n%turn == 0 {
			s.Resume()
		}
	}
}

// sentOff counts a message that a goroutine has sent, and finds out whether it is needed at all.
func (r *route) sentOff(it item) {
	if r.touches {
		r.countPosted(it.message)
		// The sending has synchronized with the spawn, so that the dispatcher may be read.
		if !r.direct.Load() && r.in.kinds.isDirect(r.process) {
			r.direct.Store(true)
		}
		return
	}
	r.countConsumed(it.cost)
}
