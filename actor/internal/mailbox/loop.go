package mailbox

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rdmactor/rdmactor/eventloop"
)

// Loop is the executor of actors that an event loop runs, on its goroutine: they must not block.
type Loop struct {
	// Context is whatever the maker wants to find again from an actor's mailbox. Set before use.
	Context any

	el       *eventloop.Loop
	registry *Registry
	traces   bool // stalls are reported to somebody, who wants to know the message

	closing atomic.Bool // its actors get what they have been sent, and nothing more
	handoff atomic.Bool // an actor off the loop was woken: yield before blocking
	inner   *Mailbox    // whose message is being received; the loop's
	ended   atomic.Bool
	burial  sync.Mutex // after the end: one mailbox at a time, as on the loop
}

// NewLoop makes el the executor of actors of r's system. With traces the watchdog's reports of them
// name the message's type, which costs some nanoseconds for each message.
func NewLoop(el *eventloop.Loop, r *Registry, traces bool) *Loop {
	return &Loop{el: el, registry: r, traces: traces}
}

// EventLoop is the event loop.
func (l *Loop) EventLoop() *eventloop.Loop { return l.el }

func (l *Loop) schedule(r eventloop.Runnable) {
	if err := l.el.Schedule(r); err != nil {
		l.ended.Store(true)
		go l.bury(r)
	}
}

// turned passes on that an actor was woken elsewhere. Another goroutine than the loop's may have set
// the flag. Then the yield is for nothing, which costs less than to find that out.
func (l *Loop) turned() {
	if l.handoff.Load() {
		l.handoff.Store(false)
		l.el.Handoff()
	}
}

// Over reports whether the loop is known to have ended. Any goroutine.
func (l *Loop) Over() bool { return l.ended.Load() }

// lastCall is behind everything that an actor may still receive: its loop waits for no more. Else
// actors that talk to each other would keep it from ending.
type lastCall struct{}

// LastCalls ends the receiving of the loop's actors: what has been sent to them by now is the last
// that they get. Loop goroutine.
func (l *Loop) LastCalls() {
	l.closing.Store(true)
	for _, m := range l.registry.on(l) {
		m.Pass(lastCall{})
	}
}

// bury runs a mailbox whose loop has ended: lifecycle messages reach the actor, so that it can stop,
// everything else is answered. It has a goroutine of its own, because the poster may hold locks.
func (l *Loop) bury(r eventloop.Runnable) {
	l.burial.Lock()
	defer l.burial.Unlock()
	exhaust(r)
}

// nothing is scheduled to see whether a loop still takes work.
type nothing struct{}

func (nothing) Run(int) (more bool) { return false }

// BuryAll answers what the event loop leaves in its actors' mailboxes: those that were queued when
// it was abandoned. It is called after the event loop's Shutdown. If that gave up waiting, the rest
// comes when the loop lets go; until then its actors are its own. Any goroutine but the loop's.
func (l *Loop) BuryAll() {
	if l.el.Schedule(nothing{}) == nil {
		go func() {
			_ = l.el.Shutdown(context.Background()) // whoever called it first has its error
			l.BuryAll()
		}()
		return
	}
	l.ended.Store(true)
	for _, m := range l.registry.on(l) {
		l.bury(m)
	}
}
