package remoting

import (
	"github.com/asynkron/protoactor-go/actor"
)

// watches are who watches whom between this node and one peer. They belong to the peer's mutex.
type watches struct {
	ours   ordered[pair, watch]    // this node's actors watch the peer's
	theirs ordered[pair, struct{}] // the peer's watch this node's ...
	bytes  int                     // ... by names of so many bytes
	// how many of ours there may be before dead watchers are looked for
	sweepAt int
}

// pair is a watcher and whom it watches, by their ids.
type pair struct{ watcher, watched string }

// watch is one of ours.
type watch struct{ watcher, watched *actor.PID }

// watchesMost is how many watches of a peer there may be, and watchesBytes how many bytes their
// names may have.
const (
	watchesMost  = 1 << 16
	watchesBytes = 8 << 20
)

// addTheirs enters a watch of the peer's that is not there, if there is room for it.
func (w *watches) addTheirs(key pair) (ok bool) {
	n := w.bytes + key.len()
	if w.theirs.len() >= watchesMost || n > watchesBytes {
		return false
	}
	w.theirs.add(key, struct{}{})
	w.bytes = n
	return true
}

// removeTheirs reports whether the peer had that watch.
func (w *watches) removeTheirs(key pair) (was bool) {
	if _, was = w.theirs.remove(key); was {
		w.bytes -= key.len()
	}
	return was
}

func (p pair) len() int { return len(p.watcher) + len(p.watched) }

// add enters a watch of this node's.
func (w *watches) add(key pair, v watch) {
	if _, ok := w.ours.get(key); !ok {
		w.ours.add(key, v)
	}
}

// sweep removes the watches of actors that are gone, now and then, and returns them.
func (w *watches) sweep(alive func(id string) bool) (dead []watch) {
	if w.ours.len() < w.sweepAt {
		return nil
	}
	w.ours.all(func(key pair, v watch) {
		if !alive(key.watcher) {
			w.ours.remove(key)
			dead = append(dead, v)
		}
	})
	w.sweepAt = 2*w.ours.len() + 256
	return dead
}

// end removes all. It returns those of this node's, and the pairs of the peer's.
func (w *watches) end() (ours []watch, theirs []pair) {
	w.ours.all(func(_ pair, v watch) { ours = append(ours, v) })
	w.theirs.all(func(key pair, _ struct{}) { theirs = append(theirs, key) })
	*w = watches{}
	return ours, theirs
}
