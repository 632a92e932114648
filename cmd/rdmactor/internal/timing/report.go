package timing

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
)

// Report is the JSON document of --json. Its field names are stable.
type Report struct {
	Device string `json:"device"` // the kind: iwarp, kernel
	Level  string `json:"level"`  // always "actor": an actor for each identifier
	Local  string `json:"local"`  // the address of the clients
	Server string `json:"server"` // the address of the server
	// Served is the number of connections that the server has accepted. It is null if the server is
	// in another process.
	Served *int   `json:"served"`
	Runs   []Run  `json:"runs"`
	Errors int    `json:"errors"` // on either side
	First  string `json:"first_error,omitempty"`
}

// Run is the result of one run.
type Run struct {
	IDs     int     `json:"ids"`
	Connect bool    `json:"connect"` // false: identifiers were only made, bound and destroyed
	Steps   []Step  `json:"steps"`
	TotalMS float64 `json:"total_ms"` // of all steps
	Errors  int     `json:"errors"`   // number of identifiers that failed

	First error `json:"-"` // why the first one failed
}

// Step is one row of a table: how long a step took for all identifiers, and for one.
type Step struct {
	Name    string  `json:"step"`
	TotalMS float64 `json:"total_ms"` // from the first identifier's start to the last one's end
	MaxMS   float64 `json:"max_ms"`
	MinUS   float64 `json:"min_us"`
	P50US   float64 `json:"p50_us"`
	P99US   float64 `json:"p99_us"`
	PerID   float64 `json:"us_per_conn"` // TotalMS divided by their number
	// Inside is the step that this one is part of. This one does not count towards TotalMS of the
	// Run.
	Inside string `json:"inside,omitempty"`
}

// result returns the result of the run.
func (b *bench) result() Run {
	r := Run{IDs: len(b.ids), Connect: b.Connect, Errors: b.errors, First: b.first}
	for s := range steps {
		if b.total[s] == (span{}) {
			continue
		}
		var took []time.Duration
		for i := range b.ids {
			if at := b.ids[i].at[s]; at.to != 0 && !b.ids[i].failed {
				took = append(took, at.to-at.from)
			}
		}
		r.addRow(s, b.total[s].to-b.total[s].from, took)
	}
	return r
}

// addRow sorts took, the times of the identifiers, and adds a row for step s.
func (r *Run) addRow(s step, total time.Duration, took []time.Duration) {
	row := Step{Name: stepNames[s], TotalMS: toMillis(total), PerID: stats.Micros(total) / float64(r.IDs)}
	if slices.Sort(took); len(took) > 0 {
		row.MaxMS, row.MinUS = toMillis(took[len(took)-1]), stats.Micros(took[0])
		row.P50US, row.P99US = stats.Micros(took[len(took)/2]), stats.Micros(took[len(took)*99/100])
	}
	r.Steps = append(r.Steps, row)
	r.TotalMS = math.Round((r.TotalMS+row.TotalMS)*1e6) / 1e6 // rounded to nanoseconds
}

// insertRow inserts a row for the step s before the row of whole. s was part of whole.
func (r *Run) insertRow(s, whole step, took []time.Duration) {
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	part := Run{IDs: r.IDs}
	part.addRow(s, sum, took)
	part.Steps[0].Inside = stepNames[whole]
	at := slices.IndexFunc(r.Steps, func(row Step) bool { return row.Name == stepNames[whole] })
	if at >= 0 {
		r.Steps = slices.Insert(r.Steps, at, part.Steps[0])
	}
}

func toMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// JSON writes the report as one JSON document.
func (r *Report) JSON(w io.Writer) error { return stats.JSON(w, r) }

// Table writes a run as a table with cmtime's columns. If all identifiers have failed there are no
// times of a step, but only the number of errors.
func (r *Run) Table(w io.Writer) {
	what, unconnected := "identifier", ", not connected"
	if r.Connect {
		what, unconnected = "connection", ""
	}
	if r.IDs != 1 {
		what += "s"
	}
	fmt.Fprintf(w, "%d %s%s\n", r.IDs, what, unconnected)
	if r.Errors == r.IDs {
		fmt.Fprintf(w, "errors: %d\n\n", r.Errors)
		return
	}
	fmt.Fprintln(w, "step              total ms     max ms     min us  us / conn")
	var notes []string
	for _, s := range r.Steps {
		fmt.Fprintf(w, "%-13s: %11.2f%11.2f%11.2f%11.2f\n", s.Name, s.TotalMS, s.MaxMS, s.MinUS, s.PerID)
		if s.Inside != "" {
			notes = append(notes, fmt.Sprintf("%s is part of %s", s.Name, s.Inside))
		}
	}
	fmt.Fprintf(w, "%-13s: %11.2f%33.2f\n", "all", r.TotalMS, r.TotalMS*1000/float64(r.IDs))
	if len(notes) > 0 {
		fmt.Fprintf(w, "(%s)\n", strings.Join(notes, "; "))
	}
	fmt.Fprintf(w, "errors: %d\n\n", r.Errors)
}
