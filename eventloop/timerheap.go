package eventloop

import "container/heap"

// deadline is when a timer fires, and what it runs.
type deadline struct {
	task  Runnable // timerFunc
	when  int64    // nanoseconds since the loop's base
	seq   uint64   // order of arming, among equal times
	index int      // in the heap, -1 while unarmed
}

// timerHeap is the armed timers, the earliest first, equal ones in the order of arming. Only
// package heap calls its exported methods.
type timerHeap struct {
	heap []*deadline
	seq  uint64
}

func (h *timerHeap) Len() int { return len(h.heap) }

func (h *timerHeap) Less(i, j int) bool {
	t, u := h.heap[i], h.heap[j]
	return t.when < u.when || t.when == u.when && t.seq < u.seq
}

func (h *timerHeap) Swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].index, h.heap[j].index = i, j
}

func (h *timerHeap) Push(t any) {
	h.heap = append(h.heap, t.(*deadline))
}

func (h *timerHeap) Pop() any {
	last := len(h.heap) - 1
	t := h.heap[last]
	h.heap[last] = nil
	h.heap = h.heap[:last]
	return t
}

// put arms t, or moves one that is armed.
func (h *timerHeap) put(t *deadline) {
	h.seq++
	t.seq = h.seq
	if t.index >= 0 {
		heap.Fix(h, t.index)
		return
	}
	t.index = len(h.heap)
	heap.Push(h, t)
}

// remove disarms t.
func (h *timerHeap) remove(t *deadline) {
	heap.Remove(h, t.index)
	t.index = -1
}
