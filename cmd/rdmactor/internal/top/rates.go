package top

import (
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
)

// rate is how many messages per second an identifier sends and receives.
type rate struct{ sent, received float64 }

// rates are the differences between two answers.
type rates struct {
	ids   map[string]rate
	busy  map[string]float64 // of loops: 0 to 1
	rows  map[string]page.Row
	loops map[string]page.Loop
	taken [2]time.Time // by the program's clock: rows, loops
}

// addAnswer compares an answer with the previous one. Answers of the same moment change nothing.
func (r *rates) addAnswer(a *answer) {
	if since, ok := r.secondsSince(1, a.overview.Taken); ok {
		before := r.loops
		r.busy, r.loops = make(map[string]float64), make(map[string]page.Loop)
		for _, l := range a.overview.Loops {
			r.loops[l.Name] = l
			if old, ok := before[l.Name]; ok && since > 0 {
				r.busy[l.Name] = max(min((l.Busy-old.Busy)/since, 1), 0)
			}
		}
	}
	if a.to.detail != "" || a.to.section != "" {
		return
	}
	since, ok := r.secondsSince(0, a.ids.Taken)
	before := r.rows
	r.rows = make(map[string]page.Row)
	if !ok { // but perhaps other rows
		for _, row := range a.ids.Rows {
			r.rows[rowName(&row)] = row
		}
		return
	}
	r.ids = make(map[string]rate)
	for _, row := range a.ids.Rows {
		n := rowName(&row)
		r.rows[n] = row
		if old, ok := before[n]; ok && since > 0 && row.Sent >= old.Sent && row.Received >= old.Received {
			r.ids[n] = rate{float64(row.Sent-old.Sent) / since, float64(row.Received-old.Received) / since}
		}
	}
}

// secondsSince returns the seconds between the previous answer and this one. ok is false if they
// are the same.
func (r *rates) secondsSince(which int, stamp string) (seconds float64, ok bool) {
	taken, err := time.Parse(time.RFC3339Nano, stamp)
	before := r.taken[which]
	if err != nil || taken.Equal(before) {
		return 0, r.rows == nil || err != nil
	}
	r.taken[which] = taken
	if before.IsZero() {
		return 0, true
	}
	return taken.Sub(before).Seconds(), true
}
