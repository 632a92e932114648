package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/states"
)

// peerLike is a struct like those of other packages.
type peerLike struct {
	Peer        struct{ Name, Addr string }
	Connected   bool
	Waiting     int
	DeadLetters uint64
	Patience    time.Duration
	FDs         int
	Since       time.Time
	Who         *actor.PID
	State       states.State
	Err         error
	hidden      int
	Counted
}

type Counted struct{ Sent uint64 }

// TestRows: a row for each value, a column for each field.
func TestRows(t *testing.T) {
	p := peerLike{Connected: true, Waiting: 3, DeadLetters: 4, Patience: 1500 * time.Millisecond, FDs: 5, State: states.Connected, Err: io.EOF, hidden: 1}
	p.Peer.Name, p.Who, p.Sent, p.Since = "ann", actor.NewPID("here", "7"), 9, time.Unix(1e9, 5e8).In(time.FixedZone("", 3600))
	s := Rows("peers", "Peers", func() []peerLike { return []peerLike{p, {}} })
	want := []string{"peer_name", "peer_addr", "connected", "waiting", "dead_letters", "patience_seconds", "fds", "since", "who", "state", "err", "sent"}
	if !slices.Equal(s.columns, want) {
		t.Errorf("columns %q, want %q", s.columns, want)
	}
	rows := s.read().rows
	got, err := json.Marshal(rows[0])
	if err != nil {
		t.Fatal(err)
	}
	const row = `{"connected":true,"dead_letters":4,"err":"EOF","fds":5,"patience_seconds":1.5,"peer_addr":"","peer_name":"ann","sent":9,"since":"2001-09-09T01:46:40.500Z",` +
		`"state":"connected","waiting":3,"who":"Address:\"here\"  Id:\"7\""}`
	if strings.ReplaceAll(string(got), `\"  Id`, `\" Id`) != strings.ReplaceAll(row, `\"  Id`, `\" Id`) {
		t.Errorf("row %s\nwant %s", got, row)
	}
	if fmt.Sprint(rows[1]["who"], rows[1]["err"], rows[1]["since"]) != "" {
		t.Errorf("of what is nil or zero: %v", rows[1])
	}
}

// hostile are names that a peer may choose.
var hostile = []string{
	"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "</td></tr></table>", "a\x1b[2Jb\x07", "line\nbreak\r\ttab", "\xff\xfe",
	"\u202eright to left", "data: x\n\nevent: news\ndata: {}", strings.Repeat("long", 10_000), "javascript:alert(1)", "\u2028", "",
}

// TestHostileNames: a name that a peer has chosen is text wherever it appears.
func TestHostileNames(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Sections: []Section{Rows("names", "Names", func() []struct{ Name string } {
		rows := []struct{ Name string }{}
		for _, name := range hostile {
			rows = append(rows, struct{ Name string }{name})
		}
		return rows
	})}}, rdma.Config{})
	_, h, body := r.get("sections/names?format=json")
	if strings.ContainsAny(body, "<>\x1b\x07\u2028") || !utf8.ValidString(body) || h.Get("Content-Type") != "application/json" {
		t.Errorf("JSON:\n%s", body)
	}
	v := read[sectionView](r, "sections/names")
	for i, name := range hostile {
		if got := v.Rows[i]["name"].(string); got != strings.ToValidUTF8(name, "\uFFFD") && len(got) > longest+3 {
			t.Errorf("%.40q has become %.40q", name, got)
		}
	}
	_, _, body = r.get("sections/names?format=text")
	if strings.ContainsAny(body, "\x1b\x07\r\t\u202e\u2028") || strings.Count(body, "\n") != len(hostile)+2 {
		t.Errorf("text:\n%q", body)
	}
	next, stop := r.watch("view=section&name=names")
	defer stop()
	for range 2 {
		name, data := next()
		if err := json.Unmarshal([]byte(data), &v); err != nil || name != "news" || len(v.Rows) != len(hostile) {
			t.Errorf("event %q, %v", name, err)
		}
	}
}

// TestUnprintable: a value's text may panic, or be long.
func TestUnprintable(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Sections: []Section{
		Rows("texts", "", func() []struct{ Err error } { return []struct{ Err error }{{bad{}}} }),
		Rows("long", "", func() []struct{ Err error } { return []struct{ Err error }{{errors.New(strings.Repeat("é", 5000))}} }),
	}}, rdma.Config{})
	if v := read[sectionView](r, "sections/texts"); !strings.Contains(fmt.Sprint(v.Rows, v.Error), "PANIC") && v.Error == "" {
		t.Errorf("%+v", v)
	}
	if v := read[sectionView](r, "sections/long"); len(v.Rows[0]["err"].(string)) > longest+8 {
		t.Errorf("%+v", v)
	}
}

type bad struct{}

func (bad) Error() string { panic("in Error") }

// TestDiagram: every state has a different place, and the picture has the table's arrows.
func TestDiagram(t *testing.T) {
	taken := make(map[[2]int]states.State)
	for s := range states.State(states.NumStates) {
		place, ok := places[s]
		if other, twice := taken[place]; twice || !ok {
			t.Errorf("%v has no place of its own: %v", s, other)
		}
		taken[place] = s
	}
	r := newRig(t, quick, rdma.Config{})
	r.connect(r.echo(), 0)
	r.idle(5)
	r.until("both are connected", func() bool { return read[idsView](r, "ids").States["connected"] == 2 })
	fresh()
	for name, f := range flavors {
		status, h, body := r.get("states.svg?flavor=" + name)
		if status != 200 || h.Get("Content-Type") != "image/svg+xml" || strings.Count(body, `class="edge"`) != len(states.Edges(f)) {
			t.Errorf("%q: %d, %d arrows, want %d", name, status, strings.Count(body, `class="edge"`), len(states.Edges(f)))
		}
		for s := range states.State(states.NumStates) {
			if drawn := strings.Contains(body, fmt.Sprintf(`data-state="%v"`, s)); drawn != states.Exists(f|states.Device, s) {
				t.Errorf("%q: %v drawn: %v", name, s, drawn)
			}
		}
		for _, want := range []string{`data-state="idle"`, `>5</text></g>`, `>2</text></g>`} {
			if !strings.Contains(body, want) {
				t.Errorf("%q: no %s", name, want)
			}
		}
	}
	if status, _, _ := r.get("states.svg?flavor=%22%3E%3Cscript%3E"); status != 400 {
		t.Errorf("a flavor that there is not: %d", status)
	}
}
