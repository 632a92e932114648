package top

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
	"github.com/rdmactor/rdmactor/internal/plain"
)

// style is the style of a line.
type style string

const (
	normal  style = ""
	bold    style = "1"
	inverse style = "7"
	alarm   style = "1;31"
)

// line is a line of the screen, without bytes that a terminal would interpret.
type line struct {
	text string
	style
}

const (
	mostLoops = 4   // shown at most
	widest    = 28  // columns of a cell
	mostLine  = 400 // bytes of a list in a line
)

// summary returns the lines about the program as a whole.
func (v *view) summary(address string, now time.Time) []line {
	first := line{"rdmactor top  " + address, bold}
	if o := v.overview; !v.got.IsZero() {
		first.text += fmt.Sprintf("  %s  %d goroutines", plain.Text(cut(o.Go)), o.Goroutines)
	}
	lines := []line{first}
	if v.err != nil {
		text := "no news, trying again: " + cut(v.err.Error())
		if !v.got.IsZero() {
			text += "; below is what was " + plain.Duration(now.Sub(v.got).Seconds()) + " ago"
		}
		lines = append(lines, line{text, alarm})
	}
	if v.got.IsZero() {
		return lines
	}
	lines = append(lines, line{fmt.Sprintf("%d identifiers: %s", v.overview.Total, inStates(v.overview.States)), normal})
	lines = append(lines, v.loops()...)
	return append(lines, line{"memory: " + memory(v.overview.Memory), normal})
}

// inStates lists states, those with most identifiers first.
func inStates(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, n := range names[:min(len(names), 32)] {
		parts = append(parts, plain.Text(cut(n))+" "+strconv.Itoa(counts[n]))
	}
	return list(parts)
}

// list joins as many of the parts as fit into a line.
func list(parts []string) string {
	var b strings.Builder
	for n, p := range parts {
		if b.Len()+len(p) > mostLine {
			fmt.Fprintf(&b, ", and %d more", len(parts)-n)
			break
		}
		if n > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p)
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

// loops returns a line for each loop: blocked ones, then the busiest.
func (v *view) loops() (lines []line) {
	loops := slices.Clone(v.overview.Loops)
	slices.SortStableFunc(loops, func(a, b page.Loop) int {
		switch busyA, busyB := v.rates.busy[a.Name], v.rates.busy[b.Name]; {
		case a.Blocked > b.Blocked, a.Blocked == b.Blocked && busyA > busyB:
			return -1
		case a.Blocked < b.Blocked, busyA < busyB:
			return 1
		}
		return 0
	})
	for _, l := range loops[:min(len(loops), mostLoops)] {
		busy := "   ?"
		if share, ok := v.rates.busy[l.Name]; l.Blocked > 0 {
			busy = "100%" // its turn is counted only when it ends
		} else if ok {
			busy = fmt.Sprintf("%3.0f%%", share*100)
		}
		text, s := "loop "+plain.Text(cut(l.Name))+": ", normal
		if l.Blocked > 0 {
			text += fmt.Sprintf("BLOCKED for %s by %s, ", plain.Duration(l.Blocked), plain.Text(cut(l.BlockedBy)))
			s = alarm
		}
		text += fmt.Sprintf("%s busy, %d identifiers, %d queued, longest turn of late %s", busy, l.Identifiers, l.Queued,
			plain.Duration(l.RecentTurn))
		lines = append(lines, line{text, s})
	}
	if n := len(loops) - mostLoops; n > 0 {
		lines = append(lines, line{fmt.Sprintf("and %d more loops", n), normal})
	}
	return lines
}

// memory lists pools: those with the same name on all loops together.
func memory(pools []page.Memory) string {
	type sum struct{ used, limit, waiting float64 }
	sums := make(map[string]*sum)
	var names []string
	for _, p := range pools {
		s := sums[p.Pool]
		if s == nil {
			s = new(sum)
			sums[p.Pool] = s
			names = append(names, p.Pool)
		}
		s.used, s.limit, s.waiting = s.used+float64(p.Used), s.limit+float64(p.Limit), s.waiting+float64(p.Waiting)
	}
	var parts []string
	for _, n := range names[:min(len(names), 32)] {
		s := sums[n]
		text := plain.Text(cut(n)) + " " + plain.Bytes(s.used)
		if s.limit > 0 {
			text += " of " + plain.Bytes(s.limit)
		}
		if s.waiting > 0 {
			text += fmt.Sprintf(" (%s wait)", plain.Count(s.waiting))
		}
		parts = append(parts, text)
	}
	return list(parts)
}

var titles = []string{"ID", "STATE", "FOR", "PEER", "LOCAL", "QUEUED", "WAITS", "SENT/S", "RECV/S", "DEVICE", "LOOP", "CREDITS", "MEMORY", "OWNER"}

// cells returns a row of the table.
func (v *view) cells(r *page.Row) []string {
	sent, received := "-", "-"
	if now, ok := v.rates.ids[name(r)]; ok {
		sent, received = plain.Count(now.sent), plain.Count(now.received)
	}
	id := "-"
	if r.ID != 0 {
		id = strconv.FormatUint(r.ID, 10)
	}
	cells := []string{
		id, r.State, plain.Duration(r.InState), r.Peer, r.Local, plain.Count(float64(r.Queued)), plain.Duration(r.WaitsFor),
		sent, received, r.Device, r.Loop, plain.Count(float64(r.Send)), plain.Bytes(float64(r.Memory)), r.Owner,
	}
	if v.further() {
		cells = append(cells, r.Text(v.query.Sort))
	}
	for i := range cells {
		cells[i] = plain.Or(cut(cells[i]))
	}
	return cells
}

// further reports whether the table is sorted by a field that needs an additional column.
func (v *view) further() bool { return !slices.Contains(sorts, v.query.Sort) }

// rows returns the table. The title by which it is sorted is marked.
func (v *view) rows() (lines []line) {
	names, fields := slices.Clone(titles), slices.Clone(sorts)
	if v.further() {
		names, fields = append(names, strings.ToUpper(plain.Text(v.query.Sort))), append(fields, v.query.Sort)
	}
	for n, field := range fields {
		if field == v.query.Sort {
			mark := "^"
			if v.query.Descending {
				mark = "v"
			}
			names[n] += mark
		}
	}
	rows := [][]string{names}
	for i := range v.ids.Rows {
		rows = append(rows, v.cells(&v.ids.Rows[i]))
	}
	return grid(rows)
}

// grid returns a table whose columns are as wide as their contents. The first row is the titles.
func grid(table [][]string) (lines []line) {
	widths := make([]int, len(table[0]))
	for _, cells := range table {
		for n, c := range cells {
			widths[n] = min(max(widths[n], utf8.RuneCountInString(c)), widest)
		}
	}
	for n, cells := range table {
		var b strings.Builder
		for i, c := range cells {
			b.WriteString(plain.Fit(c, widths[i]))
			b.WriteString("  ")
		}
		s := normal
		if n == 0 {
			s = inverse
		}
		lines = append(lines, line{b.String(), s})
	}
	return lines
}

// foot returns the line that describes the selection.
func (v *view) foot() line {
	text := fmt.Sprintf("%d of %d, by %s", v.ids.Matched, v.ids.Total, v.query.Sort)
	if v.query.Descending {
		text += " (descending)"
	}
	if v.query.Text != "" {
		text += ", with " + plain.Text(strconv.Quote(v.query.Text))
	}
	return line{text, normal}
}

// screen returns all lines, as many as fit.
func (v *view) screen(address string, height int, now time.Time) []line {
	lines := v.summary(address, now)
	lines = append(lines[:min(len(lines), max(height/2, 1))], v.foot())
	lines = append(lines, v.rows()...)
	return lines[:min(len(lines), height)]
}

// room returns how many identifiers the screen has room for.
func (v *view) room(height int) int {
	return min(max(height-min(len(v.summary("", v.got)), max(height/2, 1))-2, 1), page.MostRows)
}

// cut bounds a text from the server.
func cut(s string) string { return s[:min(len(s), 200)] }
