package inspect

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// recordings are the flight recorders' records, shared by all viewers.
type recordings struct {
	taken time.Time
	loops []rdma.Flight
}

// flightRow is a record of a loop's flight recorder.
type flightRow struct {
	At     string  `json:"at"`
	Ago    float64 `json:"ago_seconds"`
	Loop   string  `json:"loop"`
	Number uint64  `json:"number"` // of the record on its loop, from 1
	ID     uint64  `json:"id"`     // the identifier's; 0: the loop itself
	Kind   string  `json:"kind"`
	What   string  `json:"what"`
	Error  string  `json:"error"` // the errno's name
}

// flightLoop is the number of records of a loop.
type flightLoop struct {
	Loop    string `json:"loop"`
	Records int    `json:"records"`
	Before  uint64 `json:"overwritten"`
}

// flightView is a page of records, the latest first.
type flightView struct {
	Taken   string       `json:"taken"`
	Total   int          `json:"total"`
	Matched int          `json:"matched"`
	Page    int          `json:"page"`
	Pages   int          `json:"pages"`
	Size    int          `json:"size"`
	Loops   []flightLoop `json:"loops"`
	Rows    []flightRow  `json:"rows"`
}

// flightQuery selects records.
type flightQuery struct {
	id         uint64 // 0: all
	loop, text string
	kinds      map[rdma.FlightKind]bool // none: all
	page, size int
}

// parseFlightQuery parses a query. Its error does not repeat the query's words.
func parseFlightQuery(v url.Values) (q flightQuery, err error) {
	q = flightQuery{loop: v.Get("loop"), text: strings.ToLower(v.Get("q"))}
	if len(q.loop) > maxText || len(q.text) > maxText {
		return q, fmt.Errorf("a filter has at most %d bytes", maxText)
	}
	if id := v.Get("id"); id != "" {
		if q.id, err = strconv.ParseUint(id, 10, 64); err != nil || q.id == 0 {
			return q, fmt.Errorf("an identifier is a number from 1 on")
		}
	}
	if q.kinds, err = parseKinds(v.Get("kind")); err != nil {
		return q, err
	}
	q.page, q.size, err = parsePage(v)
	return q, err
}

// parseKinds parses names of kinds, separated by commas.
func parseKinds(list string) (map[rdma.FlightKind]bool, error) {
	if list == "" {
		return nil, nil
	}
	if len(list) > maxText {
		return nil, fmt.Errorf("that are too many kinds")
	}
	wanted := make(map[rdma.FlightKind]bool)
	for name := range strings.SplitSeq(list, ",") {
		found := false
		for k := range rdma.NumFlightKinds {
			if k.String() == name {
				wanted[k], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no such kind")
		}
	}
	return wanted, nil
}

// cursor is the position of a loop's latest matching record that is not in the view yet.
type cursor struct {
	record int // -1: none
	age    time.Duration
}

// selectPage returns the page of r that q selects. The records of each loop are in order already.
func (q *flightQuery) selectPage(r *recordings) flightView {
	v := flightView{Taken: formatTime(r.taken), Size: q.size, Loops: []flightLoop{}, Rows: []flightRow{}}
	next := make([]cursor, len(r.loops))
	for l := range r.loops {
		f := &r.loops[l]
		v.Loops = append(v.Loops, flightLoop{f.Loop, len(f.Records), f.Before})
		v.Total += len(f.Records)
		next[l] = q.previousMatch(len(f.Records), f, r.taken)
		for c := next[l]; c.record >= 0; c = q.previousMatch(c.record, f, r.taken) {
			v.Matched++
		}
	}
	v.Pages = max((v.Matched+q.size-1)/q.size, 1)
	v.Page = min(q.page, v.Pages)
	first := (v.Page - 1) * q.size
	for n := range min(first+q.size, v.Matched) {
		l := latestLoop(next)
		f := &r.loops[l]
		if n >= first {
			v.Rows = append(v.Rows, flightRowOf(f, next[l].record, r.taken))
		}
		next[l] = q.previousMatch(next[l].record, f, r.taken)
	}
	return v
}

// previousMatch returns the position of the last matching record before i.
func (q *flightQuery) previousMatch(i int, f *rdma.Flight, taken time.Time) cursor {
	for i--; i >= 0; i-- {
		if q.matchesRecord(f.Loop, &f.Records[i]) {
			return cursor{i, taken.Sub(f.Records[i].At)}
		}
	}
	return cursor{record: -1}
}

// latestLoop returns the loop whose next record is the latest. There is one.
func latestLoop(next []cursor) (loop int) {
	for l, c := range next {
		if c.record >= 0 && (next[loop].record < 0 || c.age < next[loop].age) {
			loop = l
		}
	}
	return loop
}

func flightRowOf(f *rdma.Flight, i int, taken time.Time) flightRow {
	r := &f.Records[i]
	return flightRow{
		At: r.At.UTC().Format("15:04:05.000000"), Ago: max(taken.Sub(r.At), 0).Seconds(), Loop: f.Loop,
		Number: f.Before + uint64(i) + 1, ID: r.ID, Kind: r.Kind.String(), What: r.What, Error: errnoName(r.Errno),
	}
}

func (q *flightQuery) matchesRecord(loop string, r *rdma.FlightRecord) bool {
	return (q.id == 0 || q.id == r.ID) && (q.loop == "" || q.loop == loop) && (q.kinds == nil || q.kinds[r.Kind]) &&
		(q.text == "" || containsFold(r.What, q.text) || containsFold(errnoName(r.Errno), q.text))
}

// errnoName returns an errno's name; "" for 0.
func errnoName(n int32) string {
	if n == 0 {
		return ""
	}
	return cmp.Or(unix.ErrnoName(unix.Errno(n)), strconv.Itoa(int(n)))
}

// viewOfFlight returns the view of the flight recorders.
func (p *Page) viewOfFlight(v url.Values) (view, error) {
	q, err := parseFlightQuery(v)
	if err != nil {
		return nil, badRequest(err)
	}
	return viewOf(p.records, func(r *recordings) (any, error) { return q.selectPage(r), nil }), nil
}
