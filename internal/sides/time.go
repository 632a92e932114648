package sides

import "time"

// Virtual time advances in steps until VirtualDeadline, which is longer than any timer of a device.
const (
	VirtualDeadline = 5 * time.Minute
	VirtualStep     = 50 * time.Millisecond
)

// turnLoops turns both loops until they have done all work that can be done now.
func (w *World) turnLoops() {
	w.Helper()
	w.Must(w.loops.Turn())
}

// Until waits for cond in the drivers' time, and ends the test if that takes too long.
func (w *World) Until(what string, cond func() bool) {
	w.Helper()
	if !w.Within(VirtualDeadline, w.Patience, cond) {
		w.Fatalf("waited in vain for %s; active has %v, passive %v", what, w.A.Pending(), w.B.Pending())
	}
}

// Within waits for cond and reports whether it came true in time. The limit is virtual if the
// drivers have virtual time, and real otherwise.
func (w *World) Within(virtual, real time.Duration, cond func() bool) bool {
	w.Helper()
	if w.hasVirtualTime() {
		for passed := time.Duration(0); ; passed += VirtualStep {
			w.turnLoops()
			if cond() {
				return true
			}
			if passed >= virtual {
				return false
			}
			w.advanceTime()
		}
	}
	for deadline := time.Now().Add(real); ; {
		w.turnLoops()
		if cond() {
			return true
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		w.Must(w.loops.Wait(left + time.Millisecond))
	}
}

// hasVirtualTime reports whether the drivers have virtual time.
func (w *World) hasVirtualTime() bool { return w.Clock != nil || w.Poller != nil }

// advanceTime advances virtual time.
func (w *World) advanceTime() {
	if w.Clock != nil {
		w.Clock.Advance(VirtualStep)
		return
	}
	time.Sleep(VirtualStep)
}

// Settle waits until nothing more happens, apart from timers.
func (w *World) Settle() {
	w.Helper()
	w.Within(0, w.Quiet, func() bool { return false })
}

// ActiveOnly turns only the active side's loop. The devices keep running, and events for the
// passive side stay unread.
func (w *World) ActiveOnly() {
	w.Helper()
	for deadline := time.Now().Add(w.Quiet); ; time.Sleep(time.Millisecond) {
		for range TurnsPerStep {
			w.Must(w.A.Loop.Turn())
		}
		if w.hasVirtualTime() || time.Now().After(deadline) {
			return
		}
	}
}
