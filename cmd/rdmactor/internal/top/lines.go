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
	mostLoops  = 4   // shown at most
	widest     = 28  // columns of a cell
	mostLine   = 400 // bytes of a list in a line
	keysTable  = "q quit  arrows jk move  PgUp PgDn page  Enter history  Tab tables  / filter  s S sort  r reverse"
	keysOwn    = "q back  Tab next table  arrows jk PgUp PgDn move  Ctrl-C quit"
	keysDetail = "q back  Ctrl-C quit"
)

// summaryLines returns the lines about the program as a whole.
func (m *model) summaryLines(address string, now time.Time) []line {
	first := line{"rdmactor top  " + address, bold}
	if o := m.overview; !m.got.IsZero() {
		first.text += fmt.Sprintf("  %s  %d goroutines", plain.Text(cutText(o.Go)), o.Goroutines)
	}
	lines := []line{first}
	switch {
	case m.err != nil:
		text := "no news, trying again"
		if wait := m.retry.Sub(now); wait > 0 {
			text += " in " + plain.Duration(wait.Seconds())
		}
		text += ": " + cutText(m.err.Error())
		if !m.got.IsZero() {
			text += "; below is what was " + plain.Duration(now.Sub(m.got).Seconds()) + " ago"
		}
		lines = append(lines, line{text, alarm})
	case m.got.IsZero():
		return append(lines, line{"waiting for the first answer", normal})
	case now.Sub(m.got) > 3*refreshInterval(m.overview.Interval):
		lines = append(lines, line{"no news for " + plain.Duration(now.Sub(m.got).Seconds()), alarm})
	}
	if m.got.IsZero() {
		return lines
	}
	lines = append(lines, line{fmt.Sprintf("%d identifiers: %s", m.overview.Total, inStates(m.overview.States)), normal})
	lines = append(lines, m.loopLines()...)
	return append(lines, line{"memory: " + listPools(m.overview.Memory), normal})
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
		parts = append(parts, plain.Text(cutText(n))+" "+strconv.Itoa(counts[n]))
	}
	return joinParts(parts)
}

// joinParts joins as many of the parts as fit into a line.
func joinParts(parts []string) string {
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

// loopLines returns a line for each loop: blocked ones, then the busiest.
func (m *model) loopLines() (lines []line) {
	loops := slices.Clone(m.overview.Loops)
	slices.SortStableFunc(loops, func(a, b page.Loop) int {
		switch busyA, busyB := m.rates.busy[a.Name], m.rates.busy[b.Name]; {
		case a.Blocked > b.Blocked, a.Blocked == b.Blocked && busyA > busyB:
			return -1
		case a.Blocked < b.Blocked, busyA < busyB:
			return 1
		}
		return 0
	})
	for _, l := range loops[:min(len(loops), mostLoops)] {
		busy := "   ?"
		if share, ok := m.rates.busy[l.Name]; l.Blocked > 0 {
			busy = "100%" // its turn is counted only when it ends
		} else if ok {
			busy = fmt.Sprintf("%3.0f%%", share*100)
		}
		text, s := "loop "+plain.Text(cutText(l.Name))+": ", normal
		if l.Blocked > 0 {
			text += fmt.Sprintf("BLOCKED for %s by %s, ", plain.Duration(l.Blocked), plain.Text(cutText(l.BlockedBy)))
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

// listPools lists pools: those with the same name on all loops together.
func listPools(pools []page.Memory) string {
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
		text := plain.Text(cutText(n)) + " " + plain.Bytes(s.used)
		if s.limit > 0 {
			text += " of " + plain.Bytes(s.limit)
		}
		if s.waiting > 0 {
			text += fmt.Sprintf(" (%s wait)", plain.Count(s.waiting))
		}
		parts = append(parts, text)
	}
	return joinParts(parts)
}

var titles = []string{"ID", "STATE", "FOR", "PEER", "LOCAL", "QUEUED", "WAITS", "SENT/S", "RECV/S", "DEVICE", "LOOP", "CREDITS", "MEMORY", "OWNER"}

// rowCells returns a row of the table.
func (m *model) rowCells(r *page.Row) []string {
	sent, received := "-", "-"
	if now, ok := m.rates.ids[rowName(r)]; ok {
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
	if m.hasExtraColumn() {
		cells = append(cells, r.Text(m.query.Sort))
	}
	for i := range cells {
		cells[i] = plain.Or(cutText(cells[i]))
	}
	return cells
}

// hasExtraColumn reports whether the table is sorted by a field that needs an additional column.
func (m *model) hasExtraColumn() bool { return !slices.Contains(sorts, m.query.Sort) }

// tableLines returns the table. The title by which it is sorted is marked.
func (m *model) tableLines() (lines []line) {
	names, fields := slices.Clone(titles), slices.Clone(sorts)
	if m.hasExtraColumn() {
		names, fields = append(names, strings.ToUpper(plain.Text(m.query.Sort))), append(fields, m.query.Sort)
	}
	for n, field := range fields {
		if field == m.query.Sort {
			mark := "^"
			if m.query.Descending {
				mark = "v"
			}
			names[n] += mark
		}
	}
	rows := [][]string{names}
	for i := range m.ids.Rows {
		rows = append(rows, m.rowCells(&m.ids.Rows[i]))
	}
	return alignColumns(rows)
}

// alignColumns returns a table whose columns are as wide as their contents. The first row is the
// titles.
func alignColumns(table [][]string) (lines []line) {
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

// footLine returns the line that describes the selection.
func (m *model) footLine() line {
	text := fmt.Sprintf("%d of %d, page %d of %d, by %s", m.ids.Matched, m.ids.Total, m.query.Page, m.ids.Pages, m.query.Sort)
	if m.query.Descending {
		text += " (descending)"
	}
	if m.query.Text != "" {
		text += ", with " + plain.Text(strconv.Quote(m.query.Text))
	}
	return line{text, normal}
}

// ownRows returns one of the program's tables.
func (m *model) ownRows() (lines []line) {
	t := &m.own
	if t.Rows == nil {
		return []line{{plain.Text(cutText(m.section)) + ": no answer yet", normal}}
	}
	lines = append(lines, line{fmt.Sprintf("%s: %d rows", plain.Text(cutText(t.Title)), t.Total), bold})
	if t.Error != "" || t.Late > 0 {
		lines = append(lines, line{"no news for " + plain.Duration(t.Late) + " " + plain.Text(cutText(t.Error)), alarm})
	}
	if len(t.Columns) == 0 {
		return lines
	}
	rows := [][]string{nil}
	for _, c := range t.Columns {
		rows[0] = append(rows[0], plain.Or(cutText(strings.ToUpper(cutText(c)))))
	}
	for _, r := range t.Rows[min(m.from, len(t.Rows)):] {
		var cells []string
		for _, c := range t.Columns {
			cells = append(cells, plain.Or(cutText(string(r[c]))))
		}
		if rows = append(rows, cells); len(rows) > largest {
			break // no terminal has more lines
		}
	}
	return append(lines, alignColumns(rows)...)
}

// detailLines returns the lines of one identifier.
func (m *model) detailLines() (lines []line) {
	i := &m.one
	switch which := "identifier " + plain.Text(cutText(m.detail)); {
	case m.gone:
		lines = append(lines, line{which + " is gone", alarm})
	case i.History == nil:
		lines = append(lines, line{which + ": no answer yet", normal})
	}
	if i.History == nil {
		return lines
	}
	add := func(format string, args ...any) { lines = append(lines, line{fmt.Sprintf(format, args...), normal}) }
	t := func(s string) string { return plain.Or(cutText(s)) }
	lines = append(lines, line{fmt.Sprintf("identifier %s, PID %s, owner %s", plain.Text(cutText(rowName(&i.Row))), t(i.PID), t(i.Owner)), bold})
	add("state    %s for %s: %s (the kernel: %s)", t(i.State), plain.Duration(i.InState), t(i.Meaning), t(i.Kernel))
	add("where    %s to %s, device %s, loop %s, wire %s", t(i.Local), t(i.Peer), t(i.Device), t(i.Loop), t(i.Wire))
	if i.Identity != "" {
		add("who      %s, sealed with %s", t(i.Identity), t(i.Security))
	}
	add("waits    for %s, for credits since %s; waited for credits %d times, %s", t(i.Waiting), plain.Duration(i.WaitsFor), i.CreditWaits,
		plain.Duration(i.CreditWait))
	add("queues   mailbox %d, queued %d, in flight %d, unacked %d, unfreed %d; credits to send %d, to receive %d", i.Mailbox, i.Queued,
		i.InFlight, i.Unacked, i.Unfreed, i.Send, i.Receive)
	add("sent     %d messages, %s; %d large; writes %d, %s", i.Sent, plain.Bytes(float64(i.SentBytes)), i.LargeSent, i.Writes, plain.Bytes(float64(i.WriteBytes)))
	add("received %d messages, %s; %d large; reads %d, %s", i.Received, plain.Bytes(float64(i.ReceivedBytes)), i.LargeReceived, i.Reads, plain.Bytes(float64(i.ReadBytes)))
	add("memory   %s; atomics %d", plain.Bytes(float64(i.Memory)), i.Atomics)
	return append(lines, line{"history  " + plain.Fit("AT", 8) + plain.Fit("FOR", 8) + "STATE", inverse})
}

// historyLines returns the identifier's states so far: the last ones, if there is no room for all.
func (m *model) historyLines(room int) (lines []line) {
	stays := m.one.History
	for _, s := range stays[max(len(stays)-max(room, 0), 0):] {
		text := "         " + plain.Fit(plain.Duration(s.At), 8) + plain.Fit(plain.Duration(s.For), 8) + plain.Or(cutText(s.State))
		lines = append(lines, line{text, normal})
	}
	return lines
}

// screenLines returns all lines, as many as the terminal has.
func (m *model) screenLines(address string, height int, now time.Time) []line {
	lines := m.headLines(address, height, now)
	last := line{keysTable, inverse}
	switch {
	case m.section != "":
		last.text = keysOwn
		lines = append(lines, m.ownRows()...)
	case m.detail != "":
		last.text = keysDetail
		lines = append(lines, m.detailLines()...)
		lines = append(lines, m.historyLines(height-len(lines)-1)...)
	default:
		lines = append(lines, m.footLine())
		table := m.tableLines()
		if at := m.cursor + 1; at < len(table) {
			table[at].style = inverse
		}
		lines = append(lines, table...)
	}
	if m.editing {
		last = line{"filter: " + plain.Text(m.edit) + "_   (Enter: apply, Esc: leave it)", bold}
	}
	lines = lines[:min(len(lines), max(height-1, 0))]
	for len(lines) < height-1 {
		lines = append(lines, line{})
	}
	return append(lines, last)
}

// headLines returns the lines above the table: the summary, in at most half of the lines.
func (m *model) headLines(address string, height int, now time.Time) []line {
	lines := m.summaryLines(address, now)
	return lines[:min(len(lines), max(height/2, 1))]
}

// linesAbove returns how many lines the table cannot use.
func (m *model) linesAbove(height int, now time.Time) int {
	return len(m.headLines("", height, now)) + 3
}

// cutText bounds a text from the server.
func cutText(s string) string { return s[:min(len(s), 200)] }
