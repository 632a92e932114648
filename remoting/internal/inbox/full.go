package inbox

import (
	"cmp"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/plain"
)

// measure notices that the inbox has become full. While it is full, incoming RDMA messages are
// retained.
func (in *Inbox) measure(from *rdma.Received) {
	if !in.full && in.pending >= in.bytes {
		if in.lookAtAll(); in.pending > in.enough() {
			in.full = true
			in.beginPatience()
		}
	}
	if n := len(in.retained); in.full && from != nil && (n == 0 || in.retained[n-1] != from) {
		in.retained = append(in.retained, from.Retain())
	}
}

// Full reports whether the inbox is full. The caller stops reading the peer's messages while it is
// true, and continues after a Receive that makes it false.
func (in *Inbox) Full() bool { return in.full }

// Stops reports whether a message for a target is not to be decoded now. While the inbox is full,
// targets with little may get more, within a reserve of a quarter of Bytes.
func (in *Inbox) Stops(target string) bool {
	if !in.full {
		return false
	}
	if in.pending >= in.bytes+in.bytes/4 {
		return true
	}
	l := in.lines[target]
	if l == nil {
		return false
	}
	in.look(l)
	return l.debt() > in.window/4
}

// enough returns the number of pending bytes at which a full inbox opens again.
func (in *Inbox) enough() int64 { return in.bytes - in.bytes/4 }

// ease opens a full inbox when enough was consumed.
func (in *Inbox) ease() {
	if !in.full {
		return
	}
	if in.lookAtAll(); in.pending <= in.enough() {
		in.release()
	}
}

// release releases the retained messages.
func (in *Inbox) release() {
	in.full = false
	for i, m := range in.retained {
		in.retained[i] = nil
		m.Release()
	}
	in.retained = in.retained[:0]
}

// lookAtAll looks at what all targets have consumed, and has the inbox woken by the next that
// consumes something.
func (in *Inbox) lookAtAll() {
	for _, l := range in.order {
		in.look(l)
		for l.route != nil && l.route.inFlight() > l.route.forgotten && in.await(l.route) {
			in.look(l)
		}
	}
}

// advance goes on with all lines in which something waits.
func (in *Inbox) advance() {
	for i := 0; i < len(in.slow); i++ { // it may grow
		l := in.slow[i]
		in.look(l)
		in.pump(l)
		in.meterConsumed(l)
	}
	in.slow = slices.DeleteFunc(in.slow, func(l *line) bool {
		l.slow = l.waiting.Len() > 0 || l.metered
		return !l.slow
	})
}

// arm starts the timer of the next check.
func (in *Inbox) arm() {
	if !in.ticking && !in.closed {
		in.ticking = true
		rdma.After(in.ctx, in.pause, in.tick)
	}
}

// lookAround does what time has to do with: targets that are gone, Touches that were lost, and
// patience that is over.
func (in *Inbox) lookAround() {
	if in.closed {
		return
	}
	in.advance()
	in.noteProgress(in.owing())
	in.touchAgain()
	in.logStuck()
	in.ease()
	in.giveUp()
	if in.full || in.left && in.Backlog() > 0 || len(in.slow) > 0 {
		in.arm()
	}
}

// touchAgain touches the actors whose last Touch may have been lost.
func (in *Inbox) touchAgain() {
	for _, l := range in.owing() {
		if l.route != nil {
			in.touchLate(l.route)
		}
	}
}

// owing is the lines whose progress matters: those in which something waits or, while the inbox is
// full or the peer has left, all.
func (in *Inbox) owing() []*line {
	if in.full || in.left {
		return in.order
	}
	return in.slow
}

// noteProgress notes which targets have consumed something since the last time.
func (in *Inbox) noteProgress(lines []*line) {
	for _, l := range lines {
		if in.look(l); l.route == nil || l.route.progressed() {
			l.since, l.logged = in.local.Now(), false
		}
	}
}

// stuck reports whether a line's target has consumed nothing for Patience while that mattered.
func (in *Inbox) stuck(l *line) bool {
	since := l.since
	if (in.full || in.left) && !l.metered && in.since.After(since) {
		since = in.since
	}
	return in.local.Now().Sub(since) >= in.cfg.Patience
}

// logStuck logs, once, whose messages have waited for long.
func (in *Inbox) logStuck() {
	for _, l := range in.slow {
		if d := in.local.Now().Sub(l.since); d >= in.cfg.Patience && !l.logged {
			l.logged = true
			in.cfg.Runtime.Logger().Warn("remoting: a target consumes nothing", "target", plain.Quote(l.name),
				"waiting", l.waiting.Len(), "bytes", l.bytes, "for", d,
				"remedy", "who fails at *actor.Touch, or whose middleware swallows it, needs OffLoop or OnLoop")
		}
	}
}

// touchLate touches an actor again whose last Touch is overdue.
func (in *Inbox) touchLate(r *route) {
	if r.touches && r.inFlight() > 0 && !in.local.Now().Before(r.again) {
		in.touch(r)
	}
}

// giveUp refuses the lines whose targets are stuck, those with the most bytes first, until a
// quarter of the room is free; if the peer has left, all. While others progress, however slowly,
// the inbox stays full. A metered line is refused, too, because senders wait for it.
func (in *Inbox) giveUp() {
	lines := slices.Clone(in.order)
	slices.SortStableFunc(lines, func(a, b *line) int { return cmp.Compare(b.debt(), a.debt()) })
	for _, most := range lines {
		if !most.metered && !in.left && (!in.full || in.pending <= in.enough()) {
			continue
		}
		if in.left && most.backlog() == 0 {
			continue
		}
		if most.debt() == 0 || !in.stuck(most) {
			continue
		}
		in.drop(most, ErrSlow)
		if most.route != nil {
			in.forget(most.route)
			most.refused, most.had = true, most.route.seen
		}
	}
	if in.pending <= in.enough() {
		in.release()
	}
}

// debt is how much a line contributes to a full inbox.
func (l *line) debt() int64 {
	if l.route == nil {
		return l.bytes
	}
	return l.bytes + l.route.inFlight() - l.route.forgotten
}

// drop refuses the waiting messages of a line, and the user messages that its goroutine has not yet
// sent.
func (in *Inbox) drop(l *line, why error) {
	if r := l.route; r != nil {
		for _, it := range r.lanes[0].take() {
			in.undo(r, it)
			if it.mark == nil {
				in.refuse(it.message, why)
			}
		}
	}
	for l.waiting.Len() > 0 {
		m := l.waiting.Pop()
		l.bytes -= m.cost
		in.pending -= m.cost
		in.refuse(m, why)
	}
}

// undo counts a message as not sent.
func (in *Inbox) undo(r *route, it item) {
	if it.mark != nil {
		in.answers.remove(it.mark)
		r.marks = slices.DeleteFunc(r.marks, func(m *mark) bool { return m == it.mark })
		return
	}
	r.sent -= it.cost
	in.pending -= it.cost
}

// readmit reports whether a line that was refused may take messages again, for that process.
func (in *Inbox) readmit(l *line, process actor.Process) bool {
	in.look(l)
	r := l.route
	a, _ := process.(*actor.ActorProcess)
	if r == nil || r.process != a || r.inFlight() == 0 || r.seen > l.had && r.inFlight() <= in.window/2 {
		l.refused = false
		return true
	}
	in.touchLate(r)
	return false
}
