package top

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
)

func TestKeys(t *testing.T) {
	for in, want := range map[string][]key{
		"":                                      nil,
		"qj/":                                   {'q', 'j', '/'},
		"\x1b":                                  {keyEscape},
		"\x1b[A\x1b[B\x1bOA":                    {keyUp, keyDown, keyUp},
		"\x1b[5~\x1b[6~\x1b[1;5C":               {keyPageUp, keyPageDown, keyRight},
		"\x1b[99~x":                             {keyUnknown, 'x'},
		"\x1b[Mabc":                             {keyUnknown, 'a', 'b', 'c'},
		"\x1bq":                                 {keyEscape, 'q'},
		"\r\n\b\x7f\x03":                        {keyEnter, keyEnter, keyBackspace, keyBackspace, keyInterrupt},
		"ë\xff":                                 {'ë', keyUnknown},
		"\x1b[":                                 {keyUnknown},
		"\x1b[" + strings.Repeat("1", 30) + "z": {keyUnknown, 'z'},
	} {
		if got := decodeKeys([]byte(in)); !cmp.Equal(got, want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("\x1b[1;5Cq/\x1b[\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := shown()
		for _, k := range decodeKeys(b) {
			m.handleKey(k)
			if m.cursor < 0 || m.query.Page < 1 || m.query.Page > m.ids.Pages || len(m.edit) > longestFilter+utf8.UTFMax {
				t.Fatalf("%+v", m)
			}
			m.screenLines("x", 10, moment)
		}
	})
}

var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// said returns a program's answer to the nth question, a second after the previous one.
func said(q question, n int) answer {
	stamp := moment.Add(time.Duration(n) * time.Second).Format("2006-01-02T15:04:05.000Z")
	a := answer{to: q}
	a.overview = page.Overview{
		Taken: stamp, Go: "go1.26", Goroutines: 9, Interval: 1, Total: 120, States: map[string]int{"connected": 117, "listening": 3},
		Loops: []page.Loop{
			{Name: "loop-0", Identifiers: 60, Busy: 10 + float64(n)/4, RecentTurn: 0.002},
			{Name: "loop-1", Identifiers: 60, Busy: 10, Blocked: 3.2, BlockedBy: "chat.room\x1b[2J"},
		},
		Memory: []page.Memory{{Loop: "loop-0", Pool: "send", Used: 1 << 20, Limit: 1 << 24}, {Loop: "loop-1", Pool: "send", Used: 1 << 20, Limit: 1 << 24, Waiting: 2}, {Pool: "heap", Used: 5000}},
	}
	a.ids = page.IDs{Taken: stamp, Total: 120, Matched: 117, Page: 1, Pages: 3, Rows: []page.Row{
		{ID: 7, State: "connected", Trouble: "peer is slow", InState: 75, Peer: "10.0.0.1:50000", Local: "10.0.0.2:7", Device: "rxe0", Loop: "loop-0", Sent: uint64(1000 * n), Received: 5, Owner: "room/1"},
		{PID: "x$1", State: "idle", Owner: "\x1b]0;title\x07\u009b2J世"},
	}}
	if q.detail != "" {
		a.one = page.ID{Taken: stamp, Row: a.ids.Rows[0], Meaning: "established", Kernel: "CONNECT", History: []page.Stay{{State: "idle", For: 0.01}, {State: "connected", At: 0.01, For: 75}}}
	}
	return a
}

// shown returns a model with two answers.
func shown() *model {
	m := newModel(page.Query{Sort: "id"})
	m.storeAnswer(said(m.currentQuestion(), 1), moment)
	m.storeAnswer(said(m.currentQuestion(), 2), moment)
	return m
}

func text(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l.text, " ") + "\n")
	}
	return b.String()
}

func TestScreen(t *testing.T) {
	want := `rdmactor top  http://h/  go1.26  9 goroutines
120 identifiers: connected 117, listening 3
loop loop-1: BLOCKED for 3.2s by chat.room\x1b[2J, 100% busy, 60 identifiers, 0 queued, longest recent turn 0
loop loop-0:  25% busy, 60 identifiers, 0 queued, longest recent turn 2ms
memory: send 2.0M of 32.0M (2 connections wait), heap 4.9K
117 of 120 identifiers, page 1 of 3, by id
ID^  STATE      TROUBLE         FOR  PEER            QUEUED  WAITS  SENT/S  RECV/S  CREDITS  LOCAL       DEVICE  LOOP    MEMORY  OWNER
7    connected  peer is slow  1m15s  10.0.0.1:50000       0      0    1.0k       0        0  10.0.0.2:7  rxe0    loop-0       0  room/1
-    idle       -                 0  -                    0      0       0       0        0  -           -       -            0  \x1b]0;title\a\u009b2J\u4e16

` + keysTable + "\n"
	m := shown()
	if diff := cmp.Diff(want, text(m.screenLines("http://h/", 11, moment))); diff != "" {
		t.Error(diff)
	}
	m.handleKey(keyEnter)
	if m.detail != "7" {
		t.Fatalf("Enter shows %q", m.detail)
	}
	m.storeAnswer(said(m.currentQuestion(), 3), moment)
	got := text(m.screenLines("http://h/", 40, moment))
	for _, want := range []string{"identifier 7,", "(the kernel: CONNECT)", "\n         0       10ms    idle\n         10ms    1m15s   connected\n", keysDetail} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	small := text(m.screenLines("http://h/", 17, moment))
	if !strings.Contains(small, "connected\n") || strings.Count(small, "\n") != 17 {
		t.Errorf("a small terminal does not show the end of the history:\n%s", small)
	}
}

// TestTroubleIsSeen: an identifier in trouble is the first row, and red, unless the user asks for
// another order.
func TestTroubleIsSeen(t *testing.T) {
	m := newModel(page.Query{})
	if m.query.Sort != "trouble" || !m.query.Descending {
		t.Errorf("sorted by %s, descending %v", m.query.Sort, m.query.Descending)
	}
	m.storeAnswer(said(m.currentQuestion(), 1), moment)
	m.cursor = 1
	for _, l := range m.screenLines("h", 24, moment) {
		if red := strings.HasPrefix(l.text, "7 ") || strings.Contains(l.text, "BLOCKED") || strings.Contains(l.text, "(2 connections wait)"); red != (l.style == alarm) {
			t.Errorf("style %q: %s", l.style, l.text)
		}
	}
}

// TestNarrow: at 80 columns a user reaches everything: the line of keys fits, hidden columns can be
// scrolled to, and an identifier's lines are continued.
func TestNarrow(t *testing.T) {
	const width = 80
	m := shown()
	m.width = width
	for _, l := range []string{keysTable, keysOwn, keysDetail, keysHelp} {
		if len(l) > width {
			t.Errorf("%d columns: %s", len(l), l)
		}
	}
	m.handleKey('?')
	for _, l := range m.screenLines("h", 24, moment) {
		if len(l.text) > width {
			t.Errorf("%d columns: %s", len(l.text), l.text)
		}
	}
	if got := text(m.screenLines("h", 24, moment)); !strings.Contains(got, "PgUp") || !strings.Contains(got, "Ctrl-Z") {
		t.Errorf("the help at 24 lines:\n%s", got)
	}
	if quit := m.handleKey('q'); quit || m.help {
		t.Error("a key does not lead back from the help")
	}
	for range 99 {
		m.handleKey('>')
		m.screenLines("h", 24, moment)
	}
	if got := text(m.screenLines("h", 24, moment)); !strings.Contains(got, "\nID^  OWNER\n7    room/1\n") {
		t.Errorf("the last column:\n%s", got)
	}
	m.handleKey(keyLeft)
	if got := text(m.screenLines("h", 24, moment)); !strings.Contains(got, "\nID^  MEMORY  OWNER\n") {
		t.Errorf("the last columns:\n%s", got)
	}
	m.handleKey(keyEnter)
	m.storeAnswer(said(m.currentQuestion(), 3), moment)
	for _, l := range m.detailLines() {
		if len(l.text) > width {
			t.Errorf("%d columns: %s", len(l.text), l.text)
		}
	}
	before := text(m.screenLines("h", 12, moment))
	for range 99 {
		m.handleKey('j')
		m.screenLines("h", 12, moment)
	}
	if got := text(m.screenLines("h", 12, moment)); got == before || !strings.Contains(got, "connected\n"+keysDetail) {
		t.Errorf("the end of an identifier:\n%s", got)
	}
}

// TestGone: an identifier that has ended is shown in its last state, and so is the program.
func TestGone(t *testing.T) {
	m := shown()
	m.handleKey(keyEnter)
	a := said(m.currentQuestion(), 3)
	a.one, a.gone = page.ID{}, true
	m.storeAnswer(a, moment)
	if got := text(m.screenLines("h", 20, moment)); !strings.Contains(got, "identifier 7 has ended") || strings.Contains(got, "no answer") {
		t.Error(got)
	}
	m.storeAnswer(said(m.currentQuestion(), 4), moment)
	a.overview.Total = 77
	m.storeAnswer(a, moment)
	got := text(m.screenLines("h", 20, moment))
	if !strings.Contains(got, "identifier 7 has ended; the page's flight?id=7 has its records") || !strings.Contains(got, "1m15s   connected\n") || !strings.Contains(got, "77 identifiers") {
		t.Error(got)
	}
}

// TestOwnTables: Tab shows the program's tables, one after the other.
func TestOwnTables(t *testing.T) {
	m := shown()
	m.handleKey(keyTab)
	if m.section != "" {
		t.Fatal("there is none")
	}
	a := said(m.currentQuestion(), 3)
	a.sections = []page.Title{{Name: "rooms", Title: "Rooms"}, {Name: "peers", Title: "Peers"}}
	m.storeAnswer(a, moment)
	m.handleKey(keyTab)
	if got := text(m.screenLines("h", 20, moment)); m.currentQuestion().section != "rooms" || !strings.Contains(got, "rooms: no answer yet") {
		t.Error(got)
	}
	a.to = m.currentQuestion()
	const table = `{"title":"Rooms\u001b[2J","total":2,"columns":["name","messages_a_second"],"error":"it panics","late_seconds":3,
		"rows":[{"name":"lobby\u001b","messages_a_second":3.9905287075727127},{"name":"1.50"}]}`
	if err := json.Unmarshal([]byte(table), &a.table); err != nil {
		t.Fatal(err)
	}
	m.storeAnswer(a, moment)
	got := text(m.screenLines("h", 20, moment))
	for _, want := range []string{"Rooms\\x1b[2J: 2 rows\n", "no news for 3.0s it panics\n", "NAME       MESSAGES/S\nlobby\\x1b           4\n1.50                -\n", keysOwn} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	m.handleKey('j')
	m.handleKey('j')
	if got := text(m.screenLines("h", 20, moment)); strings.Contains(got, "lobby") || !strings.Contains(got, "1.50") {
		t.Errorf("the end of the table:\n%s", got)
	}
	for _, want := range []string{"peers", "", "rooms"} {
		if m.handleKey(keyTab); m.section != want || m.from != 0 {
			t.Errorf("Tab shows %q, want %q", m.section, want)
		}
	}
	if quit := m.handleKey('q'); quit || m.section != "" {
		t.Error("q does not lead back")
	}
}

// TestSmall: a small terminal has room for rows, too.
func TestSmall(t *testing.T) {
	m := shown()
	for height := 5; height < 12; height++ {
		got := text(m.screenLines("h", height, moment))
		if room := height - m.linesAbove(height, moment); height > 6 && !strings.Contains(got, "10.0.0.1:50000") || room < 0 {
			t.Errorf("%d lines have room for %d rows:\n%s", height, room, got)
		}
	}
}

// TestScrolledInSmall: whatever the view is, and however far it is scrolled, a terminal of any
// height gets as many lines as it has.
func TestScrolledInSmall(t *testing.T) {
	for _, opens := range []string{"", "\r", "?"} {
		m := shown()
		for _, k := range decodeKeys([]byte(opens)) {
			m.handleKey(k)
		}
		m.storeAnswer(said(m.currentQuestion(), 3), moment)
		for height := 9; height > 0; height-- {
			m.from = 1000
			if got := len(m.screenLines("h", height, moment)); got != height {
				t.Errorf("after %q: %d lines of %d", opens, got, height)
			}
		}
	}
}

// TestErrors: without an answer the error is shown, and the previous data stay.
func TestErrors(t *testing.T) {
	m := newModel(page.Query{})
	m.storeAnswer(answer{err: errors.New("connection refused")}, moment)
	m.retry = moment.Add(2 * time.Second)
	if got := text(m.screenLines("h", 5, moment)); !strings.Contains(got, "no news, trying again in 2.0s: connection refused") {
		t.Error(got)
	}
	m.storeAnswer(answer{err: errors.New("x" + strings.Repeat("ë", 200))}, moment)
	if got := text(m.screenLines("h", 5, moment)); !utf8.ValidString(got) {
		t.Errorf("a long error is cut inside a character: %q", got)
	}
	m = shown()
	m.storeAnswer(answer{err: errors.New("EOF")}, moment)
	got := text(m.screenLines("h", 20, moment.Add(4*time.Second)))
	if !strings.Contains(got, "no news, trying again: EOF; below is what was 4.0s ago") || !strings.Contains(got, "10.0.0.1:50000") {
		t.Error(got)
	}
	m.storeAnswer(said(m.currentQuestion(), 3), moment)
	if got := text(m.screenLines("h", 20, moment.Add(4*time.Second))); !strings.Contains(got, "no news for 4.0s") {
		t.Error(got)
	}
}

func TestPresses(t *testing.T) {
	for keys, want := range map[string]string{
		"j":            "page 1 cursor 1 by id",
		"jj":           "page 2 cursor 0 by id",
		"k":            "page 1 cursor 0 by id",
		" ":            "page 2 cursor 0 by id",
		"   ":          "page 3 cursor 0 by id",
		"G":            "page 3 cursor 1 by id",
		"Gg":           "page 1 cursor 0 by id",
		" k":           "page 1 cursor 1 by id",
		"s":            "page 1 cursor 0 by state",
		"S":            "page 1 cursor 0 by owner",
		"ssr":          "page 1 cursor 0 by trouble desc",
		"?q":           "page 1 cursor 0 by id",
		"/ab\x7fc\r":   `page 1 cursor 0 by id with "ac"`,
		"/ab\x1b":      "page 1 cursor 0 by id",
		"/q\r\x1b":     "page 1 cursor 0 by id",
		"j\r":          "page 1 cursor 1 by id of x$1",
		"\rq":          "page 1 cursor 0 by id",
		"q":            "quit",
		"/\x03":        "quit",
		"\r\x03":       "quit",
		"\x1b[6~\x1bj": "page 2 cursor 1 by id",
	} {
		m := shown()
		got := ""
		for _, k := range decodeKeys([]byte(keys)) {
			if m.handleKey(k) {
				got = "quit"
			}
		}
		if got == "" {
			got = fmt.Sprintf("page %d cursor %d by %s", m.query.Page, m.cursor, m.query.Sort)
			if m.query.Descending {
				got += " desc"
			}
			if m.query.Text != "" {
				got += fmt.Sprintf(" with %q", m.query.Text)
			}
			if m.detail != "" {
				got += " of " + m.detail
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", keys, got, want)
		}
	}
}

// TestLies: impossible numbers, and names that always change, neither break nor fill anything.
func TestLies(t *testing.T) {
	m := newModel(page.Query{})
	for n := range 100 {
		a := said(m.currentQuestion(), 1) // always the same moment
		a.overview.Interval, a.overview.Loops[0].Busy = -1e300, 1e300*float64(n%2)
		a.ids.Rows[0] = page.Row{ID: uint64(n + 10), Queued: -1 << 63, InState: 1e308, WaitsFor: -1e308, Sent: 1<<64 - 1}
		a.ids.Pages = 1 + n%3
		m.storeAnswer(a, moment)
		m.handleKey(keyEnd)
		m.screenLines("h", n%30, moment)
	}
	if len(m.rates.rows) > 2 {
		t.Errorf("%d rows are kept", len(m.rates.rows))
	}
	if refreshInterval(-1e300) != usual || refreshInterval(1e300) != longest || refreshInterval(1e-9) != shortest {
		t.Error("an interval without bounds")
	}
}

// FuzzFrame: whatever names a program and its identifiers have, a frame contains only this
// package's escape sequences, and no line is wider than the terminal.
func FuzzFrame(f *testing.F) {
	f.Add("\x1b[2J\u009b\x07", 80, 24)
	f.Fuzz(func(t *testing.T, s string, columns, lines int) {
		columns, lines = 1+(columns&0xff), 1+(lines&0x3f)
		m := shown()
		a := said(question{Query: m.query}, 3)
		r := page.Row{PID: s, State: s, Peer: s, Local: s, Device: s, Loop: s, Owner: s, Wire: s, Waiting: s}
		a.ids.Rows = append(a.ids.Rows, r)
		a.overview.Loops[0].Name, a.overview.Loops[1].BlockedBy, a.overview.Memory[0].Pool, a.overview.Go = s, s, s, s
		a.overview.States[s] = 1
		m.storeAnswer(a, moment)
		m.query.Text, m.edit = s, s
		table, err := json.Marshal(map[string]any{"title": s, "columns": []string{s}, "rows": []any{map[string]string{s: s}}, "error": s})
		if err != nil || json.Unmarshal(table, &m.own) != nil {
			t.Fatal(err)
		}
		for n, detail := range []string{"", s, ""} {
			m.gone, m.section = n == 1, ""
			if n == 2 {
				m.section = "own"
			}
			m.detail, m.one = detail, page.ID{Row: r, Meaning: s, Kernel: s, History: []page.Stay{{State: s}}}
			all := m.screenLines("h", lines, moment)
			if len(all) != lines {
				t.Fatalf("%d lines of %d", len(all), lines)
			}
			got := encodeFrame(all, columns)
			for _, ours := range []string{"\x1b[?2026h", "\x1b[?2026l", "\x1b[H", "\x1b[J", "\x1b[0m", "\x1b[7m", "\x1b[1m", "\x1b[1;31m", "\r\n"} {
				if ours == "\r\n" {
					for l := range strings.SplitSeq(got, ours) {
						if n := utf8.RuneCountInString(l); n > columns {
							t.Fatalf("%d columns of %d: %q", n, columns, l)
						}
					}
				}
				got = strings.ReplaceAll(got, ours, map[bool]string{true: ours}[ours == "\r\n"])
			}
			if at := strings.IndexFunc(strings.ReplaceAll(got, "\r\n", ""), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa1 || r > 0x530 }); at >= 0 {
				t.Fatalf("%q has %q", got, got[at:])
			}
		}
	})
}
