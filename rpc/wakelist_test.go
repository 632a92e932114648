package rpc

import "testing"

// A peer may send thousands of windows in one message. The list of goroutines that they wake stays
// small, because each connection keeps its memory, and none of the goroutines is forgotten.
func TestWakeListIsBounded(t *testing.T) {
	var l wakeList
	all := make([]chan struct{}, 10*mostWakes)
	for i := range all {
		all[i] = make(chan struct{}, 1)
		l.add(all[i])
	}
	if n := cap(l); n > 2*mostWakes {
		t.Errorf("the list has room for %d goroutines", n)
	}
	if !l.wakeAll() || l.wakeAll() {
		t.Error("want wakeAll to report goroutines the first time, and none the second time")
	}
	for i, ready := range all {
		if len(ready) != 1 {
			t.Fatalf("goroutine %d was not woken", i)
		}
	}
}
