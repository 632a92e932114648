package actor

import (
	"errors"
	"slices"
	"testing"
)

func TestFirstCauseCounts(t *testing.T) {
	first := errors.New("first")
	var l lifetime
	l.setCause(nil)
	l.setCause(first)
	l.setCause(errors.New("its consequence"))
	if l.cause != first { //nolint:errorlint // the very one
		t.Errorf("the cause is %v", l.cause)
	}
}

// Functions that wait for the goodbye are called in order, once.
func TestGoodbyeIsAwaitedOnce(t *testing.T) {
	var g goodbye
	var went []int
	for i := range 3 {
		g.addWaiter(func() { went = append(went, i) })
	}
	g.takeWaiters()()
	if g.takeWaiters() != nil || !slices.Equal(went, []int{0, 1, 2}) {
		t.Errorf("went on: %v", went)
	}
}
