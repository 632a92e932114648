package eventloop

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Alarm is how goroutines that wait for something on loops hear that a loop stands still: the one
// that holds it may be among them. A wait that has C beside what it waits for costs nothing more
// than that; after an alarm it asks MayWait, once. Asking before each wait would cost more than the
// wait. Any number of loops may share one (Config.Alarm).
type Alarm struct{ c atomic.Pointer[chan struct{}] }

// NewAlarm makes an Alarm.
func NewAlarm() *Alarm {
	a := &Alarm{}
	c := make(chan struct{})
	a.c.Store(&c)
	return a
}

// C is closed when a callback has held one of the loops for Config.StallAfter, and when that time
// has doubled, and so on. Who waits on takes the next one. Any goroutine.
func (a *Alarm) C() <-chan struct{} { return *a.c.Load() }

func (a *Alarm) ring() {
	next := make(chan struct{})
	close(*a.c.Swap(&next))
}

// owners is the loops by the ids of their goroutines and their watchdogs': a host's may have
// several.
var owners = ownership{loops: make(map[uint64][]*Loop)}

type ownership struct {
	mu    sync.Mutex
	loops map[uint64][]*Loop
}

func (o *ownership) add(id uint64, l *Loop) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loops[id] = append(o.loops[id], l)
}

func (o *ownership) remove(id uint64, l *Loop) {
	o.mu.Lock()
	defer o.mu.Unlock()
	left := slices.DeleteFunc(o.loops[id], func(other *Loop) bool { return other == l })
	if o.loops[id] = left; len(left) == 0 {
		delete(o.loops, id)
	}
}

func (o *ownership) of(id uint64) []*Loop {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.loops[id])
}

// MayWait says whether the calling goroutine may wait for what loops do: ErrOnLoop when it is a
// loop's own, of whichever, or one that OnStall is called on, for which a loop's end waits. The
// goroutine that embeds a loop may wait for others between two Turns, and for what its own does
// never. It costs 1 to 10 µs, because Go hides goroutine ids well: it is for what is seldom done,
// and for after an Alarm.
func MayWait() error {
	id := goroutineID()
	for _, l := range owners.of(id) {
		if l.holds() || l.watchdog.id.Load() == id {
			return ErrOnLoop
		}
	}
	return nil
}
