package network

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/internal/ring"
)

// flow is the segments of one socket that are in flight, in order. It may outlive its socket.
type flow struct {
	event
	s     *sock
	segs  ring.Ring[segment]
	last  time.Time // when the newest arrives
	tries int       // of the oldest, which have failed
}

// sendSegment sends a segment.
func (f *flow) sendSegment(seg segment) {
	s, n := f.s, f.s.m.net
	dst := s.m.machineAt(s.destAddr())
	now := s.m.now()
	var d time.Duration
	if dst != nil {
		var lost bool
		d, lost = n.drawTravel(s.m, dst)
		if lost && !seg.isRepeated() {
			return
		}
		for i := 0; lost && i < 4; i++ {
			d += backoffTime(firstRetry, i)
			lost = n.chance(n.Link(s.m, dst).Loss)
		}
	}
	if seg.kind == kindAck && dst != s.m && n.chance(0.5) {
		d += time.Duration(n.cfg.Rand.Int64N(int64(mostDelay)))
	}
	if f.segs.Len() == 1 && f.segs.At(0).kind == kindAck {
		f.dropAll() // the segment sent now is an acknowledgement, too
	}
	if seg.due = now.Add(d); f.segs.Len() > 0 && seg.due.Before(f.last) {
		seg.due = f.last
	}
	f.last = seg.due
	n.inFlight += len(seg.data)
	f.segs.Push(seg)
	if f.segs.Len() == 1 {
		f.tries = 0
		n.agenda.set(&f.event, seg.due)
	}
}

// dropAll removes all segments.
func (f *flow) dropAll() {
	for f.segs.Len() > 0 {
		f.pop()
	}
	f.s.m.net.agenda.stop(&f.event)
}

func (f *flow) pop() {
	f.s.m.net.inFlight -= len(f.segs.Pop().data)
}

// retrySegment schedules another attempt when the oldest segment has not arrived.
func (f *flow) retrySegment(seg segment, now time.Time, line *strings.Builder) {
	switch {
	case f.s.state == stateClosed: // no socket is left that would repeat it
		line.WriteString(" lost")
		f.dropAll()
		return
	case !seg.isRepeated():
		line.WriteString(" lost")
		f.pop()
		if f.segs.Len() > 0 {
			f.s.m.net.agenda.set(&f.event, f.segs.At(0).due)
		}
		return
	}
	first := firstRetry
	if seg.kind == kindSyn || seg.kind == kindSynAck {
		first = firstSyn
	}
	d := backoffTime(first, f.tries)
	f.tries++
	fmt.Fprintf(line, " lost, again in %v", d)
	f.s.m.net.agenda.set(&f.event, now.Add(d))
}

// removeArrived removes the oldest segment, which the other machine has received.
func (f *flow) removeArrived() {
	f.tries = 0
	f.pop()
}
