package oracle

import "time"

// Liveness judges that each outstanding answer comes in time. The zero value, with Fail set, is
// empty.
type Liveness struct {
	Fail Fail

	waits []*Wait
}

// Wait is something outstanding.
type Wait struct {
	what   string
	since  time.Duration
	within time.Duration
	over   bool
	late   bool // already reported
}

// Begin enters something that is outstanding from now on, for the given time at most.
func (l *Liveness) Begin(now time.Duration, what string, within time.Duration) *Wait {
	w := &Wait{what: what, since: now, within: within}
	l.waits = append(l.waits, w)
	return w
}

// Over enters that it has arrived.
func (w *Wait) Over() { w.over = true }

// Check judges the outstanding answers now.
func (l *Liveness) Check(now time.Duration) {
	left := l.waits[:0]
	for _, w := range l.waits {
		if w.over {
			continue
		}
		left = append(left, w)
		if !w.late && now-w.since > w.within {
			w.late = true
			l.Fail("%v: %s is outstanding since %v; it may take %v", now, w.what, w.since, w.within)
		}
	}
	clear(l.waits[len(left):])
	l.waits = left
}

// Isolation judges well-behaved connections: their own ends do nothing wrong, and no fault is aimed
// at them, their machines or their link. The actions of others must neither end nor starve them.
// The zero value, with Fail and Within set, is empty.
type Isolation struct {
	Fail Fail
	// Within is how long a well-behaved connection may wait without any arrival.
	Within time.Duration

	all []*Behaved
}

// Behaved is a well-behaved connection.
type Behaved struct {
	l        *Isolation
	name     string
	waits    int // number of outstanding arrivals
	since    time.Duration
	excused  bool
	reported bool
}

// Behaved enters a connection that is well-behaved from now on.
func (l *Isolation) Behaved(name string) *Behaved {
	b := &Behaved{l: l, name: name}
	l.all = append(l.all, b)
	return b
}

// Wants enters that the connection waits for n more arrivals, such as messages.
func (b *Behaved) Wants(now time.Duration, n int) {
	if b.waits == 0 {
		b.since = now
	}
	b.waits += n
}

// Gets enters n arrivals.
func (b *Behaved) Gets(now time.Duration, n int) {
	b.judgeWait(now)
	b.waits = max(b.waits-n, 0)
	b.since = now
}

// Excuse enters that the connection is no longer judged: one of its own ends closes it, or a fault
// is aimed at it.
func (b *Behaved) Excuse() { b.excused = true }

// Ended enters that the connection has ended, and why.
func (b *Behaved) Ended(now time.Duration, why string) {
	if !b.excused {
		b.l.Fail("%v: %s behaves, and has ended: %s", now, b.name, why)
	}
	b.excused = true
}

// Check judges all connections now.
func (l *Isolation) Check(now time.Duration) {
	for _, b := range l.all {
		b.judgeWait(now)
	}
}

func (b *Behaved) judgeWait(now time.Duration) {
	if b.waits > 0 && !b.excused && !b.reported && now-b.since > b.l.Within {
		b.reported = true
		b.l.Fail("%v: %s behaves, and gets nothing since %v; it waits for %d messages", now, b.name, b.since, b.waits)
	}
}
