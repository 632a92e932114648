package network

import (
	"slices"
	"sort"
	"time"
)

// agenda is the future events.
type agenda struct {
	events []*event // sorted by due time, then by age
	serial uint64   // of the newest event
}

// event is something that happens at a time. Its owner reuses it.
type event struct {
	due    time.Time
	serial uint64 // the order in which events were made
	on     bool   // it is in the agenda
	what   happening
}

// happening is the action of an event. happen is called when the event is no longer in the agenda.
// It returns the line for the trace.
type happening interface {
	happen() string
}

// newEvent makes an event that is not yet in the agenda.
func (a *agenda) newEvent(what happening) event {
	a.serial++
	return event{serial: a.serial, what: what}
}

// set adds e to the agenda, or moves it there.
func (a *agenda) set(e *event, due time.Time) {
	if e.on {
		if e.due.Equal(due) {
			return
		}
		a.stop(e)
	}
	e.due, e.on = due, true
	a.events = slices.Insert(a.events, a.indexOf(e), e)
}

// stop removes e from the agenda if it is there.
func (a *agenda) stop(e *event) {
	if e.on {
		i := a.indexOf(e)
		e.on = false
		a.events = slices.Delete(a.events, i, i+1)
	}
}

// indexOf returns the index of e, or the one at which to insert it.
func (a *agenda) indexOf(e *event) int {
	return sort.Search(len(a.events), func(i int) bool {
		if c := a.events[i].due.Compare(e.due); c != 0 {
			return c > 0
		}
		return a.events[i].serial >= e.serial
	})
}

// next returns when the earliest event is due. ok is false if there is none.
func (a *agenda) next() (due time.Time, ok bool) {
	if len(a.events) == 0 {
		return time.Time{}, false
	}
	return a.events[0].due, true
}

// due returns how many events are due at now.
func (a *agenda) due(now time.Time) int {
	return sort.Search(len(a.events), func(i int) bool { return a.events[i].due.After(now) })
}

// runEvent removes event i from the agenda and runs it.
func (a *agenda) runEvent(i int) string {
	e := a.events[i]
	a.stop(e)
	return e.what.happen()
}
