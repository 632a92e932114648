package network

import (
	"slices"
	"sort"
	"time"
)

// agenda is the events that are to happen, the earliest first. Of those that are due at the same
// time the older one is first.
type agenda []*event

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
	happen(n *Network) string
}

// event makes an event that is not in the agenda yet.
func (n *Network) event(what happening) event {
	n.serial++
	return event{serial: n.serial, what: what}
}

// set puts e into the agenda, or moves it there.
func (n *Network) set(e *event, due time.Time) {
	if e.on {
		if e.due.Equal(due) {
			return
		}
		n.agenda.remove(e)
	}
	e.due, e.on = due, true
	n.agenda = slices.Insert(n.agenda, n.agenda.place(e), e)
}

// stop takes e out of the agenda, if it is in.
func (n *Network) stop(e *event) {
	if e.on {
		n.agenda.remove(e)
	}
}

// place is where e is, or should be.
func (a agenda) place(e *event) int {
	return sort.Search(len(a), func(i int) bool {
		if c := a[i].due.Compare(e.due); c != 0 {
			return c > 0
		}
		return a[i].serial >= e.serial
	})
}

func (a *agenda) remove(e *event) {
	i := a.place(e)
	e.on = false
	*a = slices.Delete(*a, i, i+1)
}

// due is how many events are due at now.
func (a agenda) due(now time.Time) int {
	return sort.Search(len(a), func(i int) bool { return a[i].due.After(now) })
}
