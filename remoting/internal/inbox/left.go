package inbox

import (
	"cmp"
	"slices"
)

// Leave records that the peer has left. Waiting messages still go to their targets. From now on
// those that consume nothing for Patience are refused theirs, also if the inbox is not full.
func (in *Inbox) Leave() {
	if in.closed || in.left {
		return
	}
	in.left = true
	in.beginPatience()
}

// Return records that the peer is back.
func (in *Inbox) Return() { in.left = false }

// beginPatience starts Patience for all lines.
func (in *Inbox) beginPatience() {
	in.since = in.local.Now()
	in.noteProgress(in.order)
	in.armTimer()
}

// Backlog is how many bytes Close would refuse.
func (in *Inbox) Backlog() (bytes int64) {
	for _, l := range in.order {
		bytes += l.backlogBytes()
	}
	return bytes
}

func (l *line) backlogBytes() int64 {
	if l.route == nil {
		return l.bytes
	}
	return l.bytes + l.route.lanes[0].backlogBytes()
}

// Trim refuses waiting messages until at most so many bytes wait: in the line with the most first,
// the latest first.
func (in *Inbox) Trim(most int64) {
	over := in.Backlog() - most
	lines := slices.Clone(in.order)
	slices.SortStableFunc(lines, func(a, b *line) int { return cmp.Compare(b.backlogBytes(), a.backlogBytes()) })
	for _, l := range lines {
		for over > 0 && l.waiting.Len() > 0 {
			m := *l.waiting.At(l.waiting.Len() - 1)
			l.waiting.DropLast()
			l.bytes -= m.cost
			in.pending -= m.cost
			over -= m.cost
			in.reportRefused(m, ErrLeft)
		}
		for over > 0 && l.route != nil {
			it, ok := l.route.lanes[0].dropLast()
			if !ok {
				break
			}
			l.route.countUnsent(it)
			if over -= it.countedBytes(); it.mark == nil {
				in.reportRefused(it.message, ErrLeft)
			}
		}
	}
}
