package inbox

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/ring"
)

// line holds the messages to one name that are not consumed.
type line struct {
	in      *Inbox
	name    string
	age     uint64 // lines that were made before it
	waiting ring.Ring[message]
	bytes   int64 // the size of the waiting messages
	route   *route
	slow    bool      // it is in Inbox.slow
	since   time.Time // its target has consumed nothing, as far as its progress matters
	logged  bool      // that was logged
	refused bool      // it takes nothing more until its target consumes again
	had     int64     // what its target had consumed then
	metered bool      // the peer knows that ...
	allowed bool      // ... and was then allowed to send something ...
	arrived int64     // ... since when so many bytes have arrived
}

// fewLines is how many lines are kept without looking for idle ones.
const fewLines = 64

// lineOf returns the line of a name; without a process all names have one.
func (in *Inbox) lineOf(target *actor.PID, process actor.Process) *line {
	if process == nil {
		return in.nobody
	}
	l, ok := in.lines[target.Id]
	if !ok {
		if len(in.lines) >= in.limit {
			in.sweepLines()
		}
		in.born++
		l = &line{in: in, name: target.Id, age: in.born}
		in.lines[l.name] = l
		in.order = append(in.order, l)
	}
	return l
}

// sweepLines forgets the lines in which nothing is on its way.
func (in *Inbox) sweepLines() {
	in.recent = recent{}
	in.order = slices.DeleteFunc(in.order, func(l *line) bool {
		if l == in.nobody {
			return false
		}
		if l.refresh(); !l.isIdle() || l.metered {
			return false
		}
		delete(in.lines, l.name)
		return true
	})
	in.limit = 2*len(in.lines) + fewLines
}

// isIdle reports whether the line's target has consumed everything.
func (l *line) isIdle() bool {
	return l.waiting.Len() == 0 && (l.route == nil || l.route.inFlight() == 0 && l.route.lanesIdle())
}

// acceptUser sends a user message to its target, or queues it.
func (l *line) acceptUser(process actor.Process, m message) {
	if l.refused && !l.canReadmit(process) {
		l.in.reportRefused(m, ErrSlow)
		return
	}
	l.in.pending += m.cost
	if l.waiting.Len() == 0 {
		r := l.routeTo(process)
		if l.waiting.Len() == 0 && r.hasRoom(m.cost) {
			r.passMessage(process, m)
			l.meterArrived(m.cost)
			return
		}
	}
	l.waiting.Push(m)
	l.bytes += m.cost
	l.noteSlow()
	l.meterArrived(m.cost)
}

// noteSlow registers a line to be checked until nothing waits in it.
func (l *line) noteSlow() {
	if !l.slow {
		l.slow, l.since, l.logged = true, l.in.local.Now(), false
		if l.route != nil {
			l.route.hasProgressed()
		}
		l.in.slow = append(l.in.slow, l)
	}
	l.in.armTimer()
}

// pump sends waiting messages to the target, as long as it has room. It looks for the process
// once: it sends at most a window of messages.
func (l *line) pump() {
	var process actor.Process
	if l != l.in.nobody && l.waiting.Len() > 0 { // a dead letter stays one
		process = l.in.findProcess(l.waiting.At(0).target)
	}
	for l.waiting.Len() > 0 {
		r := l.routeTo(process)
		m := *l.waiting.At(0)
		if !r.hasRoom(m.cost) {
			return
		}
		l.waiting.Pop()
		l.bytes -= m.cost
		r.passMessage(process, m)
	}
}

// sendSystem passes a system message on, ahead of the messages that wait in the line.
func (l *line) sendSystem(process actor.Process, m message) {
	r := l.routeTo(process)
	if most := 2*l.in.window + r.large; !m.mustDeliver() && r.inFlight()+m.cost > most {
		if r.updateConsumed(); r.inFlight() > 0 && r.inFlight()+m.cost > most {
			l.in.reportRefused(m, ErrSlow)
			return
		}
	}
	l.in.pending += m.cost
	r.passMessage(process, m)
}
