package actor

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestFirstCauseCounts(t *testing.T) {
	first := errors.New("first")
	var l lifetime
	l.blame(nil)
	l.blame(first)
	l.blame(errors.New("its consequence"))
	if l.cause != first { //nolint:errorlint // the very one
		t.Errorf("the cause is %v", l.cause)
	}
}

// Functions that wait for the goodbye are called in order, once.
func TestGoodbyeIsAwaitedOnce(t *testing.T) {
	var g goodbye
	var went []int
	for i := range 3 {
		g.add(func() { went = append(went, i) })
	}
	g.take()()
	if g.take() != nil || !slices.Equal(went, []int{0, 1, 2}) {
		t.Errorf("went on: %v", went)
	}
}

func TestOverdueClosers(t *testing.T) {
	now := time.Now()
	var l lifetime
	l.awaitClosed(&DestroyID{}, nil) // has no deadline
	if l.overdue(now) {
		t.Error("a DestroyID is overdue")
	}
	l.closers = append(l.closers, closer{cmd: &Close{}, due: now})
	if !l.overdue(now) || l.overdue(now.Add(-1)) {
		t.Error("a Close is overdue at its time, and not before")
	}
	if c := l.takeCloser(); c.cmd.Op() != (&DestroyID{}).Op() || len(l.closers) != 1 {
		t.Errorf("took %v, %d are left", c.cmd, len(l.closers))
	}
}
