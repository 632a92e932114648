package inspect

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// TestResources gets all resources, as JSON and as text, of a program with connections.
func TestResources(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Sections: []Section{
		Rows("numbers", "Some numbers", func() []struct{ Squared int } { return []struct{ Squared int }{{1}, {4}} }),
	}}, rdma.Config{})
	addr := r.echo()
	for range 3 {
		r.connect(addr, 1)
	}
	r.until("all are connected", func() bool { return read[idsView](r, "ids").States["connected"] == 6 })

	v := read[idsView](r, "ids?state=listening")
	if v.Total != 7 || v.Matched != 1 || len(v.Rows) != 1 || v.Rows[0].Local != addr.String() {
		t.Errorf("listening: %+v", v)
	}
	listeners := read[listenersView](r, "listeners")
	if len(listeners.Rows) != 1 || listeners.Rows[0].Connections != 3 || listeners.Rows[0].Accepted != 3 || listeners.Rows[0].Pending != 0 {
		t.Errorf("listeners: %+v", listeners)
	}
	// A loop that answers late has its queue pairs later, and is taken for blocked.
	r.until("the device", func() bool {
		devices := read[devicesView](r, "devices").Rows
		return len(devices) == 1 && devices[0].Connected == 6 && devices[0].QueuePairs == 6 && devices[0].Listening == 1
	})
	r.until("the loop", func() bool {
		loops := read[loopsView](r, "loops").Rows
		return len(loops) == 1 && loops[0].Turns > 0 && loops[0].Busy > 0 && loops[0].BlockedBy == ""
	})
	if m := read[memoryView](r, "memory"); len(m.Rows) < 5 || m.Rows[0].Pool != "receive" || m.Rows[0].Registered == 0 {
		t.Errorf("memory: %+v", m)
	}
	if s := read[sectionView](r, "sections/numbers"); s.Total != 2 || fmt.Sprint(s.Rows) != "[map[squared:1] map[squared:4]]" || s.Error != "" {
		t.Errorf("section: %+v", s)
	}
	if o := read[overview](r, ""); o.Total != 7 || len(o.Sections) != 1 || o.Actions {
		t.Errorf("overview: %+v", o)
	}
	for _, path := range []string{"", "ids", "loops", "memory", "listeners", "devices", "sections", "sections/numbers", fmt.Sprintf("ids/%d", v.Rows[0].ID)} {
		status, h, body := r.get(path, "Accept", "text/plain")
		if status != http.StatusOK || h.Get("Content-Type") != "text/plain; charset=utf-8" || strings.Contains(body, "{") {
			t.Errorf("%s as text: %d\n%s", path, status, body)
		}
		if _, _, again := r.get(path + "?format=text"); strings.SplitN(again, "\n", 2)[0][:4] != strings.SplitN(body, "\n", 2)[0][:4] {
			t.Errorf("%s: by query and by header it begins differently:\n%s\n%s", path, body, again)
		}
	}
}

// TestOneIdentifier shows one, by its number and by its PID, with its history.
func TestOneIdentifier(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	pid := r.connect(r.echo(), 1)
	fresh() // so that it has been connected for a while
	var row idRow
	r.until("it is in the table", func() bool {
		rows := read[idsView](r, "ids?q="+pid.Id).Rows
		if len(rows) == 1 {
			row = rows[0]
		}
		return len(rows) == 1
	})
	v := read[idView](r, fmt.Sprintf("ids/%d", row.ID))
	if v.PID != pid.Id || v.State != "connected" || v.Kernel != "CONNECT" || len(v.History) < 5 {
		t.Fatalf("%+v", v)
	}
	names, at := []string{}, 0.0
	for _, h := range v.History {
		names = append(names, h.State)
		if h.At < at || h.For < 0 {
			t.Errorf("history out of order: %+v", v.History)
		}
		at = h.At
	}
	if last := v.History[len(v.History)-1]; last.State != "connected" || last.For == 0 || !slices.Contains(names, "route-resolved") {
		t.Errorf("history: %v", v.History)
	}
	if again := read[idView](r, "ids/"+pid.Id); again.ID != v.ID {
		t.Errorf("by its PID: %+v", again)
	}
	for path, want := range map[string]int{"ids/99999999": 404, "ids/nobody": 404, "ids/": 400, "ids/0": 400, "ids/" + strings.Repeat("x", 300): 400} {
		if status, _, body := r.get(path); status != want || strings.Contains(body, "xxx") {
			t.Errorf("%.20s: %d %q, want %d", path, status, body, want)
		}
	}
}

// TestHostileQueries: no answer is larger than a page, or repeats the query.
func TestHostileQueries(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	r.idle(120)
	for query, want := range map[string]int{
		"page=-1": 400, "page=0": 400, "page=1e9": 400, "page=x": 400, "page=99999999999999999999": 400, "page=1000000000": 200,
		"size=-1": 400, "size=0": 400, "size=1000000000": 200, "sort=nothing": 400, "sort=%3Cscript%3E": 400, "order=up": 400,
		"state=%3Cscript%3E": 400, "state=" + strings.Repeat("idle,", 1000): 400, "state=,": 400,
		"q=" + strings.Repeat("x", 257): 400, "peer=" + strings.Repeat("x", 100_000): 400, "q=%00%ff%fe": 200, "format=xml": 400,
		"state=idle,bound": 200, "q=%3Cscript%3E": 200,
	} {
		status, _, body := r.get("ids?" + query)
		if status != want || strings.Contains(body, "<script") {
			t.Errorf("%.60s: %d, want %d\n%.300s", query, status, want, body)
		}
		if want == 400 && query != "format=xml" { // events have one format
			if status, _, _ := r.get("events?view=ids&" + query); status != 400 {
				t.Errorf("events, %.60s: %d", query, status)
			}
		}
	}
	if v := read[idsView](r, "ids?page=1000000000&size=1000000000"); v.Page != 1 || v.Pages != 1 || v.Size != maxSize || len(v.Rows) != 120 {
		t.Errorf("the last page of one: %+v", v)
	}
	if v := read[idsView](r, "ids?page=2147483647&size=50"); v.Page != 3 || len(v.Rows) != 20 {
		t.Errorf("beyond the last: page %d with %d", v.Page, len(v.Rows))
	}
	if status, _, _ := r.get("events?view=nothing"); status != 400 {
		t.Errorf("a view that there is not: %d", status)
	}
}

// TestPages: 2,000 identifiers are paged, filtered and sorted by the server, not in the browser.
func TestPages(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	r.connect(r.echo(), 0)
	const idle = 2_000
	r.idle(idle)
	fresh()
	seen := make(map[string]bool)
	for page := 1; ; page++ {
		v := read[idsView](r, fmt.Sprintf("ids?state=idle&size=500&page=%d", page))
		for _, row := range v.Rows {
			seen[row.PID] = true
		}
		if v.Pages != idle/500 || v.Matched != idle || v.Total != idle+3 {
			t.Fatalf("page %d: %d pages, %d of %d", page, v.Pages, v.Matched, v.Total)
		}
		if page == v.Pages {
			break
		}
	}
	if len(seen) != idle {
		t.Errorf("the pages have %d identifiers", len(seen))
	}
	for name := range keys {
		up := read[idsView](r, "ids?size=500&sort="+name)
		if len(up.Rows) != 500 {
			t.Fatalf("sorted by %s: %d rows", name, len(up.Rows))
		}
	}
	down := read[idsView](r, "ids?sort=in_state_seconds&order=desc&size=500")
	if !slices.IsSortedFunc(down.Rows, func(a, b idRow) int { return int(1e9 * (b.InState - a.InState)) }) {
		t.Error("not sorted by in_state_seconds, downwards")
	}
	if v := read[idsView](r, "ids?peer=127.0.0.1"); v.Matched != 2 {
		t.Errorf("by peer: %+v", v)
	}
}

// TestFieldsSort: every field of a row can be sorted by, and nothing else.
func TestFieldsSort(t *testing.T) {
	names := columnNames(reflect.TypeFor[idRow]())
	if len(names) != len(keys)+1 {
		t.Errorf("%d fields, %d keys and that of trouble", len(names), len(keys))
	}
	for _, name := range names {
		if (*snapshot)(nil).sortKey(name) == nil {
			t.Errorf("nothing sorts by %s", name)
		}
	}
}

// TestHeaders: no answer may be framed, sniffed or cached, and no page runs scripts of others.
func TestHeaders(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	for _, path := range []string{"", "page.js", "flight.js", "actions.js", "page.css", "states.svg", "ids", "flight", "actions", "nowhere", "ids?page=x"} {
		_, h, _ := r.get(path, "Accept", "text/html")
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Cache-Control") == "" {
			t.Errorf("%q: %v", path, h)
		}
	}
	_, h, body := r.get("", "Accept", "text/html,*/*")
	if strings.Contains(body, "<script>") || strings.Contains(body, "style=") || strings.Contains(body, " on") && strings.Contains(body, "onclick") {
		t.Error("the page has a script or a style inside")
	}
	if status, _, _ := r.get("", "Accept", "text/html", "If-None-Match", h.Get("ETag")); status != http.StatusNotModified {
		t.Errorf("what has not changed: %d", status)
	}
	for _, file := range []string{"page.html", "page.js", "flight.js", "actions.js", "page.css"} {
		data, err := assets.ReadFile("assets/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, no := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://", "//cdn"} {
			if strings.Contains(string(data), no) {
				t.Errorf("%s has %s", file, no)
			}
		}
	}
}

// TestConfig: an impossible configuration is refused when the page is made.
func TestConfig(t *testing.T) {
	none := func() []struct{} { return nil }
	for name, cfg := range map[string]Config{
		"no slash at the end":       {Path: "/debug"},
		"no slash at the beginning": {Path: "debug/"},
		"a pattern":                 {Path: "/{x}/"},
		"a short token":             {Actions: &Actions{Token: "short"}},
		"no token":                  {Actions: &Actions{}},
		"a section without a name":  {Sections: []Section{Rows("", "x", none)}},
		"a section's wild name":     {Sections: []Section{Rows("../x", "x", none)}},
		"two sections":              {Sections: []Section{Rows("x", "x", none), Rows("x", "y", none)}},
	} {
		if _, err := New(nil, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	p, err := New(nil, Config{Path: "/x/", Viewers: -1, Interval: -1})
	if err != nil || p.cfg.Viewers != defaultViewers || p.cfg.Interval != minInterval {
		t.Errorf("%+v, %v", p.cfg, err)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/x/page.js", nil))
	if w.Code != http.StatusOK {
		t.Errorf("at another path: %d", w.Code)
	}
}
