package eventloop

import (
	"sync/atomic"
	"time"
)

// Stall is a callback that holds its loop, as reported to Config.OnStall.
type Stall struct {
	Loop   string
	Holder Holder
	For    time.Duration // how long it has been seen; at least Config.StallAfter
	// of the loop's goroutine; nil in a process of more than 1,000 goroutines, which would all
	// have to stop for it
	Stack []byte
}

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

type watchdog struct {
	stop      chan struct{}
	done      chan struct{}
	awake     chan struct{} // holds a token when the loop has something to do again
	asleep    atomic.Bool   // the loop had nothing to do, so nor has the watchdog
	reporting atomic.Bool   // OnStall is under way

	// The watchdog's own, or that of the goroutine that takes its place.
	last  sight
	since time.Time
	due   time.Duration // of the next alarm
}

// rouse ends the watchdog's sleep. Loop goroutine.
func (w *watchdog) rouse() {
	w.asleep.Store(false)
	select {
	case w.awake <- struct{}{}:
	default:
	}
}

// sight is what the watchdog sees of the callback that has the loop. A call is known by its turn
// and the place of its Runnable: only deferred work that defers itself, and glances, of which the
// last but one found nothing, can be in one place twice in a turn.
type sight struct {
	turn           uint64
	holder, blamed *Runnable
}
