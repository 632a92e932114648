package reconnect

import (
	"container/list"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/time/rate"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Limiter keeps many reconnecting actors from dialling all at once, as they would when a peer that all of them had comes back. They
// get their turn in the order in which they ask. Any goroutine. One that several runtimes share expects that the actors of one are
// stopped before it is shut down.
type Limiter struct {
	mu      sync.Mutex
	rate    *rate.Limiter
	atOnce  int
	dialing int
	line    list.List // of *ticket
}

// ticket is an actor's place in the line.
type ticket struct {
	who  *actor.PID
	addr string
	wake func() // asks its owner to try again; any goroutine
	elem *list.Element
}

const (
	defaultAtOnce    = 64
	defaultPerSecond = 200
)

// NewLimiter makes a Limiter of at most atOnce dials under way (64 if it is 0), and of perSecond beginning in a second in the long run
// (200 if it is 0), with bursts of atOnce.
func NewLimiter(atOnce int, perSecond float64) *Limiter {
	if atOnce <= 0 {
		atOnce = defaultAtOnce
	}
	if perSecond <= 0 {
		perSecond = defaultPerSecond
	}
	return &Limiter{atOnce: atOnce, rate: rate.NewLimiter(rate.Limit(perSecond), atOnce)}
}

// Waiting is an actor that waits for its turn to dial.
type Waiting struct {
	Who  *actor.PID
	Addr string
}

// Inspect tells how many dials are under way, and who waits, first come first.
func (l *Limiter) Inspect() (dialing int, waiting []Waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.line.Front(); e != nil; e = e.Next() {
		t := e.Value.(*ticket)
		waiting = append(waiting, Waiting{t.who, t.addr})
	}
	return l.dialing, waiting
}

// enter asks for the turn of t, which gets into the line if it is not in it. ok: it has its turn, and says done when the dial has ended.
// Else it asks again when it is woken, or after the time told, if there is one.
func (l *Limiter) enter(t *ticket, now time.Time) (ok bool, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.elem == nil {
		t.elem = l.line.PushBack(t)
	}
	if l.line.Front() != t.elem || l.dialing >= l.atOnce {
		return false, 0
	}
	r := l.rate.ReserveN(now, 1)
	if d := r.DelayFrom(now); d > 0 {
		r.CancelAt(now)
		return false, d
	}
	l.dialing++
	l.remove(t)
	return true, 0
}

// leave takes t out of the line.
func (l *Limiter) leave(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(t)
}

// done ends a dial.
func (l *Limiter) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialing--
	l.wakeFirst()
}

func (l *Limiter) remove(t *ticket) {
	if t.elem == nil {
		return
	}
	first := l.line.Front() == t.elem
	l.line.Remove(t.elem)
	t.elem = nil
	if first {
		l.wakeFirst()
	}
}

func (l *Limiter) wakeFirst() {
	if e := l.line.Front(); e != nil && l.dialing < l.atOnce {
		e.Value.(*ticket).wake()
	}
}

// limiters has the Limiter of each runtime, by weak pointer.
var limiters sync.Map

func limiterOf(rt *rdma.Runtime) *Limiter {
	key := weak.Make(rt)
	if l, ok := limiters.Load(key); ok {
		return l.(*Limiter)
	}
	l, loaded := limiters.LoadOrStore(key, NewLimiter(0, 0))
	if !loaded {
		runtime.AddCleanup(rt, func(key weak.Pointer[rdma.Runtime]) { limiters.Delete(key) }, key)
	}
	return l.(*Limiter)
}
