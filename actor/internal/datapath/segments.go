package datapath

import (
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/ring"
)

// segments seals and opens the large messages of a loop's secured connections, secure.SegmentLen
// bytes in a turn, however many connections these are of. So everything else on the loop waits for
// one segment, which takes less than a millisecond where the processor helps, and the connections
// take turns. A Runnable would not do: a turn runs a thousand of them, and one again and again.
// Loop goroutine.
type segments struct {
	jobs  ring.Ring[job]
	timer *eventloop.Timer
}

// job is a connection that has something to seal, or to open.
type job interface {
	// segmentBytes returns the bytes of its next segment; 0: no work is left.
	segmentBytes() int
	// runSegment seals or opens it. If there is more, it adds itself again.
	runSegment()
}

// addJob queues j for its turn, in a later turn of the loop.
func (s *segments) addJob(j job) {
	if s.jobs.Push(j); s.jobs.Len() == 1 {
		s.timer.Reset(0)
	}
}

// runJobs works for one turn of the loop.
func (s *segments) runJobs() {
	for room := secure.SegmentLen; s.jobs.Len() > 0; {
		if room -= (*s.jobs.At(0)).segmentBytes(); room < 0 {
			s.timer.Reset(0)
			return
		}
		s.jobs.Pop().runSegment()
	}
	s.timer.Stop()
}
