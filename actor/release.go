package actor

import "sync"

// returns is where released messages come back to their loop, from any goroutine.
type returns struct {
	l *loop

	mu      sync.Mutex
	in      []*Received
	waiting bool // Run is queued
	batch   []*Received
}

// put gives m back. After the loop's end there is nobody left to notify.
func (r *returns) put(m *Received) {
	r.mu.Lock()
	r.in = append(r.in, m)
	first := !r.waiting
	r.waiting = true
	r.mu.Unlock()
	if first {
		_ = r.l.el.Schedule(r)
	}
}

// Run takes everything back.
func (r *returns) Run(int) (more bool) {
	r.mu.Lock()
	r.in, r.batch = r.batch[:0], r.in
	r.waiting = false
	r.mu.Unlock()
	for i, m := range r.batch {
		r.batch[i] = nil
		m.giveBack()
	}
	return false
}

// LoopName names it in the loop's reports of stalls.
func (r *returns) LoopName() string { return "released messages" }
