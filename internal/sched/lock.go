package sched

import "sync"

// Lock is a lock that its owner may keep while it waits. In a program it is a sync.Mutex. In a
// simulation the others stand in a channel, where the simulation knows that they wait. Its zero
// value is unlocked. All calls give it the same Scheduler.
type Lock struct {
	mu   sync.Mutex
	make sync.Once
	own  chan struct{} // in a simulation, instead of mu
}

// Lock locks it. Those that wait get it in the order in which they came in a simulation.
func (l *Lock) Lock(s *Scheduler) {
	if s == nil {
		l.mu.Lock()
		return
	}
	l.make.Do(func() { l.own = make(chan struct{}, 1) })
	select {
	case l.own <- struct{}{}:
		return
	default:
	}
	l.own <- struct{}{}
	resumed := false
	defer func() {
		if !resumed { // the process has ended
			l.Unlock(s)
		}
	}()
	s.Resume()
	resumed = true
}

// Unlock unlocks it.
func (l *Lock) Unlock(s *Scheduler) {
	if s == nil {
		l.mu.Unlock()
		return
	}
	<-l.own
}
