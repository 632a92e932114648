package actor

import (
	"testing"
	"time"
)

func TestOverdueClosers(t *testing.T) {
	now := time.Now()
	var ct commandTable
	ct.awaitClosed(&DestroyID{}, nil) // has no deadline
	if ct.closeOverdue(now) {
		t.Error("a DestroyID is overdue")
	}
	ct.closers = append(ct.closers, closer{cmd: &Close{}, due: now})
	if !ct.closeOverdue(now) || ct.closeOverdue(now.Add(-1)) {
		t.Error("a Close is overdue at its time, and not before")
	}
	if c := ct.takeCloser(); c.cmd.Op() != (&DestroyID{}).Op() || len(ct.closers) != 1 {
		t.Errorf("took %v, %d are left", c.cmd, len(ct.closers))
	}
}
