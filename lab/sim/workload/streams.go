package workload

import (
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/rdmanet"
)

// Streams is the workload of package rdmanet: streams of bytes in both directions, which are read
// and written in many ways, and end in all possible ways.
var Streams = &Kind{
	Name:  "streams",
	Verbs: []string{"large", "deadline", "concurrent", "close", "linger", "half", "writeto", "never", "slow", "innocent", "listener", "swallow"},
	Draw:  drawStreams,
	New:   func(e *Env, ops []Op) Workload { return newStreams(e, ops) },
}

// How a side ends its stream.
const (
	endsBoth   = "ends its half, reads to the end, and closes"
	endsEarly  = "closes in the middle"
	endsLinger = "resets in the middle"
	endsAfter  = "closes when it has written"
	endsRead   = "stops reading in the middle, and ends its half"
)

// streamOp is a stream.
type streamOp struct {
	start    // of the dialling machine
	sides    [2]sideOp
	innocent bool // it behaves, and must make progress
}

// sideOp is the behaviour of one side: the dialling side is the first.
type sideOp struct {
	writers, writes, size int // goroutines, Writes of each, bytes of each
	pause                 time.Duration
	buffer                int  // bytes of each Read
	writeTo               bool // alternating with Read
	never                 bool // it does not read before it ends
	wait                  time.Duration
	deadline              time.Duration // of each Read and Write; 0: none
	end                   string
	after                 time.Duration // delay of an end in the middle
}

func (s *sideOp) String() string {
	t := fmt.Sprintf("writes %d x %d x %d bytes", s.writers, s.writes, s.size)
	if s.pause > 0 {
		t += fmt.Sprintf(" every %v", s.pause)
	}
	switch {
	case s.never:
		t += ", does not read"
	case s.writeTo:
		t += fmt.Sprintf(", has %d bytes written elsewhere", s.buffer)
	default:
		t += fmt.Sprintf(", reads %d bytes", s.buffer)
	}
	if s.wait > 0 {
		t += fmt.Sprintf(" every %v", s.wait)
	}
	if s.deadline > 0 {
		t += fmt.Sprintf(" with %v for each", s.deadline)
	}
	t += ", and " + s.end
	if s.after > 0 {
		t += fmt.Sprintf(" after %v", s.after)
	}
	return t
}

func (o *streamOp) String() string {
	who := ""
	if o.innocent {
		who = ", which must get on"
	}
	return fmt.Sprintf("at %v machine %d dials a stream%s; it %v; the other side %v", o.at, o.machine, who, &o.sides[0], &o.sides[1])
}

// listenOp closes a listener. Another one follows.
type listenOp struct{ start }

func (o *listenOp) String() string {
	return fmt.Sprintf("at %v machine %d's listener is closed", o.at, o.machine)
}

func drawStreams(d Draw, n int) (ops []Op) {
	for len(ops) < n {
		at := d.within(d.Time)
		if d.Has["listener"] && d.IntN(12) == 0 {
			ops = append(ops, &listenOp{start{at, 0}})
			continue
		}
		o := &streamOp{start: start{at, 1 + d.IntN(d.Machines-1)}}
		if o.innocent = d.Has["innocent"] && d.IntN(6) == 0; o.innocent {
			for i := range o.sides {
				o.sides[i] = sideOp{writers: 1, writes: 1 + d.IntN(5), size: 1 + d.IntN(5000), buffer: 1 + d.IntN(8000), end: endsBoth}
			}
		} else {
			o.sides = [2]sideOp{drawSide(d), drawSide(d)}
			if d.Has["swallow"] && d.IntN(6) == 0 {
				drawDeaf(d, o)
			}
			for i := range o.sides { // not too many Reads
				p := &o.sides[1-i]
				o.sides[i].buffer = max(o.sides[i].buffer, p.writers*p.writes*p.size/64)
			}
		}
		ops = append(ops, o)
	}
	return ops
}

// drawDeaf draws a side that keeps writing, and reads nothing from the other, such as one that
// delivers a log. The other has closed long before.
func drawDeaf(d Draw, o *streamOp) {
	talks := d.IntN(2)
	o.sides[talks] = sideOp{
		writers: 1, writes: 30, size: 1 + d.IntN(2000), pause: 100*time.Millisecond + d.within(600*time.Millisecond),
		never: true, end: endsAfter,
	}
	other := &o.sides[1-talks]
	other.end, other.after, other.pause = endsEarly, d.duration(50*time.Millisecond, 5), 0
	other.writes, other.size = 8, max(other.size, d.size(13))
}

func drawSide(d Draw) sideOp {
	s := sideOp{writers: 1, writes: d.IntN(8), size: d.size(8), buffer: d.size(10), end: endsBoth}
	if d.Has["large"] && d.IntN(4) == 0 {
		s.size = d.size(13)
	}
	if d.Has["concurrent"] && d.IntN(3) == 0 {
		s.writers, s.size = 2+d.IntN(2), max(s.size, oracle.MinPiece)
	}
	if d.Has["slow"] && d.IntN(3) == 0 {
		s.pause = d.duration(50*time.Microsecond, 11)
	}
	if d.Has["slow"] && d.IntN(3) == 0 {
		s.wait = d.duration(50*time.Microsecond, 9)
		s.buffer = max(s.buffer, 500)
	}
	if d.Has["deadline"] && d.IntN(3) == 0 {
		s.deadline = d.duration(time.Millisecond, 9)
	}
	s.writeTo = d.Has["writeto"] && d.IntN(3) == 0
	switch x := d.IntN(12); {
	case x <= 1 && d.Has["close"]:
		s.end, s.after = endsEarly, d.duration(100*time.Microsecond, 12)
		if d.IntN(2) == 0 {
			s.never = true
		}
	case x == 2 && d.Has["linger"]:
		s.end, s.after = endsLinger, d.duration(100*time.Microsecond, 12)
	case x == 3 && d.Has["close"]:
		s.end = endsAfter
	case x == 4 && d.Has["half"]:
		s.end, s.after = endsRead, d.duration(100*time.Microsecond, 12)
	case x == 5 && d.Has["never"]:
		s.never, s.end, s.after = true, endsEarly, 2*time.Second
	}
	if d.Has["close"] && d.IntN(3) == 0 {
		s.writes = 30 // as much as possible until a side ends it
	}
	return s
}

// streams is the workload.
type streams struct {
	*Env
	ops    []Op
	all    []*stream // per operation; nil: not a stream
	cfg    rdmanet.Config
	pipes  oracle.Pipes
	closes int // closes of the listener
	slow   time.Duration
}

// greeting is how many bytes the dialling side sends first, to identify the stream.
const greeting = 8

func newStreams(e *Env, ops []Op) *streams {
	w := &streams{
		Env: e, ops: ops, all: make([]*stream, len(ops)),
		pipes: oracle.Pipes{Fail: e.failWorld},
		cfg: rdmanet.Config{
			Backlog: oneOf(e.Rand, 0, 1, 4), Linger: oneOf(e.Rand, 0, 500*time.Millisecond, 3*time.Second),
			MaxMessage: oneOf(e.Rand, 0, 512, 4<<10, 16<<10), Credits: oneOf(e.Rand, 0, 1, 2, 4),
		},
		slow: oneOf(e.Rand, 0, time.Millisecond, 50*time.Millisecond),
	}
	for n, op := range ops {
		if o, ok := op.(*streamOp); ok {
			w.all[n] = w.newStream(n, o)
		}
	}
	return w
}

// Start implements Workload.
func (w *streams) Start() {
	w.Env.Start(0, w.runListener)
	for m := 1; m < len(w.Machines); m++ {
		w.Env.Start(m, func(p *world.Process) { w.runDialer(p, m) })
	}
}

// dialersDone reports whether all dialling programs are done.
func (w *streams) dialersDone() bool { return w.areFinished(1) }

// Done implements Workload.
func (w *streams) Done() bool { return w.areFinished(0) }

// Check implements Workload.
func (w *streams) Check() {
	for _, x := range w.all {
		if x == nil {
			continue
		}
		for i := range x.sides {
			x.sides[i].out.End(w.World.Now())
		}
		if x.isOpened() && x.isOrderly() && !x.isExcused() && !x.hasLingered() && (!x.sides[0].out.Ended() || !x.sides[1].out.Ended()) {
			w.failWorld("%s: its ends were not read, although both sides have ended it in order", x.name)
		}
	}
}

// Killed implements Killer.
func (w *streams) Killed(p *world.Process) {
	for _, x := range w.all {
		if x == nil {
			continue
		}
		for i := range x.sides {
			if x.sides[i].p == p {
				x.killed = true
			}
		}
	}
}
