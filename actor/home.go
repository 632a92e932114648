package actor

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// home is where a mailbox's actor runs.
type home interface {
	// schedule has m.Run called until it has no more. Any goroutine; m's state is scheduled, so it is not called twice.
	schedule(m *mailbox)
	// turned is told on the consumer's goroutine that an actor has had its turn.
	turned()
	// over reports whether the home has ended: its actors may still be stopped, but receive nothing more.
	over() bool
}

// mailLoop is the part of a loop that its mailboxes need. The zero value is ready.
type mailLoop struct {
	closing atomic.Bool // its actors get what they have been sent, and nothing more
	handoff atomic.Bool // an actor off the loop was woken: yield before blocking
	inner   *mailbox    // whose message is being received; the loop's
	ended   atomic.Bool
	epitaph sync.Mutex // after the end: one mailbox at a time, as on the loop
}

func (l *loop) schedule(m *mailbox) {
	if err := l.el.Schedule(m); err != nil {
		l.mail.ended.Store(true)
		go l.bury(m)
	}
}

// turned passes on that an actor was woken elsewhere. The flag may be the doing of another goroutine than the loop's: asking which
// costs more than the yield that is then made for nothing.
func (l *loop) turned() {
	if l.mail.handoff.Load() {
		l.mail.handoff.Store(false)
		l.el.Handoff()
	}
}

func (l *loop) over() bool { return l.mail.ended.Load() }

// lastCall is behind everything that an actor may still receive: its loop waits for no more. Else
// actors that talk to each other would keep it from ending.
type lastCall struct{}

// lastCalls ends the loop's actors' receiving. Loop goroutine.
func (l *loop) lastCalls() {
	l.mail.closing.Store(true)
	for _, m := range l.boxes.of(l) {
		m.pass(lastCall{})
	}
}

// bury runs a mailbox whose loop has ended: lifecycle messages reach the actor, so that it can stop, everything else is answered.
// On a goroutine of its own, because the poster may hold locks.
func (l *loop) bury(m *mailbox) {
	l.mail.epitaph.Lock()
	defer l.mail.epitaph.Unlock()
	for m.Run(offLoopBudget) {
		runtime.Gosched()
	}
}

// nothing is scheduled to see whether a loop still takes work.
type nothing struct{}

func (nothing) Run(int) (more bool) { return false }

// buryAll answers what a loop leaves in its mailboxes: those it had queued when it was abandoned. Called after the loop's Shutdown.
// If that gave up waiting, the rest comes when the loop lets go; until then its actors are its own.
func (l *loop) buryAll() {
	if l.el.Schedule(nothing{}) == nil {
		go func() {
			_ = l.el.Shutdown(context.Background()) // whoever called it first has told its error
			l.buryAll()
		}()
		return
	}
	l.mail.ended.Store(true)
	for _, m := range l.boxes.of(l) {
		l.bury(m)
	}
}

// offLoopBudget is how many messages an actor off the loop takes before it offers its processor to others; Proto.Actor's default.
const offLoopBudget = 300

// goroutines is the home of actors that may block: one goroutine per burst of messages.
type goroutines struct{ loops []*loop }

func (g *goroutines) schedule(m *mailbox) {
	for _, l := range g.loops {
		if !l.mail.handoff.Load() {
			l.mail.handoff.Store(true)
		}
	}
	go run(m)
}

func run(m *mailbox) {
	for m.Run(offLoopBudget) {
		runtime.Gosched()
	}
}

func (g *goroutines) turned() {}

func (g *goroutines) over() bool { return false }
