package network

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/internal/ring"
)

type kind uint8

const (
	kindSyn kind = iota
	kindSynAck
	kindOpen // the acknowledgement of a SYN-ACK, which is sent at once
	kindAck
	kindData
	kindFin
	kindReset
)

var kindNames = [...]string{"SYN", "SYN-ACK", "ACK", "ACK", "data", "FIN", "RST"}

func (k kind) String() string { return kindNames[k] }

// segment is what travels. It belongs to the flow of the socket that has sent it.
type segment struct {
	kind kind
	data []byte
	due  time.Time
}

// repeated says whether the sender repeats the segment until it has arrived.
func (s *segment) repeated() bool {
	return s.kind != kindOpen && s.kind != kindAck && s.kind != kindReset
}

// Times of retransmissions, as Linux has them.
const (
	firstSyn   = time.Second // until a SYN is repeated
	firstRetry = 200 * time.Millisecond
	mostRetry  = 2 * time.Minute
	mostDelay  = 40 * time.Millisecond // of an acknowledgement
)

// backoff is how long to wait after n attempts before.
func backoff(first time.Duration, n int) time.Duration {
	return min(first<<min(n, 20), mostRetry)
}

// flow is the segments of one socket that are on their way, in order. It may outlive its socket.
type flow struct {
	event
	s     *sock
	segs  ring.Ring[segment]
	last  time.Time // when the newest arrives
	tries int       // of the oldest, which have failed
}

// push sends a segment.
func (f *flow) push(seg segment) {
	s, n := f.s, f.s.m.net
	dst := s.m
	if to := s.remote.Addr(); !s.m.has(to) {
		dst = n.owners[to.WithZone("")]
	}
	now := s.m.now()
	var d time.Duration
	if dst != nil {
		var lost bool
		d, lost = n.travel(s.m, dst)
		if lost && !seg.repeated() {
			return
		}
		for i := 0; lost && i < 4; i++ {
			d += backoff(firstRetry, i)
			lost = n.chance(n.Link(s.m, dst).Loss)
		}
	}
	if seg.kind == kindAck && dst != s.m && n.chance(0.5) {
		d += time.Duration(n.cfg.Rand.Int64N(int64(mostDelay)))
	}
	if f.segs.Len() == 1 && f.segs.At(0).kind == kindAck {
		f.drop() // what is sent now is an acknowledgement, too
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

// drop forgets all segments.
func (f *flow) drop() {
	for f.segs.Len() > 0 {
		f.pop()
	}
	f.s.m.net.agenda.stop(&f.event)
}

func (f *flow) pop() {
	f.s.m.net.inFlight -= len(f.segs.Pop().data)
}

// happen brings the oldest segments that are due to the other machine.
func (f *flow) happen() string {
	n := f.s.m.net
	now := n.cfg.Now()
	var line strings.Builder
	line.WriteString(arrow(f.s.local, f.s.remote))
	most := 0
	for most < f.segs.Len() && (most == 0 || !f.segs.At(most).due.After(now)) {
		most++
	}
	for range n.short(most) {
		if f.segs.Len() == 0 { // the answer has ended the socket
			break
		}
		seg := *f.segs.At(0)
		fmt.Fprintf(&line, " %v", seg.kind)
		if len(seg.data) > 0 {
			fmt.Fprintf(&line, " %d", len(seg.data))
		}
		dst := n.path(f.s.m, f.s.local.Addr(), f.s.remote.Addr())
		if dst == nil || !dst.receive(f, seg, &line) {
			f.retry(seg, now, &line)
			return line.String()
		}
	}
	if f.segs.Len() > 0 {
		n.agenda.set(&f.event, f.segs.At(0).due)
	}
	return line.String()
}

// retry is called when the oldest segment has not arrived.
func (f *flow) retry(seg segment, now time.Time, line *strings.Builder) {
	switch {
	case f.s.state == stateClosed: // nobody is left who would repeat it
		line.WriteString(" lost")
		f.drop()
		return
	case !seg.repeated():
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
	d := backoff(first, f.tries)
	f.tries++
	fmt.Fprintf(line, " lost, again in %v", d)
	f.s.m.net.agenda.set(&f.event, now.Add(d))
}

// arrived removes the oldest segment, which the other machine has.
func (f *flow) arrived() {
	f.tries = 0
	f.pop()
}
