package mailbox

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/sched"
)

// Executor is where actors run: a *Loop, or *Goroutines.
type Executor interface {
	// scheduleMailbox calls r's Run until it is done. Any goroutine. It is not called again for the
	// same r before that. r is a pointer to the interface, because a goroutine is started with less
	// if its argument is one word.
	scheduleMailbox(r *eventloop.Runnable)
	// turnEnded handles the end of an actor's turn, on the consumer's goroutine.
	turnEnded()
	// Over reports whether the executor has ended: its actors can still be stopped, but receive
	// nothing more. Any goroutine.
	Over() bool
	// reportEscaped reports user code that is not an actor's Receive and has panicked: its kind,
	// and the name of the actor for whose message it was called. Any goroutine.
	reportEscaped(kind, name string, value any)
	// now is the time on the executor's clock. The consumer's goroutine.
	now() time.Time
}

// Loop is the executor of actors that an event loop runs, on its goroutine: they must not block.
type Loop struct {
	// Context is whatever the maker wants to find again from an actor's mailbox. Set before use.
	Context any
	// Scheduler is of what happens off the loop. nil, except in a simulation. Set before use.
	Scheduler *sched.Scheduler
	// Failed is called on the loop when an actor has panicked, with the actor's name, before its
	// supervisor hears of it. nil: not reported. Set before use.
	Failed func(actor string)
	// Escaped is called when other user code has panicked: a subscriber of dead letters, a
	// supervisor. Any goroutine. nil: it is not reported. Set before use.
	Escaped func(kind, name string, value any)

	el     *eventloop.Loop
	traces bool // stalls are reported, with the message

	closing atomic.Bool         // its actors get the messages sent by now, and no others
	handoff atomic.Bool         // an actor off the loop was woken: yield before blocking
	inner   *eventloop.Runnable // the mailbox whose message is being received; the loop's
	ending  bool                // actors receive in their turn only; the loop's
	ended   atomic.Bool
	burial  sched.Lock // after the end: one mailbox at a time, as on the loop
}

// NewLoop makes el an executor. With traces the watchdog's reports name the type of the message
// that an actor is receiving, which costs some nanoseconds for each message.
func NewLoop(el *eventloop.Loop, traces bool) *Loop { return &Loop{el: el, traces: traces} }

func (l *Loop) scheduleMailbox(r *eventloop.Runnable) {
	if err := l.el.Schedule(*r); err != nil {
		l.ended.Store(true)
		l.Scheduler.Go(func() { l.runAfterEnd(r) })
	}
}

// turnEnded passes on to the event loop that an actor off the loop was woken. If another goroutine
// has set the flag the yield is useless, but to find that out would cost more.
func (l *Loop) turnEnded() {
	if l.handoff.Load() {
		l.handoff.Store(false)
		l.el.Handoff()
	}
}

// Over reports whether the loop is known to have ended. Any goroutine.
func (l *Loop) Over() bool { return l.ended.Load() }

func (l *Loop) reportEscaped(kind, name string, value any) {
	if l.Escaped != nil {
		l.Escaped(kind, name, value)
	}
}

func (l *Loop) now() time.Time { return l.el.Now() }

// runAfterEnd runs a mailbox whose loop has ended: lifecycle messages reach the actor, so that it
// can stop, everything else is answered. It has a separate goroutine, because the poster may hold
// locks.
func (l *Loop) runAfterEnd(r *eventloop.Runnable) {
	l.burial.Lock(l.Scheduler)
	defer l.burial.Unlock(l.Scheduler)
	runUntilDone(r)
}

// offLoopBudget is how many messages an actor off the loops takes before it offers its processor to
// others; Proto.Actor's default.
const offLoopBudget = 300

// Goroutines is the executor of actors that may block: one goroutine per burst of messages.
type Goroutines struct {
	// Loops are those that yield before they sleep when such an actor was woken. Set before use.
	Loops []*Loop
	// Scheduler is nil, except in a simulation. Set before use.
	Scheduler *sched.Scheduler
	// Escaped is as a Loop's.
	Escaped func(kind, name string, value any)
}

func (g *Goroutines) scheduleMailbox(r *eventloop.Runnable) {
	for _, l := range g.Loops {
		if !l.handoff.Load() {
			l.handoff.Store(true)
		}
	}
	if g.Scheduler == nil {
		go runUntilDone(r)
		return
	}
	g.Scheduler.Go(func() { g.runSimulated(r) })
}

// runSimulated runs the mailbox r until it is done, in a simulation.
func (g *Goroutines) runSimulated(r *eventloop.Runnable) {
	for runTurn(r) {
		g.Scheduler.Resume()
	}
}

// runUntilDone runs the mailbox r until it is done.
func runUntilDone(r *eventloop.Runnable) {
	for runTurn(r) {
		runtime.Gosched()
	}
}

// runTurn runs one turn of the mailbox r. If the actor ends the goroutine, another one goes on.
func runTurn(r *eventloop.Runnable) (more bool) {
	returned := false
	defer func() {
		if !returned {
			(*r).(*Mailbox).goroutineEnded()
		}
	}()
	more = (*r).Run(offLoopBudget)
	returned = true
	return more
}

func (g *Goroutines) turnEnded() {}

func (g *Goroutines) reportEscaped(kind, name string, value any) {
	if g.Escaped != nil {
		g.Escaped(kind, name, value)
	}
}

func (g *Goroutines) now() time.Time { return time.Now() }

// Over reports false: goroutines do not end.
func (g *Goroutines) Over() bool { return false }
