package datapath

import (
	"fmt"
	"math"

	"github.com/rdmactor/rdmactor/verbs"
)

// completions is a completion queue with what its connections may put into it at a time. One that is too short loses completions and
// takes its queue pairs along.
type completions struct {
	cq   verbs.CQ
	Room int // entries that no connection has a claim to
}

// cqEntries is what a completion queue is asked to hold, if the device has so many and no connection needs more.
const cqEntries = 16 << 10

// completions finds or makes a queue with room for n more entries, and takes them.
func (d *Device) completions(n int) (*completions, error) {
	for _, q := range d.Queues {
		if q.Room >= n {
			q.Room -= n
			return q, nil
		}
	}
	limit := d.attr.MaxCQE
	if limit > 0 && n > limit {
		return nil, &ResourceError{Device: d.Verbs.Name(), What: "completions", Need: n, Limit: limit}
	}
	entries := max(cqEntries, n)
	q := &completions{Room: math.MaxInt} // it grows
	if limit > 0 {
		entries = min(entries, limit)
		q.Room = entries
	}
	cq, err := d.Verbs.CreateCQ(entries, d.notify)
	if err != nil {
		return nil, fmt.Errorf("create_cq on %s: %w", d.Verbs.Name(), err)
	}
	q.cq = cq
	q.Room -= n
	d.Queues = append(d.Queues, q)
	return q, nil
}
