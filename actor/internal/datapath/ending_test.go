package datapath

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// TestGoodbyeSteps compares leadsTo with the diagram.
func TestGoodbyeSteps(t *testing.T) {
	drawn := map[[2]goodbye]bool{
		{goodbyeUnsaid, goodbyeDue}:  true,
		{goodbyeUnsaid, goodbyeLeft}: true,
		{goodbyeDue, goodbyePosted}:  true,
		{goodbyeDue, goodbyeLeft}:    true,
		{goodbyePosted, goodbyeLeft}: true,
	}
	for from := goodbyeUnsaid; from <= goodbyeLeft; from++ {
		for to := goodbyeUnsaid; to <= goodbyeLeft; to++ {
			if got, want := from.leadsTo(to), from == to || drawn[[2]goodbye{from, to}]; got != want {
				t.Errorf("%d leads to %d: %t, the diagram has %t", from, to, got, want)
			}
		}
	}
}

// TestFinalCause checks which of several causes is reported: the first of the highest certainty,
// and the device's report, or else this side's reason, if the queue pair has only followed.
func TestFinalCause(t *testing.T) {
	flush := &QueuePairError{Op: verbs.Send, Status: verbs.StatusFlushed}
	first := &QueuePairError{Op: verbs.Send, Status: verbs.StatusRemAccess}
	second := &QueuePairError{Op: verbs.Send, Status: verbs.StatusLocLen}
	reset, own, breach := error(unix.ECONNRESET), errors.New("own"), errors.New("breach")
	for _, tt := range []struct {
		name          string
		failures      []*QueuePairError
		broken        error
		reported, own error
		peerLeft      bool
		want          error
	}{
		{"nothing is known", nil, nil, nil, nil, false, nil},
		{"this side has ended it", nil, nil, nil, own, false, own},
		{"the device reports an end", nil, nil, reset, own, false, reset},
		{"only flushes", []*QueuePairError{flush}, nil, reset, own, false, reset},
		{"the failure behind a flush", []*QueuePairError{flush, first}, nil, reset, own, false, first},
		{"the first of two failures", []*QueuePairError{first, second}, nil, reset, own, false, first},
		{"a failure after the peer's goodbye", []*QueuePairError{first}, nil, nil, own, true, own},
		{"broken off after a failure", []*QueuePairError{first}, breach, reset, own, false, breach},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := paperShares(t, 1<<20).l
			var e ending
			for _, f := range tt.failures {
				e.queuePairFailed(f, l.el, func() {})
			}
			if tt.broken != nil {
				e.setCause(causeDecided, tt.broken)
			}
			if got := e.brokenBy(); !errors.Is(got, tt.broken) {
				t.Errorf("broken by %v, want %v", got, tt.broken)
			}
			if got := e.finalCause(tt.reported, tt.own, tt.peerLeft); !errors.Is(got, tt.want) {
				t.Errorf("the cause is %v, want %v", got, tt.want)
			}
			e.stopTimer()
		})
	}
}
