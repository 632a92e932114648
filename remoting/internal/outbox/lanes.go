package outbox

import "container/list"

// lanes are the targets' own lanes. Peers name targets, so nothing that is done for each message
// looks at all of them.
type lanes struct {
	of      map[string]*own // the lane of each target
	order   list.List       // of *own, the oldest first
	names   int             // the bytes of the targets' names
	filled  int             // lanes with packets
	open    int             // lanes that may be taken from
	blocked []*own          // lanes for which senders wait
}

// own is the lane of one target.
type own struct {
	Lane
	target    string
	place     *list.Element // nil: the lane was removed
	after     uint64        // packets of the common lane with a number up to this one go first
	metered   bool
	allowance int  // bytes that may be taken while it is metered
	ready     bool // the lane is in Queue.ready
	filled    bool // counted in lanes.filled
	open      bool // counted in lanes.open
}

// mayTake reports whether a lane may be taken from, as far as its target is concerned.
func (o *own) mayTake() bool { return !o.Empty() && (!o.metered || o.allowance > 0) }

// add makes a target's lane; nil: there are too many.
func (l *lanes) add(target string, limit int, after uint64) *own {
	if len(l.of) >= ownMost || l.names+len(target) > ownBytes {
		return nil
	}
	o := &own{Lane: MakeLane(limit), target: target, after: after}
	if l.of == nil {
		l.of = make(map[string]*own)
	}
	l.of[target], o.place = o, l.order.PushBack(o)
	l.names += len(target)
	return o
}

// remove removes a lane without packets and senders.
func (l *lanes) remove(o *own) {
	delete(l.of, o.target)
	l.names -= len(o.target)
	l.order.Remove(o.place)
	o.place = nil
}

// updateCounts counts a lane that has changed.
func (l *lanes) updateCounts(o *own) {
	l.filled += countChange(&o.filled, !o.Empty())
	l.open += countChange(&o.open, o.mayTake())
}

func countChange(was *bool, is bool) int {
	switch {
	case *was == is:
		return 0
	case is:
		*was = true
		return 1
	}
	*was = false
	return -1
}

// all yields the lanes, oldest first. The loop may remove the one that it has.
func (l *lanes) all(yield func(*own) bool) {
	for at := l.order.Front(); at != nil; {
		next := at.Next()
		if !yield(at.Value.(*own)) {
			return
		}
		at = next
	}
}
