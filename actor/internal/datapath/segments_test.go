package datapath

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
)

// paperJob has so many segments of so many bytes, and notes in which turn each was its turn.
type paperJob struct {
	l           *Loop
	left, bytes int
	turns       []uint64
	fails       func() // what the first step leads to; nil: nothing
}

func (j *paperJob) segmentBytes() int {
	if j.left == 0 {
		return 0
	}
	return j.bytes
}

func (j *paperJob) runSegment() {
	if j.left--; j.left > 0 {
		j.l.segments.addJob(j)
	}
	j.turns = append(j.turns, j.l.el.Stats().Turns)
	if fails := j.fails; fails != nil {
		j.fails = nil
		fails()
	}
}

// segmented runs jobs on a loop until nothing is to be done.
func segmented(t *testing.T, jobs ...*paperJob) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		el, err := eventloop.New(eventloop.Config{Logger: slog.New(slog.DiscardHandler), Poller: eventlooptest.NewPoller()})
		if err != nil {
			t.Fatal(err)
		}
		l := new(Loop)
		l.Init(el, slog.New(slog.DiscardHandler), Limits{Receive: 1 << 20, Send: 1 << 20})
		if err := el.Post(func() {
			for _, j := range jobs {
				j.l = l
				l.segments.addJob(j)
			}
		}); err != nil {
			t.Fatal(err)
		}
		go func() { _ = el.Run() }()
		synctest.Wait()
		if n := el.Stats().Timers; n != 0 {
			t.Errorf("%d timers are armed when nothing is to be done", n)
		}
		if err := el.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// However many connections have large messages to be sealed or opened, a turn does no more than a
// segment's bytes of it, and they take turns.
func TestSegmentsOfATurn(t *testing.T) {
	jobs := []*paperJob{
		{left: 5, bytes: secure.SegmentLen},
		{left: 40, bytes: secure.SegmentLen / 10},
		{left: 5, bytes: secure.SegmentLen},
		{left: 1, bytes: 1},
		{left: 0},
	}
	segmented(t, jobs...)
	bytes := map[uint64]int{}
	for i, j := range jobs {
		if j.left > 0 {
			t.Errorf("job %d has %d segments left", i, j.left)
		}
		for _, turn := range j.turns {
			bytes[turn] += j.bytes
		}
	}
	for turn, n := range bytes {
		if n > secure.SegmentLen {
			t.Errorf("%d bytes in turn %d", n, turn)
		}
	}
	if a, b := slices.Max(jobs[0].turns), slices.Min(jobs[2].turns); b > slices.Min(jobs[0].turns)+3 || a < b {
		t.Errorf("they do not take turns: %d and %d", jobs[0].turns, jobs[2].turns)
	}
}
