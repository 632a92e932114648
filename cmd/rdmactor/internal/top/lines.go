package top

import (
	"fmt"
	"maps"
	"regexp"
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
	keysTable  = "q quit  ? help  j k move  Enter open  / filter  s sort  r reverse  Tab tables"
	keysOwn    = "q back  ? help  j k move  < > columns  Tab next table  Ctrl-C quit"
	keysDetail = "q back  ? help  j k scroll  Ctrl-C quit"
	keysHelp   = "any key: back  Ctrl-C quit"
)

// Help describes the keys, for the screen and for rdmactor top --help.
const Help = `  arrows, j k      move; beyond the last row is the next page
  PgUp PgDn space  one page up or down; g and G: the first and the last page
  < >, left right  scroll the columns; the first one stays
  s S              sort by the next column, or by the previous one
  r                reverse the order
  /                filter by a text in any name or address; Esc: no filter
  Enter            open one identifier and its history; q or Esc: back
  Tab              the program's own tables, one after the other
  ? h              this help
  q Ctrl-C         quit
  Ctrl-Z           back to the shell; fg returns
`

// helpLines returns the help's lines.
func helpLines() (lines []line) {
	lines = append(lines, line{"Keys", bold})
	for l := range strings.Lines(Help) {
		lines = append(lines, line{strings.TrimSuffix(l, "\n"), normal})
	}
	return append(lines, line{}, line{"A red row is in trouble: column TROUBLE has the reason, docs/incidents.md", normal},
		line{"what to do. WAITS is how long a connection has waited for its peer's credits.", normal})
}

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
		text += ": " + plain.Text(cutText(m.err.Error()))
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
	return append(lines, memoryLine(m.overview.Memory))
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
		text += fmt.Sprintf("%s busy, %d identifiers, %d queued, longest recent turn %s", busy, l.Identifiers, l.Queued,
			plain.Duration(l.RecentTurn))
		lines = append(lines, line{text, s})
	}
	if n := len(loops) - mostLoops; n > 0 {
		lines = append(lines, line{fmt.Sprintf("and %d more loops", n), normal})
	}
	return lines
}

// memoryLine returns the line about memory: pools that are used, with those of the same name on all
// loops together.
func memoryLine(pools []page.Memory) line {
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
	style := normal
	for _, n := range names[:min(len(names), 32)] {
		s := sums[n]
		if s.used == 0 && s.waiting == 0 {
			continue
		}
		text := plain.Text(cutText(n)) + " " + plain.Bytes(s.used)
		if s.limit > 0 {
			text += " of " + plain.Bytes(s.limit)
		}
		if s.waiting > 0 {
			text += fmt.Sprintf(" (%s connections wait)", plain.Count(s.waiting))
			style = alarm
		}
		parts = append(parts, text)
	}
	return line{"memory: " + joinParts(parts), style}
}

var titles = []string{"ID", "STATE", "TROUBLE", "FOR", "PEER", "QUEUED", "WAITS", "SENT/S", "RECV/S", "CREDITS", "LOCAL", "DEVICE", "LOOP", "MEMORY", "OWNER"}

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
		id, r.State, r.Trouble, plain.Duration(r.InState), r.Peer, plain.Count(float64(r.Queued)), plain.Duration(r.WaitsFor),
		sent, received, plain.Count(float64(r.Send)), r.Local, r.Device, r.Loop, plain.Bytes(float64(r.Memory)), r.Owner,
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
	lines = m.alignColumns(rows)
	for i := range m.ids.Rows {
		if m.ids.Rows[i].Trouble != "" {
			lines[i+1].style = alarm
		}
	}
	return lines
}

// alignColumns returns a table whose columns are as wide as their contents, with numbers to the
// right, without those that are scrolled out. The first row is the titles.
func (m *model) alignColumns(table [][]string) (lines []line) {
	columns := len(table[0])
	widths, numbers := make([]int, columns), make([]bool, columns)
	for i := range columns {
		some, others := false, i == 0
		for n, cells := range table {
			widths[i] = min(max(widths[i], utf8.RuneCountInString(cells[i])), widest)
			if n > 0 && cells[i] != "-" {
				some = true
				others = others || !number.MatchString(cells[i])
			}
		}
		numbers[i] = some && !others
	}
	m.column = max(min(m.column, columns-2), 0)
	for n, cells := range table {
		var b strings.Builder
		for i, c := range cells {
			if i > 0 && i <= m.column {
				continue
			}
			if numbers[i] {
				c = plain.Right(c, widths[i])
			}
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

// number matches a cell that is a number with its unit.
var number = regexp.MustCompile(`^[<>]?[0-9]+(\.[0-9]+)?([a-zA-Z]{0,2}|[mhd][0-9]+[smh])$`)

// footLine returns the line that describes the selection.
func (m *model) footLine() line {
	text := fmt.Sprintf("%d of %d identifiers, page %d of %d, by %s", m.ids.Matched, m.ids.Total, m.query.Page, m.ids.Pages, m.query.Sort)
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
	title := fmt.Sprintf("%s: %d rows", plain.Text(cutText(t.Title)), t.Total)
	if m.from > 0 {
		title += fmt.Sprintf(", from row %d", m.from+1)
	}
	lines = append(lines, line{title, bold})
	if t.Error != "" || t.Late > 0 {
		lines = append(lines, line{"no news for " + plain.Duration(t.Late) + " " + plain.Text(cutText(t.Error)), alarm})
	}
	if len(t.Columns) == 0 {
		return lines
	}
	rows := [][]string{nil}
	for _, c := range t.Columns {
		rows[0] = append(rows[0], plain.Or(cutText(strings.ToUpper(cutText(columnTitle(c))))))
	}
	for _, r := range t.Rows[min(m.from, len(t.Rows)):] {
		var cells []string
		for _, c := range t.Columns {
			cells = append(cells, plain.Or(cutText(r[c].Format(c))))
		}
		if rows = append(rows, cells); len(rows) > largest {
			break // no terminal has more lines
		}
	}
	return append(lines, m.alignColumns(rows)...)
}

// columnTitle returns a field's name as a title: the cells have the unit.
func columnTitle(field string) string {
	for _, unit := range []string{"_seconds", "_bytes", "_messages"} {
		field = strings.TrimSuffix(field, unit)
	}
	if name, ok := strings.CutSuffix(field, "_a_second"); ok {
		field = name + "/s"
	}
	return strings.ReplaceAll(field, "_", " ")
}

// detailLines returns the lines of one identifier.
func (m *model) detailLines() (lines []line) {
	i := &m.one
	switch which := "identifier " + plain.Text(cutText(m.detail)); {
	case m.gone:
		lines = append(lines, line{which + " has ended; the page's flight?id=" + plain.Text(cutText(m.detail)) + " has its records", alarm})
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
	if i.Trouble != "" {
		lines = append(lines, line{"trouble  " + t(i.Trouble), alarm})
	}
	if i.Waiting != "" {
		add("command  %s, not answered yet", t(i.Waiting))
	}
	add("credits  has waited for them for %s; %d waits, %s in total", plain.Duration(i.WaitsFor), i.CreditWaits, plain.Duration(i.CreditWait))
	add("queues   mailbox %d, queued %d, in flight %d, unacked %d, unfreed %d; credits to send %d, to receive %d", i.Mailbox, i.Queued,
		i.InFlight, i.Unacked, i.Unfreed, i.Send, i.Receive)
	add("sent     %d messages, %s; %d large; writes %d, %s", i.Sent, plain.Bytes(float64(i.SentBytes)), i.LargeSent, i.Writes, plain.Bytes(float64(i.WriteBytes)))
	add("received %d messages, %s; %d large; reads %d, %s", i.Received, plain.Bytes(float64(i.ReceivedBytes)), i.LargeReceived, i.Reads, plain.Bytes(float64(i.ReadBytes)))
	add("memory   %s; atomics %d", plain.Bytes(float64(i.Memory)), i.Atomics)
	lines = m.wrapLines(lines)
	return append(lines, line{"history  " + plain.Fit("AT", 8) + plain.Fit("FOR", 8) + "STATE", inverse})
}

// wrapLines breaks lines that are wider than the terminal, and indents what follows.
func (m *model) wrapLines(lines []line) (wrapped []line) {
	const indent = "         "
	for _, l := range lines {
		for text := l.text; ; {
			at := len(text)
			if m.width > 2*len(indent) && utf8.RuneCountInString(text) > m.width {
				if at = strings.LastIndexByte(string([]rune(text)[:m.width]), ' '); at <= len(indent) {
					at = len(text)
				}
			}
			wrapped = append(wrapped, line{text[:at], l.style})
			if at == len(text) {
				break
			}
			text = indent + text[at+1:]
		}
	}
	return wrapped
}

// visibleDetail returns as much of one identifier as there is room for: at first its figures and
// the last states, then all of it from the line that the user scrolled to.
func (m *model) visibleDetail(room int) []line {
	details, history := m.detailLines(), m.historyLines()
	if m.from = max(min(m.from, len(details)+len(history)-room), 0); m.from > 0 {
		return append(details, history...)[m.from:]
	}
	return append(details, history[max(len(history)-max(room-len(details), 0), 0):]...)
}

// historyLines returns the identifier's states so far.
func (m *model) historyLines() (lines []line) {
	for _, s := range m.one.History {
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
	case m.help:
		last.text = keysHelp
		lines = append(lines[:min(len(lines), 1)], helpLines()...)
	case m.section != "":
		last.text = keysOwn
		lines = append(lines, m.ownRows()...)
	case m.detail != "":
		last.text = keysDetail
		lines = append(lines, m.visibleDetail(max(height-len(lines)-1, 0))...)
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
