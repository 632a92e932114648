package oracle

import "time"

// Bounds judges quantities that must stay within a limit: memory, descriptors, timers, identifiers,
// posted receives. The zero value, with Fail set, is empty.
type Bounds struct {
	Fail Fail

	most map[string]int
}

// Sample enters a measured value. what names it, such as "memory to receive into of host1's loop
// 0". Only a positive limit is checked.
func (l *Bounds) Sample(now time.Duration, what string, value, limit int) {
	if l.most == nil {
		l.most = make(map[string]int)
	}
	if value < 0 {
		l.Fail("%v: %s: %d", now, what, value)
	}
	before, known := l.most[what]
	if known && value <= before {
		return
	}
	l.most[what] = value
	if limit > 0 && value > limit {
		l.Fail("%v: %s: %d, the limit is %d", now, what, value, limit)
	}
}
