package eventloop

import (
	"sync/atomic"
	"time"
)

// Stall is a callback that occupies its loop for too long, as reported to Config.OnStall.
type Stall struct {
	Loop   string
	Holder Holder
	For    time.Duration // how long it has been seen; at least Config.StallAfter
	// of the loop's goroutine; nil in a process of more than 1,000 goroutines, because all of them
	// would have to stop while it is read
	Stack []byte
}

// Alarm notifies goroutines that wait for loops when a loop stalls. One of these goroutines may be
// the loop's own, which would wait forever. So it also waits on C, which is free, and calls MayWait
// once after an alarm. Calling MayWait before each wait would cost more than the wait. Any number
// of loops may share an Alarm (Config.Alarm).
type Alarm struct{ c atomic.Pointer[chan struct{}] }

// NewAlarm makes an Alarm.
func NewAlarm() *Alarm {
	a := &Alarm{}
	c := make(chan struct{})
	a.c.Store(&c)
	return a
}

// C returns a channel that is closed when a callback has occupied one of the loops for
// Config.StallAfter. After that C returns a new channel, which is closed when that time has
// doubled, and so on. Any goroutine.
func (a *Alarm) C() <-chan struct{} { return *a.c.Load() }

func (a *Alarm) notifyWaiters() {
	next := make(chan struct{})
	close(*a.c.Swap(&next))
}
