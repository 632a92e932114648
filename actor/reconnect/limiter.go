package reconnect

import (
	"container/list"
	"iter"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/time/rate"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Limiter keeps reconnecting actors and rpc's clients from dialling all at the same time when their
// common peer comes back. They get their turns in the order in which they ask. An address without a
// dial in progress gets a turn even if all places are taken. So peers that do not answer delay only
// dials to themselves. If a Ticket does not use its turn for a second, because its loop is blocked,
// it keeps its place in the line, and those behind it may pass. If several runtimes share a
// Limiter, the actors of a runtime have to be stopped before it is shut down. Any goroutine may use
// it.
type Limiter struct {
	mu     sync.Mutex
	rate   *rate.Limiter
	atOnce int
	dials  fairshare.Shares[string] // under way, by address
	// line is no fairshare.Queue, because tickets, not addresses, take turns, and one that does not
	// use its turn is passed. It contains weak.Pointer[Ticket], so that a Ticket that is
	// unreachable, for example because its runtime was shut down, leaves the line and keeps nothing
	// alive.
	line list.List
}

// Ticket represents one actor or client that dials an address again and again. It enters the
// Limiter's line for each dial. Any goroutine may use it.
type Ticket struct {
	limiter *Limiter
	who     *actor.PID
	addr    string
	wake    func()
	elem    *list.Element // in the line; nil: it is not in it
	// the start of its turn, as far as known; a second later those behind it pass. Zero: not known
	since time.Time
}

const (
	defaultAtOnce    = 64
	defaultPerSecond = 200
	patience         = time.Second // with a ticket that does not use its turn
)

// NewLimiter makes a Limiter of at most atOnce dials in progress (64 if it is 0), and of perSecond
// beginning in a second in the long run (200 if it is 0), with bursts of atOnce. Beyond atOnce,
// each address without a dial in progress may have one.
func NewLimiter(atOnce int, perSecond float64) *Limiter {
	if atOnce <= 0 {
		atOnce = defaultAtOnce
	}
	if perSecond <= 0 {
		perSecond = defaultPerSecond
	}
	return &Limiter{atOnce: atOnce, rate: rate.NewLimiter(rate.Limit(perSecond), atOnce)}
}

// Waiting is an actor or client that waits for its turn to dial.
type Waiting struct {
	Who  *actor.PID // nil: it is no actor, but a client of rpc's, say
	Addr string
}

// Inspect returns how many dials are in progress, and the waiting actors and clients, first come
// first.
func (l *Limiter) Inspect() (dialing int, waiting []Waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range l.inLineLocked() {
		waiting = append(waiting, Waiting{t.who, t.addr})
	}
	return l.dials.Total(), waiting
}

// Ticket makes a ticket for dials to addr. Inspect reports who as the one that waits; nil: it is no
// actor. wake must make its owner call Enter again, later and on any goroutine: wake is called with
// the Limiter locked.
func (l *Limiter) Ticket(who *actor.PID, addr string, wake func()) *Ticket {
	return &Ticket{limiter: l, who: who, addr: addr, wake: wake}
}

// Enter asks for a turn, and joins the line if the Ticket is not in it. ok: it is the Ticket's
// turn; call Done when the dial has ended. Otherwise call Enter again when woken, or after the
// returned time, if that is not 0.
func (t *Ticket) Enter(now time.Time) (ok bool, after time.Duration) {
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.elem == nil {
		t.elem = l.line.PushBack(weak.Make(t))
	}
	t.since = time.Time{}
	if !l.roomLocked(t) {
		return false, 0
	}
	if ok, after := l.turnLocked(t, now); !ok {
		return false, after
	}
	r := l.rate.ReserveN(now, 1)
	if d := r.DelayFrom(now); d > 0 {
		r.CancelAt(now)
		t.since = now.Add(d)
		return false, d
	}
	l.dials.Take(t.addr)
	l.removeLocked(t)
	return true, 0
}

// Leave removes it from the line, if it is in it.
func (t *Ticket) Leave() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	t.limiter.removeLocked(t)
}

// Done ends a dial that Enter has allowed, also when it was given up.
func (t *Ticket) Done() {
	l := t.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials.Free(t.addr)
	l.wakeFirstLocked()
}

// roomLocked reports whether t may dial when it is its turn: there is a place, or its address has
// no dial in progress.
func (l *Limiter) roomLocked(t *Ticket) bool {
	return l.dials.Total() < l.atOnce || l.dials.Has(t.addr) == 0
}

// turnLocked reports whether t, which has room, may dial now: no earlier ticket has room, or those
// that have did not use their turn in time, because their loop is blocked. The one behind such a
// ticket learns when to ask again.
func (l *Limiter) turnLocked(t *Ticket, now time.Time) (ok bool, after time.Duration) {
	var first *Ticket
	for k := range l.inLineLocked() {
		switch {
		case k == t && first == nil:
			return true, 0
		case k == t:
			if first.since.IsZero() {
				first.since = now
			}
			return false, first.since.Add(patience).Sub(now)
		case !l.roomLocked(k) || !k.since.IsZero() && now.Sub(k.since) >= patience:
		case first != nil:
			return false, 0
		default:
			first = k
		}
	}
	return false, 0
}

// inLineLocked returns the tickets that wait, first come first.
func (l *Limiter) inLineLocked() iter.Seq[*Ticket] {
	return func(yield func(*Ticket) bool) {
		for e := l.line.Front(); e != nil; {
			at := e
			e = e.Next()
			if t := at.Value.(weak.Pointer[Ticket]).Value(); t == nil {
				l.line.Remove(at)
			} else if !yield(t) {
				return
			}
		}
	}
}

func (l *Limiter) removeLocked(t *Ticket) {
	if t.elem == nil {
		return
	}
	l.line.Remove(t.elem)
	t.elem = nil
	l.wakeFirstLocked()
}

// wakeFirstLocked wakes the ticket whose turn it is, and the one behind it, which checks whether
// the first uses it. Tickets that did not use their turn are woken, too.
func (l *Limiter) wakeFirstLocked() {
	woken := 0
	for t := range l.inLineLocked() {
		if !l.roomLocked(t) {
			continue
		}
		t.wake()
		if t.since.IsZero() {
			woken++
		}
		if woken == 2 {
			return
		}
	}
}

// limiters has the Limiter of each runtime, by weak pointer.
var limiters sync.Map

// LimiterOf returns the Limiter of a runtime. All actors and clients without another one share it.
func LimiterOf(rt *rdma.Runtime) *Limiter {
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
