package eventloop

import (
	"sync/atomic"
	"time"
)

// deadline is the time at which a timer fires, and its task.
type deadline struct {
	task  Runnable // timerFunc
	when  int64    // nanoseconds since the loop's base
	seq   uint64   // order of arming, among equal times
	index int      // in the heap, -1 while unarmed
}

// timerHeap is a binary heap by time, then by order of arming. Each packet arms a timer, and
// package heap's calls through an interface take 1.7 times as long (BenchmarkTimer).
type timerHeap struct {
	heap  []*deadline
	seq   uint64
	count atomic.Int64 // of heap, for any goroutine to read
}

// fire runs the timers that are due at now, and returns how many ran. It leaves out those that are
// armed while it runs: otherwise a timer that arms itself for now would keep the turn from ending.
func (h *timerHeap) fire(now int64, calls *callbacks) (fired int) {
	for last := h.seq; len(h.heap) > 0; fired++ {
		t := h.heap[0]
		if t.when > now || t.seq > last {
			break
		}
		h.remove(t)
		calls.run(&t.task)
	}
	return fired
}

// until returns how long it is from now until the earliest timer: negative for none.
func (h *timerHeap) until(now int64) time.Duration {
	if len(h.heap) == 0 {
		return -1
	}
	return time.Duration(max(h.heap[0].when-now, 0))
}

// clear disarms all timers.
func (h *timerHeap) clear() {
	for len(h.heap) > 0 {
		h.remove(h.heap[0])
	}
}

func (t *deadline) before(u *deadline) bool {
	return t.when < u.when || t.when == u.when && t.seq < u.seq
}

// put arms t, or moves one that is armed.
func (h *timerHeap) put(t *deadline) {
	h.seq++
	t.seq = h.seq
	if t.index >= 0 {
		h.fix(t.index)
		return
	}
	t.index = len(h.heap)
	h.heap = append(h.heap, t)
	h.count.Store(int64(len(h.heap)))
	h.up(t.index)
}

// remove disarms t.
func (h *timerHeap) remove(t *deadline) {
	i, last := t.index, len(h.heap)-1
	t.index = -1
	moved := h.heap[last]
	h.heap[last] = nil
	h.heap = h.heap[:last]
	h.count.Store(int64(last))
	if i != last {
		h.heap[i] = moved
		moved.index = i
		h.fix(i)
	}
}

// fix puts the timer at i, whose time changed, where it belongs.
func (h *timerHeap) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *timerHeap) up(i int) {
	t := h.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(h.heap[parent]) {
			break
		}
		h.heap[i] = h.heap[parent]
		h.heap[i].index = i
		i = parent
	}
	h.heap[i] = t
	t.index = i
}

func (h *timerHeap) down(start int) (moved bool) {
	t, i := h.heap[start], start
	for {
		child := 2*i + 1
		if child >= len(h.heap) {
			break
		}
		if right := child + 1; right < len(h.heap) && h.heap[right].before(h.heap[child]) {
			child = right
		}
		if !h.heap[child].before(t) {
			break
		}
		h.heap[i] = h.heap[child]
		h.heap[i].index = i
		i = child
	}
	h.heap[i] = t
	t.index = i
	return i > start
}
