package tables

import (
	"github.com/asynkron/protoactor-go/actor"
)

// Watches are who watches whom between this node and one peer. They belong to the peer's mutex.
type Watches struct {
	ours   ordered[Pair, Watch]    // this node's actors watch the peer's
	theirs ordered[Pair, struct{}] // the peer's watch this node's ...
	bytes  int                     // ... the size of the names in bytes
	// the number of local watches at which dead watchers are looked for
	sweepAt int
}

// Pair is a watcher and whom it watches, by their ids.
type Pair struct{ Watcher, Watched string }

// Watch is a watch by a local actor.
type Watch struct{ Watcher, Watched *actor.PID }

// watchesMost is how many watches of a peer there may be, and watchesBytes how many bytes their
// names may have.
const (
	watchesMost  = 1 << 16
	watchesBytes = 8 << 20
)

// AddTheirs enters a watch of the peer's that is not there, if there is room for it.
func (w *Watches) AddTheirs(key Pair) (ok bool) {
	n := w.bytes + key.len()
	if w.theirs.len() >= watchesMost || n > watchesBytes {
		return false
	}
	w.theirs.add(key, struct{}{})
	w.bytes = n
	return true
}

// RemoveTheirs reports whether the peer had that watch.
func (w *Watches) RemoveTheirs(key Pair) (was bool) {
	if _, was = w.theirs.remove(key); was {
		w.bytes -= key.len()
	}
	return was
}

func (p Pair) len() int { return len(p.Watcher) + len(p.Watched) }

// Add enters a watch of this node's.
func (w *Watches) Add(key Pair, v Watch) {
	if _, ok := w.ours.get(key); !ok {
		w.ours.add(key, v)
	}
}

// Remove reports whether that was a watch of this node's, and returns it.
func (w *Watches) Remove(key Pair) (v Watch, was bool) { return w.ours.remove(key) }

// HasTheirs reports whether the peer has that watch.
func (w *Watches) HasTheirs(key Pair) bool {
	_, was := w.theirs.get(key)
	return was
}

// Len is how many there are of this node's, and of the peer's.
func (w *Watches) Len() (ours, theirs int) { return w.ours.len(), w.theirs.len() }

// Sweep removes the watches of actors that are gone, now and then, and returns them.
func (w *Watches) Sweep(alive func(id string) bool) (dead []Watch) {
	if w.ours.len() < w.sweepAt {
		return nil
	}
	w.ours.all(func(key Pair, v Watch) {
		if !alive(key.Watcher) {
			w.ours.remove(key)
			dead = append(dead, v)
		}
	})
	w.sweepAt = 2*w.ours.len() + 256
	return dead
}

// End removes all. It returns those of this node's, and the pairs of the peer's.
func (w *Watches) End() (ours []Watch, theirs []Pair) {
	w.ours.all(func(_ Pair, v Watch) { ours = append(ours, v) })
	w.theirs.all(func(key Pair, _ struct{}) { theirs = append(theirs, key) })
	*w = Watches{}
	return ours, theirs
}
