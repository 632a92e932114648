package share

import (
	"slices"
	"time"

	"github.com/rdmactor/rdmactor/internal/fairshare"
)

// Calls that find no place may wait in a queue. Each needs a place there (Waiting), for which the
// same rules hold. When a place for calls becomes free, the addresses with calls that wait take
// turns, and those of an address its connections, as far as they may have one more. An address is
// last when it has got a place, and when it has returned its only one. Those without a place are in
// a separate line: others may not have the places that are kept for these, so a returned place
// would often be offered to all of them in vain. The oldest call of a connection is next. But if
// that has waited for a quarter of the longest wait, the server is overloaded, and the newest one
// is next. Otherwise all calls would be answered late. So most are answered early, and the oldest
// are refused when their time is over.
//
// It is no fairshare.Queue, which looks at all keys for the next value and keeps the order within a
// key.

// Waiter is a call that waits for a place.
type Waiter struct {
	Call any // the owner's

	conn  *Conn // nil: it does not wait
	since time.Time
	links [2]link // in the list of its connection, and in that of all
}

// link has a waiter's neighbours in a list.
type link struct{ older, newer *Waiter }

// list is a list of waiters in the order of their arrival.
type list struct {
	oldest, newest *Waiter
	in             int // index of Waiter.links
}

func (l *list) add(w *Waiter) {
	w.links[l.in] = link{older: l.newest}
	if l.newest == nil {
		l.oldest = w
	} else {
		l.newest.links[l.in].newer = w
	}
	l.newest = w
}

func (l *list) remove(w *Waiter) {
	k := &w.links[l.in]
	if k.older == nil {
		l.oldest = k.newer
	} else {
		k.older.links[l.in].newer = k.newer
	}
	if k.newer == nil {
		l.newest = k.older
	} else {
		k.newer.links[l.in].older = k.older
	}
	*k = link{}
}

// Await queues w, for which the connection has a place in the queue. The caller calls Next after
// it, as a place may have become free. If watch is set, it also calls Expired after the longest
// wait.
func (c *Conn) Await(w *Waiter) (watch bool) {
	a, p := c.of, c.peer
	a.mu.Lock()
	defer a.mu.Unlock()
	w.conn, w.since = c, time.Now()
	if c.queue.oldest == nil {
		p.turns = append(p.turns, c)
		if p.turn.in == nil {
			a.joinLineLocked(p)
		}
	}
	c.queue.add(w)
	a.queue.add(w)
	watch, a.watched = !a.watched, true
	return watch
}

// Forget removes w from the queue, and reports whether it waited there.
func (c *Conn) Forget(w *Waiter) (waited bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if waited = w.conn != nil; waited {
		c.of.forgetWaiterLocked(w)
	}
	return waited
}

// Next gives a place to the call whose turn it is, in exchange for that in the queue, and removes
// it from there. nil: no call may have one.
func (a *Account) Next() *Waiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nextLocked()
}

// GiveCall returns the place of a call. It is Next, too.
func (c *Conn) GiveCall() *Waiter {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.addLocked(Calls, -1)
	c.forgetLocked()
	return c.of.nextLocked()
}

// Expired removes the oldest call from the queue, if it has waited for the longest wait, or all is
// set. nil: it has not, and Expired is to be called again after the time next. 0: no call waits.
func (a *Account) Expired(all bool) (w *Waiter, next time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w = a.queue.oldest
	if w == nil {
		a.watched = false
		return nil, 0
	}
	if left := a.longest - time.Since(w.since); left > 0 && !all {
		return nil, max(left, a.longest/16) // not once for each call
	}
	a.forgetWaiterLocked(w)
	return w, 0
}

func (a *Account) nextLocked() *Waiter {
	left := a.total[Calls] - a.used[Calls]
	if left <= 0 {
		return nil
	}
	first := a.turns[0].first // it may have one
	if left > fairshare.Kept(a.total[Calls]) {
		for p := a.turns[1].first; p != nil && (first == nil || p.turn.number < first.turn.number); p = p.turn.next {
			if w := a.nextOfLocked(p); w != nil {
				return w
			}
		}
	}
	if first == nil {
		return nil
	}
	return a.nextOfLocked(first)
}

// nextOfLocked is nextLocked for one address.
func (a *Account) nextOfLocked(p *peer) *Waiter {
	if !p.mayLocked(a, Calls, 1) {
		return nil
	}
	for _, c := range p.turns {
		if !c.mayLocked(Calls, 1) {
			continue
		}
		w := c.queue.oldest
		if time.Since(w.since) > a.longest/4 {
			w = c.queue.newest
		}
		p.turns = append(without(p.turns, c), c)
		a.joinLineLocked(p)
		a.forgetWaiterLocked(w)
		c.addLocked(Waiting, -1)
		c.addLocked(Calls, 1)
		return w
	}
	return nil
}

// line has addresses in the order of their turns.
type line struct{ first, last *peer }

// turn is the turn of an address.
type turn struct {
	in         *line // nil: none of its calls wait
	prev, next *peer
	number     uint64 // larger than those of the addresses that have joined a line before
}

// joinLineLocked makes p the last one in its line.
func (a *Account) joinLineLocked(p *peer) {
	p.leaveLineLocked()
	l := &a.turns[min(p.used[Calls], 1)]
	a.joined++
	p.turn = turn{in: l, prev: l.last, number: a.joined}
	if l.last == nil {
		l.first = p
	} else {
		l.last.turn.next = p
	}
	l.last = p
}

// leaveLineLocked removes p from its line, if it is in one.
func (p *peer) leaveLineLocked() {
	t := p.turn
	if t.in == nil {
		return
	}
	if t.prev == nil {
		t.in.first = t.next
	} else {
		t.prev.turn.next = t.next
	}
	if t.next == nil {
		t.in.last = t.prev
	} else {
		t.next.turn.prev = t.prev
	}
	p.turn = turn{}
}

// forgetWaiterLocked removes w from the queue.
func (a *Account) forgetWaiterLocked(w *Waiter) {
	c, p := w.conn, w.conn.peer
	w.conn = nil
	c.queue.remove(w)
	a.queue.remove(w)
	if c.queue.oldest != nil {
		return
	}
	if p.turns = without(p.turns, c); len(p.turns) == 0 {
		p.leaveLineLocked()
	}
}

// without removes v from s.
func without[T comparable](s []T, v T) []T {
	i := slices.Index(s, v)
	return slices.Delete(s, i, i+1)
}
