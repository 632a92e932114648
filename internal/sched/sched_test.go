package sched_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rdmactor/rdmactor/internal/sched"
)

// Those that wait for a Lock get it in the order in which they came, where a simulation sees that
// they wait. One whose process ends as it gets it passes it on.
func TestLockWaitsWhereItIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l sched.Lock
		var got []int
		resumed := 0
		s := &sched.Scheduler{
			Turn: func(fn func()) func() { return fn },
			Wait: func() {
				if resumed++; resumed == 2 {
					runtime.Goexit()
				}
			},
		}
		l.Lock(s)
		for i := range 4 {
			s.Go(func() {
				l.Lock(s)
				got = append(got, i)
				l.Unlock(s)
			})
			synctest.Wait()
		}
		l.Unlock(s)
		synctest.Wait()
		if want := []int{0, 2, 3}; !slices.Equal(got, want) {
			t.Errorf("they got the lock in the order %v, want %v", got, want)
		}
	})
}

// Await prefers its argument, and otherwise waits for the first event.
func TestAwait(t *testing.T) {
	over, open := make(chan struct{}), make(chan struct{})
	close(over)
	var none *sched.Scheduler
	for range 100 {
		if !none.Await(over, over) {
			t.Fatal("both are closed, and the second was preferred")
		}
	}
	if none.Await(open, over) {
		t.Error("the first is open, and was taken for closed")
	}
	// what happens while the caller waits for its turn counts, too
	late := &sched.Scheduler{Wait: sync.OnceFunc(func() { close(open) })}
	if !late.Await(open, over) {
		t.Error("the first was closed before the caller's turn came")
	}
}
