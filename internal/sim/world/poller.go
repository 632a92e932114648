package world

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// poller is a loop's eventloop.Poller. Wait returns when the World has granted the loop a turn.
type poller struct {
	p      *Process
	name   string
	number int // in its process

	mu      sync.Mutex
	watched []watch // sorted by descriptor
	woken   bool
	waiting bool      // the loop is in Wait
	due     time.Time // the end of Wait; zero: never
	turn    chan []eventloop.Ready
}

type watch struct {
	fd       int
	file     uint64 // the number may have been reused
	interest eventloop.Events
	tag      uint64
}

func newPoller(p *Process) *poller {
	n := len(p.pollers)
	return &poller{p: p, name: fmt.Sprintf("%s/%d", p.name, n), number: n, turn: make(chan []eventloop.Ready)}
}

func (q *poller) findFD(fd int) (int, bool) {
	return slices.BinarySearchFunc(q.watched, fd, func(w watch, fd int) int { return w.fd - fd })
}

// forgetClosed removes descriptors that were closed without being removed, as epoll does.
func (q *poller) forgetClosed() {
	if !q.p.dead {
		q.watched = slices.DeleteFunc(q.watched, func(w watch) bool { return q.p.fileID(w.fd) != w.file })
	}
}

// Add implements eventloop.Poller.
func (q *poller) Add(fd int, ev eventloop.Events, tag uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forgetClosed()
	i, ok := q.findFD(fd)
	switch {
	case q.p.fileID(fd) == 0:
		return unix.EBADF
	case ok:
		return unix.EEXIST
	}
	if errno := q.p.w.drawErrno("epoll_ctl"); errno != 0 {
		return errno
	}
	q.watched = slices.Insert(q.watched, i, watch{fd, q.p.fileID(fd), ev, tag})
	return nil
}

// Modify implements eventloop.Poller.
func (q *poller) Modify(fd int, ev eventloop.Events, tag uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, ok := q.findFD(fd)
	if !ok {
		return unix.ENOENT
	}
	q.watched[i].interest, q.watched[i].tag = ev, tag
	return nil
}

// Remove implements eventloop.Poller.
func (q *poller) Remove(fd int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, ok := q.findFD(fd)
	if !ok {
		return unix.ENOENT
	}
	q.watched = slices.Delete(q.watched, i, i+1)
	return nil
}

// Wait implements eventloop.Poller.
func (q *poller) Wait(dst []eventloop.Ready, timeout time.Duration) (int, error) {
	q.mu.Lock()
	q.waiting = true
	q.due = time.Time{}
	if timeout >= 0 {
		q.due = time.Now().Add(timeout)
	}
	q.mu.Unlock()
	q.p.w.recordRunner(q)
	q.p.w.wakeScript()
	got, ok := <-q.turn
	if !ok {
		return 0, fmt.Errorf("the simulation is over: %w", unix.EIO)
	}
	return copy(dst, got), nil
}

// recordRunner records which goroutine runs a twin's loop. A callback may have ended the last one.
func (w *World) recordRunner(q *poller) {
	if w.loops != nil {
		w.mu.Lock()
		w.loops[goroutineID()] = q
		w.mu.Unlock()
	}
}

// Wake implements eventloop.Poller.
func (q *poller) Wake() error {
	q.mu.Lock()
	q.woken = true
	q.mu.Unlock()
	q.p.w.wakeScript()
	return nil
}

// Close implements eventloop.Poller.
func (q *poller) Close() error { return nil }

// readyEvents returns the events that Wait could report now, by descriptor, and whether the loop
// may have a turn.
func (q *poller) readyEvents(now time.Time) (all []eventloop.Ready, turn bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.waiting {
		return nil, false
	}
	q.forgetClosed()
	for _, w := range q.watched {
		if ev := q.p.readyEvents(w.fd) & (w.interest | eventloop.Hangup | eventloop.Error); ev != 0 {
			all = append(all, eventloop.Ready{Tag: w.tag, Events: ev})
		}
	}
	return all, len(all) > 0 || q.woken || q.expiredAt(now)
}

// expiredAt reports whether Wait's time is over.
func (q *poller) expiredAt(now time.Time) bool { return !q.due.IsZero() && !now.Before(q.due) }

// isExpired reports whether the time of the loop's Wait is over.
func (q *poller) isExpired() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.expiredAt(time.Now())
}

// waitDeadline returns the end of Wait: zero for never.
func (q *poller) waitDeadline() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.waiting {
		return time.Time{}
	}
	return q.due
}

// grantTurn grants the loop a turn in which Wait reports got.
func (q *poller) grantTurn(got []eventloop.Ready) {
	q.mu.Lock()
	q.waiting, q.woken = false, false
	q.mu.Unlock()
	q.turn <- got
}

// describeEvents lists reports for the trace, by descriptor, because tags are private to the loop.
func (q *poller) describeEvents(got []eventloop.Ready) string {
	var s strings.Builder
	for _, r := range got {
		i := slices.IndexFunc(q.watched, func(w watch) bool { return w.tag == r.Tag })
		fmt.Fprintf(&s, " %d:%v", q.watched[i].fd, r.Events)
	}
	return s.String()
}
