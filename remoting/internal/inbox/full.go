package inbox

import (
	"cmp"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/plain"
)

// checkFull sets full when too many bytes are pending. While it is full, incoming RDMA messages are
// retained.
func (in *Inbox) checkFull(from *rdma.Received) {
	if !in.full && in.pending >= in.bytes {
		if in.lookAtAll(); in.pending > in.reopenBytes() {
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
	l.refresh()
	return l.pendingBytes() > in.window/4
}

// reopenBytes returns the number of pending bytes at which a full inbox opens again.
func (in *Inbox) reopenBytes() int64 { return in.bytes - in.bytes/4 }

// tryReopen opens a full inbox when enough was consumed.
func (in *Inbox) tryReopen() {
	if !in.full {
		return
	}
	if in.lookAtAll(); in.pending <= in.reopenBytes() {
		in.releaseRetained()
	}
}

// releaseRetained releases the retained messages.
func (in *Inbox) releaseRetained() {
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
		l.refresh()
		for l.route != nil && l.route.inFlight() > l.route.forgotten && l.route.awaitConsumed() {
			l.refresh()
		}
	}
}

// pumpSlow sends in all lines in which messages wait.
func (in *Inbox) pumpSlow() {
	for i := 0; i < len(in.slow); i++ { // it may grow
		l := in.slow[i]
		l.refresh()
		l.pump()
		l.meterConsumed()
	}
	in.slow = slices.DeleteFunc(in.slow, func(l *line) bool {
		l.slow = l.waiting.Len() > 0 || l.metered
		return !l.slow
	})
}

// armTimer starts the timer of the next check.
func (in *Inbox) armTimer() {
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
	in.pumpSlow()
	in.noteProgress(in.owingLines())
	in.touchAgain()
	in.logStuck()
	in.tryReopen()
	in.giveUp()
	if in.full || in.left && in.Backlog() > 0 || len(in.slow) > 0 {
		in.armTimer()
	}
}

// touchAgain touches the actors whose last Touch may have been lost.
func (in *Inbox) touchAgain() {
	for _, l := range in.owingLines() {
		if l.route != nil {
			l.route.touchLate()
		}
	}
}

// owingLines returns the lines with waiting messages, all if the inbox is full or the peer left.
func (in *Inbox) owingLines() []*line {
	if in.full || in.left {
		return in.order
	}
	return in.slow
}

// noteProgress notes which targets have consumed something since the last time.
func (in *Inbox) noteProgress(lines []*line) {
	for _, l := range lines {
		if l.refresh(); l.route == nil || l.route.hasProgressed() {
			l.since, l.logged = in.local.Now(), false
		}
	}
}

// isStuck reports whether a line's target has consumed nothing for Patience while that mattered.
func (l *line) isStuck() bool {
	since := l.since
	if (l.in.full || l.in.left) && !l.metered && l.in.since.After(since) {
		since = l.in.since
	}
	return l.in.local.Now().Sub(since) >= l.in.cfg.Patience
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
func (r *route) touchLate() {
	if r.touches && r.inFlight() > 0 && !r.in.local.Now().Before(r.again) {
		r.sendTouch()
	}
}

// giveUp refuses the lines whose targets are stuck, those with the most bytes first, until a
// quarter of the room is free; if the peer has left, all. While others progress, however slowly,
// the inbox stays full. A metered line is refused, too, because senders wait for it.
func (in *Inbox) giveUp() {
	lines := slices.Clone(in.order)
	slices.SortStableFunc(lines, func(a, b *line) int { return cmp.Compare(b.pendingBytes(), a.pendingBytes()) })
	for _, most := range lines {
		if !most.metered && !in.left && (!in.full || in.pending <= in.reopenBytes()) {
			continue
		}
		if in.left && most.backlogBytes() == 0 {
			continue
		}
		if most.pendingBytes() == 0 || !most.isStuck() {
			continue
		}
		most.rejectWaiting(ErrSlow)
		if most.route != nil {
			most.route.forgetUnconsumed()
			most.refused, most.had = true, most.route.seen
		}
	}
	if in.pending <= in.reopenBytes() {
		in.releaseRetained()
	}
}

// pendingBytes returns how much a line contributes to a full inbox.
func (l *line) pendingBytes() int64 {
	if l.route == nil {
		return l.bytes
	}
	return l.bytes + l.route.inFlight() - l.route.forgotten
}

// rejectWaiting refuses the waiting messages of a line, and the user messages that its goroutine
// has not yet sent.
func (l *line) rejectWaiting(why error) {
	if r := l.route; r != nil {
		for _, it := range r.lanes[0].takeAll() {
			r.countUnsent(it)
			if it.mark == nil {
				l.in.reportRefused(it.message, why)
			}
		}
	}
	for l.waiting.Len() > 0 {
		m := l.waiting.Pop()
		l.bytes -= m.cost
		l.in.pending -= m.cost
		l.in.reportRefused(m, why)
	}
}

// countUnsent counts a message as not sent.
func (r *route) countUnsent(it item) {
	if it.mark != nil {
		r.in.answers.remove(it.mark)
		r.marks = slices.DeleteFunc(r.marks, func(m *mark) bool { return m == it.mark })
		return
	}
	r.sent -= it.cost
	r.in.pending -= it.cost
}

// canReadmit reports whether a line that was refused may take messages again, for that process.
func (l *line) canReadmit(process actor.Process) bool {
	l.refresh()
	r := l.route
	a, _ := process.(*actor.ActorProcess)
	if r == nil || r.process != a || r.inFlight() == 0 || r.seen > l.had && r.inFlight() <= l.in.window/2 {
		l.refused = false
		return true
	}
	r.touchLate()
	return false
}
