package oracle

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Reason is why a watch has ended.
type Reason uint8

// The reasons.
const (
	HasStopped Reason = iota
	IsUnreachable
	IsNotFound
)

func (r Reason) String() string {
	return [...]string{"stopped", "unreachable", "not found"}[r]
}

// watchKey identifies a watch: the watcher and the watched actor.
type watchKey struct {
	watcher string
	to      Place
}

// String names the two for verdicts.
func (k watchKey) String() string {
	return k.watcher + " watches " + k.to.Name + " at " + k.to.Node
}

// watching is the watches of one actor by another.
type watching struct {
	since   []time.Duration // starts of the watches without a Terminated, oldest first
	on      bool            // the latest was not cancelled
	due     bool            // the connection has ended
	allowed bool            // the other node permits the watch
}

// Watch enters that an actor of f watches another one. allowed: the other node permits it. Not ok:
// the actor is watched already, and no message must be sent.
func (f *Life) Watch(now time.Duration, watcher string, to Place, allowed bool) (ok bool) {
	k := watchKey{watcher, to}
	w := f.watches[k]
	if w == nil {
		w = &watching{}
		f.watches[k] = w
	}
	if w.on {
		return false
	}
	w.on, w.due, w.allowed = true, false, allowed
	w.since = append(w.since, now)
	return true
}

// Unwatch enters that a watch is cancelled. A Terminated that is on its way may still come.
func (f *Life) Unwatch(watcher string, to Place) {
	if w := f.watches[watchKey{watcher, to}]; w != nil {
		w.on = false
	}
}

// Forget enters that a watcher is gone, and is no longer notified.
func (f *Life) Forget(watcher string) {
	for k, w := range f.watches {
		if k.watcher == watcher {
			w.on = false
		}
	}
}

// Terminated enters that a watcher is notified. quiet: nothing has disturbed the two nodes.
func (f *Life) Terminated(now time.Duration, watcher string, to Place, why Reason, quiet bool) {
	l := f.l
	if f.over {
		return
	}
	w := f.watches[watchKey{watcher, to}]
	if w == nil || len(w.since) == 0 {
		l.Fail("%v: %s of %v is notified that %s at %s is %v, and does not watch it, or was notified before", now, watcher, f, to.Name, to.Node, why)
		return
	}
	since := w.since[0]
	switch {
	case why == IsNotFound && w.allowed && l.wasThere(to, since):
		l.Fail("%v: %s of %v is notified that %s at %s is not found, and it was there since %v", now, watcher, f, to.Name, to.Node, since)
	case why == HasStopped && !l.hasStopped(to, since):
		l.Fail("%v: %s of %v is notified that %s at %s has stopped, and it has not since %v", now, watcher, f, to.Name, to.Node, since)
	case why == IsUnreachable && quiet:
		l.Fail("%v: %s of %v is notified that %s at %s is unreachable, and nothing has disturbed the two", now, watcher, f, to.Name, to.Node)
	}
	w.since = w.since[1:]
	w.on = false // if it was watched again in between, it is unknown which of the two watches ended
}

// wasThere reports whether an actor was there all the time since then.
func (l *Posts) wasThere(to Place, since time.Duration) bool {
	for _, f := range l.lives[to.Node] {
		if !f.over && f.actors[to.Name].alwaysSince(since) {
			return true
		}
	}
	return false
}

// hasStopped reports whether an actor has stopped at any time since then.
func (l *Posts) hasStopped(to Place, since time.Duration) bool {
	for _, f := range l.lives[to.Node] {
		if a := f.actors[to.Name]; a != nil && a.ended >= since {
			return true
		}
	}
	return false
}

// listOwed lists the watchers that must be notified, and were not.
func (l *Posts) listOwed() (all []string) {
	for _, node := range slices.Sorted(maps.Keys(l.lives)) {
		for _, f := range l.lives[node] {
			if !f.over {
				all = append(all, f.listOwed()...)
			}
		}
	}
	return all
}

// endOfTime is after everything.
const endOfTime = time.Duration(math.MaxInt64)

// cutWatches enters that the connection with a peer has ended, which ends all watches. It is
// reported a little later, so the latest watches may belong to the next connection.
func (f *Life) cutWatches(now time.Duration, peer string) {
	for k, w := range f.watches {
		if n := len(w.since); k.to.Node == peer && w.on && n > 0 && w.since[n-1] < now-time.Second {
			w.due = true
		}
	}
}

// listOwed lists those of one life.
func (f *Life) listOwed() (all []string) {
	for _, k := range slices.SortedFunc(maps.Keys(f.watches), func(a, b watchKey) int {
		return strings.Compare(a.String(), b.String())
	}) {
		w := f.watches[k]
		if w.on && (w.due || !w.allowed || !f.l.wasThere(k.to, endOfTime)) {
			all = append(all, fmt.Sprintf("%v (by %v)", k, f))
		}
	}
	return all
}
