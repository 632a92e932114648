package network

import (
	"slices"
	"sort"
	"time"
)

// agenda is the events that are to happen.
type agenda struct {
	events []*event // the earliest first; of those due at the same time, the older one is first
	serial uint64   // of the newest event
}

// event is something that is to happen at a time. Its owner uses it again and again.
type event struct {
	due    time.Time
	serial uint64 // in which order events were made
	on     bool   // it is in the agenda
	what   happening
}

// happening is what an event does. happen is called when the event is no longer in the agenda. It
// returns the line for the trace.
type happening interface {
	happen() string
}

// event makes an event that is not in the agenda yet.
func (a *agenda) event(what happening) event {
	a.serial++
	return event{serial: a.serial, what: what}
}

// set puts e into the agenda, or moves it there.
func (a *agenda) set(e *event, due time.Time) {
	if e.on {
		if e.due.Equal(due) {
			return
		}
		a.stop(e)
	}
	e.due, e.on = due, true
	a.events = slices.Insert(a.events, a.place(e), e)
}

// stop takes e out of the agenda, if it is in.
func (a *agenda) stop(e *event) {
	if e.on {
		i := a.place(e)
		e.on = false
		a.events = slices.Delete(a.events, i, i+1)
	}
}

// place is where e is, or should be.
func (a *agenda) place(e *event) int {
	return sort.Search(len(a.events), func(i int) bool {
		if c := a.events[i].due.Compare(e.due); c != 0 {
			return c > 0
		}
		return a.events[i].serial >= e.serial
	})
}

// next is when the earliest event is due. ok is false if there is none.
func (a *agenda) next() (due time.Time, ok bool) {
	if len(a.events) == 0 {
		return time.Time{}, false
	}
	return a.events[0].due, true
}

// due is how many events are due at now.
func (a *agenda) due(now time.Time) int {
	return sort.Search(len(a.events), func(i int) bool { return a.events[i].due.After(now) })
}

// happen takes the event i out of the agenda and lets it happen.
func (a *agenda) happen(i int) string {
	e := a.events[i]
	a.stop(e)
	return e.what.happen()
}
