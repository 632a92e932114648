package inspect

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// TestFlight: the history of a connection is found by its number, as JSON and as text.
func TestFlight(t *testing.T) {
	r := newRig(t, quick, rdma.Config{Loops: make([]eventloop.Config, 2)})
	pid := r.connect(r.echo(), 1)
	fresh()
	one := read[idView](r, "ids/"+pid.Id)
	v := read[flightView](r, fmt.Sprintf("flight?id=%d", one.ID))
	if len(v.Loops) != 2 || v.Matched != len(v.Rows) || v.Matched < 8 || v.Total <= v.Matched || v.Page != 1 || v.Pages != 1 {
		t.Fatalf("%+v", v)
	}
	last := ""
	for i, row := range v.Rows {
		if row.ID != one.ID || row.Loop != one.Loop || row.Number == 0 || row.Ago < 0 || i > 0 && v.Rows[i-1].Number <= row.Number {
			t.Errorf("row %d: %+v", i, row)
		}
		last += row.What + "\n"
	}
	if !strings.Contains(last, "connecting -> connected") && !strings.Contains(last, "-> connected") {
		t.Errorf("it has not been connected:\n%s", last)
	}
	text := fmt.Sprintf("flight?format=text&id=%d&kind=transition&size=1", one.ID)
	if status, _, body := r.get(text); status != 200 || !strings.Contains(body, "-> connected") || strings.Contains(body, "command") {
		t.Errorf("%d\n%s", status, body)
	}
	for query, want := range map[string]func(flightRow) bool{
		"kind=command,event": func(r flightRow) bool { return r.Kind == "command" || r.Kind == "event" },
		"loop=" + one.Loop:   func(r flightRow) bool { return r.Loop == one.Loop },
		"q=CONNECTED":        func(r flightRow) bool { return strings.Contains(strings.ToLower(r.What), "connected") },
	} {
		some := read[flightView](r, "flight?size=500&"+query)
		if some.Matched == 0 || some.Matched >= v.Total {
			t.Errorf("%s: %d of %d", query, some.Matched, v.Total)
		}
		for _, row := range some.Rows {
			if !want(row) {
				t.Errorf("%s: %+v", query, row)
			}
		}
	}
	r.until("a second page", func() bool { // on a busy machine a stall is recorded between the two
		pages := read[flightView](r, "flight?size=3&page=2")
		all := read[flightView](r, "flight?size=500")
		return len(pages.Rows) == 3 && pages.Rows[0].Number == all.Rows[3].Number
	})
}

// TestFlightQueries: no answer is larger than a page, or repeats the query.
func TestFlightQueries(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	r.idle(300)
	for query, want := range map[string]int{
		"id=0": 400, "id=-1": 400, "id=x": 400, "id=99999999999999999999": 400, "id=9999999": 200, "kind=x": 400, "kind=,": 400,
		"kind=" + strings.Repeat("stall,", 100): 400, "loop=nobody": 200, "loop=" + strings.Repeat("x", 257): 400, "q=%3Cscript%3E": 200,
		"page=0": 400, "page=1000000000": 200, "size=0": 400, "size=1000000000": 200, "q=" + strings.Repeat("x", 257): 400,
	} {
		status, _, body := r.get("flight?" + query)
		if status != want || strings.Contains(body, "<script") {
			t.Errorf("%.60s: %d, want %d\n%.300s", query, status, want, body)
		}
		if want == 400 {
			if status, _, _ := r.get("events?view=flight&" + query); status != 400 {
				t.Errorf("events, %.60s: %d", query, status)
			}
		}
	}
	next, stop := r.watch("view=flight&kind=event")
	defer stop()
	if name, data := next(); name != "news" || !strings.Contains(data, `"rows":[`) {
		t.Errorf("%s %s", name, data)
	}
}

// TestNoFlightRecorder: a program without a flight recorder has no records.
func TestNoFlightRecorder(t *testing.T) {
	r := newRig(t, quick, rdma.Config{Flight: rdma.FlightConfig{Records: -1}})
	r.idle(3)
	if v := read[flightView](r, "flight"); v.Total != 0 || len(v.Loops) != 1 || v.Loops[0].Records != 0 {
		t.Errorf("%+v", v)
	}
}

// TestFlightOrder: records of several loops are ordered by time, the latest first, and a record
// with an error has its name.
func TestFlightOrder(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rec := func(s int, id uint64) rdma.FlightRecord {
		return rdma.FlightRecord{At: at.Add(time.Duration(s) * time.Second), ID: id, Kind: rdma.FlightEnd, What: "x", Errno: 71}
	}
	r := &recordings{taken: at.Add(time.Minute), loops: []rdma.Flight{
		{Loop: "a", Before: 10, Records: []rdma.FlightRecord{rec(1, 1), rec(3, 3), rec(5, 5)}},
		{Loop: "b", Records: []rdma.FlightRecord{rec(2, 2), rec(4, 4)}},
	}}
	q, err := parseFlightQuery(url.Values{"q": {"eproto"}})
	if err != nil {
		t.Fatal(err)
	}
	v := q.selectPage(r)
	for i, want := range []flightRow{
		{At: "03:04:10.000000", Ago: 55, Loop: "a", Number: 13, ID: 5, Kind: "end", What: "x", Error: "EPROTO"},
		{At: "03:04:09.000000", Ago: 56, Loop: "b", Number: 2, ID: 4, Kind: "end", What: "x", Error: "EPROTO"},
	} {
		if len(v.Rows) != 5 || v.Rows[i] != want {
			t.Errorf("row %d of %d: %+v", i, len(v.Rows), v.Rows[i])
		}
	}
	if v.Page != 1 || v.Loops[0].Before != 10 {
		t.Errorf("%+v", v)
	}
}
