package workload

import (
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/slots"
)

// Slots is the workload of package slots: both sides of a connection fill slots and release those
// of the other, in any order and at any pace.
var Slots = &Kind{
	Name: "slots", Machines: 2, Verbs: []string{"many", "unsent", "keep", "slow", "close"},
	Draw: drawSlots,
	New:  func(e *Env, ops []Op) Workload { return newSlots(e, ops) },
}

// slotsOp is a connection of machine to machine 0.
type slotsOp struct {
	at      time.Duration
	machine int
	sides   [2]slotsSideOp // the dialling side is the first
}

// slotsSideOp is the behaviour of one side.
type slotsSideOp struct {
	n      int           // slots sent
	pause  time.Duration // between two of them
	unsent int           // every unsent-th slot is released before another is sent; 0: none
	keep   int           // how many received slots are kept; then the newest is released first
	wait   time.Duration // between two receives
	close  time.Duration // 0: it ends in order
}

func (o *slotsOp) String() string {
	s := fmt.Sprintf("at %v machine %d connects with slots", o.at, o.machine)
	for i, x := range o.sides {
		s += fmt.Sprintf("; %s sends %d, one every %v, releases one unsent for each %d, keeps %d, receives one every %v",
			sideNames[i], x.n, x.pause, x.unsent, x.keep, x.wait)
		if x.close > 0 {
			s += fmt.Sprintf(", and closes after %v", x.close)
		}
	}
	return s
}

func drawSlots(d Draw, n int) (ops []Op) {
	for range n {
		o := &slotsOp{at: d.within(d.Time), machine: 1 + d.IntN(d.Machines-1)}
		for i := range o.sides {
			s := &o.sides[i]
			s.n = d.IntN(8)
			if d.Has["many"] {
				s.n += d.IntN(60)
			}
			if d.Has["slow"] && d.IntN(2) == 0 {
				s.pause = d.duration(50*time.Microsecond, 10)
			}
			if d.Has["slow"] && d.IntN(2) == 0 {
				s.wait = d.duration(50*time.Microsecond, 10)
			}
			if d.Has["unsent"] && d.IntN(2) == 0 {
				s.unsent = 1 + d.IntN(4)
			}
			if d.Has["keep"] && d.IntN(2) == 0 {
				s.keep = 1 + d.IntN(8)
			}
			if d.Has["close"] && d.IntN(6) == 0 {
				s.close = 1 + d.duration(100*time.Microsecond, 12)
			}
		}
		ops = append(ops, o)
	}
	return ops
}

// slotsWork is the workload.
type slotsWork struct {
	*Env
	cfg   slots.Config
	all   []*slotsConn
	pipes oracle.Pipes
	left  []bool // per machine: its program is done
}

func newSlots(e *Env, ops []Op) *slotsWork {
	w := &slotsWork{Env: e, left: make([]bool, len(e.Machines)), pipes: oracle.Pipes{Fail: e.failWorld}}
	w.cfg = slots.Config{
		Slots: oneOf(e, 1, 2, 3, 8), Size: oneOf(e, 8, 300, 5000, 20_000), Backlog: oneOf(e, 0, 1, 4), Linger: oneOf(e, 0, time.Second),
	}
	for n, op := range ops {
		x := &slotsConn{w: w, n: n, o: op.(*slotsOp)}
		for i := range x.sides {
			s := &x.sides[i]
			s.x, s.n, s.o = x, i, &x.o.sides[i]
			s.out = w.pipes.Pipe(fmt.Sprintf("connection %d of machine %d, what %s sends", n, x.o.machine, sideNames[i]))
		}
		w.all = append(w.all, x)
	}
	return w
}

// Start implements Workload.
func (w *slotsWork) Start() {
	w.Env.Start(0, w.runListener)
	for m := 1; m < len(w.Machines); m++ {
		w.Env.Start(m, func(p *world.Process) { w.runDialer(p, m) })
	}
}

// dialersDone reports whether all dialling programs are done.
func (w *slotsWork) dialersDone() bool {
	for _, left := range w.left[1:] {
		if !left {
			return false
		}
	}
	return true
}

// Done implements Workload.
func (w *slotsWork) Done() bool { return w.left[0] && w.dialersDone() }

// Check implements Workload.
func (w *slotsWork) Check() {
	for _, x := range w.all {
		for i := range x.sides {
			x.sides[i].out.End(w.World.Now())
		}
		if x.isOpened() && !x.isExcused() && (!x.sides[0].out.Ended() || !x.sides[1].out.Ended()) {
			w.failWorld("connection %d: its ends were not received, although both sides have ended it in order", x.n)
		}
	}
}

// Killed implements Killer.
func (w *slotsWork) Killed(p *world.Process) {
	for _, x := range w.all {
		x.killed = x.killed || x.sides[0].p == p || x.sides[1].p == p
	}
}
