package oracle

import (
	"fmt"
	"strings"
	"time"
)

// Returned judges quiet moments, in which a program lives and has nothing under way: by then all
// resources for finished messages, closed connections and departed peers must be returned. So it
// finds faults that a Shutdown hides: a shrinking budget, a lost slot, a waiter that is never
// woken. The zero value, with Fail and Within set, is empty.
type Returned struct {
	Fail Fail
	// Within is how long it may take from the first look on until everything is returned.
	Within time.Duration

	since  time.Duration
	looked bool
}

// Held is a resource that a program holds at a quiet moment.
type Held struct {
	What  string // such as "bytes of the pool send of host1's loop 0"
	Count int
	Owed  int // the part that is still in legitimate use, and returned later
}

// Look enters the resources held now. It reports whether everything is returned, or whether it is
// too late, which is a failure.
func (l *Returned) Look(now time.Duration, where string, all []Held) (over bool) {
	if !l.looked {
		l.looked, l.since = true, now
	}
	var left []string
	for _, h := range all {
		if h.Count != h.Owed {
			left = append(left, fmt.Sprintf("%d %s, want %d", h.Count, h.What, h.Owed))
		}
	}
	switch {
	case len(left) == 0:
		return true
	case now-l.since < l.Within:
		return false
	}
	l.Fail("%v: %s has not returned everything, %v after the last of it was used: %s",
		now, where, now-l.since, strings.Join(left, "; "))
	return true
}
