package actor

import (
	"fmt"
	"math"

	"github.com/rdmactor/rdmactor/verbs"
)

// completions is a completion queue with what its connections may put into it at a time. One that is too short loses completions and
// takes its queue pairs along.
type completions struct {
	cq   verbs.CQ
	room int // entries that no connection has a claim to
}

// cqEntries is what a completion queue is asked to hold, if the device has so many and no connection needs more.
const cqEntries = 16 << 10

// completions finds or makes a queue with room for n more entries, and takes them.
func (d *device) completions(n int) (*completions, error) {
	for _, q := range d.queues {
		if q.room >= n {
			q.room -= n
			return q, nil
		}
	}
	limit := d.attr.MaxCQE
	if limit > 0 && n > limit {
		return nil, &ResourceError{Device: d.dev.Name(), What: "completions", Need: n, Limit: limit}
	}
	entries := max(cqEntries, n)
	q := &completions{room: math.MaxInt} // it grows
	if limit > 0 {
		entries = min(entries, limit)
		q.room = entries
	}
	cq, err := d.dev.CreateCQ(entries, d.notify)
	if err != nil {
		return nil, fmt.Errorf("create_cq on %s: %w", d.dev.Name(), err)
	}
	q.cq = cq
	q.room -= n
	d.queues = append(d.queues, q)
	return q, nil
}
