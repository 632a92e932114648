package mailbox

import (
	"context"
	"slices"
	"strings"
)

// LastCalls ends the receiving of l's actors: the messages sent to them by now are the last that
// they get. Else actors that talk to each other would keep their loop from ending. Only the first
// call counts. Loop goroutine.
func (r *Registry) LastCalls(l *Loop) {
	l.ending = true
	if l.closing.Swap(true) {
		return
	}
	for _, m := range r.mailboxesOn(l) {
		m.PostData(lastCall{})
	}
}

// Resume queues the actors in the middle of whose messages the loop's goroutine has ended, so that
// they can be stopped. The messages are lost. From now on actors receive only in their turn. It is
// called after each such end. Loop goroutine.
func (l *Loop) Resume() {
	l.ending = true
	for r := l.inner; r != nil; {
		m := (*r).(*Mailbox)
		r, m.outer = m.outer, nil
		m.busy = false
		m.brokenOff()
		l.scheduleMailbox(&m.self)
	}
	l.inner = nil
}

// nothing is scheduled to see whether a loop still takes work.
type nothing struct{}

func (nothing) Run(int) (more bool) { return false }

// BuryAll answers what l's event loop leaves in its actors' mailboxes: those that were queued when
// it was abandoned. It is called after the event loop's Shutdown. If that gave up waiting, the
// rest comes when the loop lets go; until then its actors stay on it. Any goroutine but the
// loop's.
func (r *Registry) BuryAll(l *Loop) {
	if l.el.Schedule(nothing{}) == nil {
		l.Scheduler.Go(func() {
			_ = l.el.Shutdown(context.Background()) // its first caller has its error
			l.Scheduler.Resume()
			r.BuryAll(l)
		})
		return
	}
	l.ended.Store(true)
	for _, m := range r.mailboxesOn(l) {
		buried := make(chan struct{})
		l.Scheduler.Go(func() { // an actor may end the goroutine
			defer close(buried)
			l.runAfterEnd(&m.self)
		})
		l.Scheduler.Await(buried, nil)
	}
}

// mailboxesOn lists the mailboxes of the actors that x runs, by name.
func (r *Registry) mailboxesOn(x Executor) (ms []*Mailbox) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, m := range r.box {
		if m.exec == x {
			ms = append(ms, m)
		}
	}
	slices.SortFunc(ms, func(a, b *Mailbox) int { return strings.Compare(a.PID().Id, b.PID().Id) })
	return ms
}
