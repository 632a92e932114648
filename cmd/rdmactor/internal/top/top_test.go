package top

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
)

var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// said returns a program's nth answers, a second after the previous ones.
func said(n int) (overview page.Overview, ids page.IDs) {
	stamp := moment.Add(time.Duration(n) * time.Second).Format("2006-01-02T15:04:05.000Z")
	overview = page.Overview{
		Taken: stamp, Go: "go1.26", Goroutines: 9, Interval: 1, Total: 120, States: map[string]int{"connected": 117, "listening": 3},
		Loops: []page.Loop{
			{Name: "loop-0", Identifiers: 60, Busy: 10 + float64(n)/4, RecentTurn: 0.002},
			{Name: "loop-1", Identifiers: 60, Busy: 10, Blocked: 3.2, BlockedBy: "chat.room\x1b[2J"},
		},
		Memory: []page.Memory{{Loop: "loop-0", Pool: "send", Used: 1 << 20, Limit: 1 << 24}, {Loop: "loop-1", Pool: "send", Used: 1 << 20, Limit: 1 << 24, Waiting: 2}, {Pool: "heap", Used: 5000}},
	}
	ids = page.IDs{Taken: stamp, Total: 120, Matched: 117, Page: 1, Pages: 3, Rows: []page.Row{
		{ID: 7, State: "connected", InState: 75, Peer: "10.0.0.1:50000", Local: "10.0.0.2:7", Device: "rxe0", Loop: "loop-0", Sent: uint64(1000 * n), Received: 5, Owner: "room/1"},
		{PID: "x$1", State: "idle", Owner: "\x1b]0;title\x07\u009b2J世"},
	}}
	return overview, ids
}

// shown returns a view with two answers.
func shown() *view {
	v := newView(page.Query{})
	for n := range 2 {
		overview, ids := said(1 + n)
		v.take(overview, ids, nil, moment)
	}
	return v
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
loop loop-1: BLOCKED for 3.2s by chat.room\x1b[2J, 100% busy, 60 identifiers, 0 queued, longest turn of late 0
loop loop-0:  25% busy, 60 identifiers, 0 queued, longest turn of late 2ms
memory: send 2.0M of 32.0M (2 wait), heap 4.9K
117 of 120, by id
ID^  STATE      FOR    PEER            LOCAL       QUEUED  WAITS  SENT/S  RECV/S  DEVICE  LOOP    CREDITS  MEMORY  OWNER
7    connected  1m15s  10.0.0.1:50000  10.0.0.2:7  0       0      1.0k    0       rxe0    loop-0  0        0       room/1
-    idle       0      -               -           0       0      0       0       -       -       0        0       \x1b]0;title\a\u009b2J\u4e16
`
	if diff := cmp.Diff(want, text(shown().screen("http://h/", 30, moment))); diff != "" {
		t.Error(diff)
	}
}

// TestSmall: a small terminal has room for identifiers, and the table fits into it.
func TestSmall(t *testing.T) {
	v := shown()
	for height := 1; height < 12; height++ {
		got := v.screen("h", height, moment)
		if len(got) > height || height > 4 && !strings.Contains(text(got), "10.0.0.1:50000") || v.room(height) < 1 {
			t.Errorf("%d lines have room for %d rows:\n%s", height, v.room(height), text(got))
		}
	}
	if room := v.room(20); room != 20-5-2 {
		t.Errorf("20 lines have room for %d rows", room)
	}
}

// TestErrors: without an answer the error is shown, and the previous data stay.
func TestErrors(t *testing.T) {
	v := newView(page.Query{})
	v.take(page.Overview{}, page.IDs{}, errors.New("connection refused"), moment)
	if got := text(v.screen("h", 5, moment)); !strings.Contains(got, "no news, trying again: connection refused\n") {
		t.Error(got)
	}
	v = shown()
	v.take(page.Overview{}, page.IDs{}, errors.New("EOF"), moment)
	got := text(v.screen("h", 20, moment.Add(4*time.Second)))
	if !strings.Contains(got, "no news, trying again: EOF; below is what was 4.0s ago") || !strings.Contains(got, "10.0.0.1:50000") {
		t.Error(got)
	}
}

// TestLies: impossible numbers, and names that always change, neither break nor fill anything.
func TestLies(t *testing.T) {
	v := newView(page.Query{})
	for n := range 100 {
		overview, ids := said(1) // always the same moment
		overview.Interval, overview.Loops[0].Busy = -1e300, 1e300*float64(n%2)
		ids.Rows[0] = page.Row{ID: uint64(n + 10), Queued: -1 << 63, InState: 1e308, WaitsFor: -1e308, Sent: 1<<64 - 1}
		v.take(overview, ids, nil, moment)
		v.screen("h", n%30, moment)
	}
	if len(v.rates.rows) > 2 {
		t.Errorf("%d rows are kept", len(v.rates.rows))
	}
	if interval(-1e300) != usual || interval(1e300) != longest || interval(1e-9) != shortest {
		t.Error("an interval without bounds")
	}
}

// FuzzFrame: whatever names a program and its identifiers have, a frame contains only this
// package's escape sequences, and no line is wider than the terminal.
func FuzzFrame(f *testing.F) {
	f.Add("\x1b[2J\u009b\x07", 80, 24)
	f.Fuzz(func(t *testing.T, s string, columns, lines int) {
		columns, lines = 1+(columns&0xff), 1+(lines&0x3f)
		v := shown()
		overview, ids := said(3)
		ids.Rows = append(ids.Rows, page.Row{PID: s, State: s, Peer: s, Local: s, Device: s, Loop: s, Owner: s, Wire: s, Waiting: s})
		overview.Loops[0].Name, overview.Loops[1].BlockedBy, overview.Memory[0].Pool, overview.Go = s, s, s, s
		overview.States[s] = 1
		v.take(overview, ids, nil, moment)
		v.query.Text = s
		all := v.screen("h", lines, moment)
		if len(all) > lines {
			t.Fatalf("%d lines of %d", len(all), lines)
		}
		got := frame(all, columns)
		for _, own := range []string{"\x1b[H", "\x1b[J", "\x1b[0m", "\x1b[7m", "\x1b[1m", "\x1b[1;31m"} {
			got = strings.ReplaceAll(got, own, "")
		}
		for l := range strings.SplitSeq(got, "\n") {
			if n := utf8.RuneCountInString(l); n > columns {
				t.Fatalf("%d columns of %d: %q", n, columns, l)
			}
		}
		if at := strings.IndexFunc(strings.ReplaceAll(got, "\n", ""), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa1 || r > 0x530 }); at >= 0 {
			t.Fatalf("%q has %q", got, got[at:])
		}
	})
}
