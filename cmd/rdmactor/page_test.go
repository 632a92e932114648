package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fakePage is a program's page with scripted answers.
type fakePage struct {
	*httptest.Server
	asked  atomic.Int64
	broken atomic.Bool // it does not answer
}

const (
	fakeRow = `{"id":%d,"pid":"id/%d","state":"connected","in_state_seconds":75.2,"peer":"10.0.0.1:5000%d","local":"10.0.0.2:7",` +
		`"device":"rxe0","loop":"loop-0","owner":"room/%d","sent_bytes":5120,"sent_messages":%d,"queued_messages":3,"memory_bytes":2048}`
	hostileRow = `{"id":0,"pid":"\u001b]0;title\u0007\u009b2J","state":"idle","owner":"\u202e"}`
)

func newFakePage(t *testing.T) *fakePage {
	t.Helper()
	p := new(fakePage)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/sections") {
			fmt.Fprint(w, `[{"name":"calls","title":"Calls"}]`)
			return
		}
		n := p.asked.Add(1)
		if p.broken.Load() {
			http.Error(w, "no answer yet \x1b[2J", http.StatusServiceUnavailable)
			return
		}
		stamp := time.Unix(n, 0).UTC().Format("2006-01-02T15:04:05.000Z")
		row := func(i int64) string { return fmt.Sprintf(fakeRow, i, i, i, i, 100*n) }
		switch path := strings.TrimPrefix(r.URL.Path, "/debug/rdma/"); {
		case path == "":
			fmt.Fprintf(w, `{"taken":%q,"go":"go1.26","goroutines":9,"interval_seconds":0.1,"total":3,"states":{"connected":2,"idle":1},`+
				`"loops":[{"name":"loop-0","identifiers":3,"busy_seconds":%d,"blocked_seconds":2.5,"blocked_by":"chat.room"}],"memory":[]}`, stamp, n/2)
		case path == "ids" && r.URL.Query().Get("q") == "room/2":
			fmt.Fprintf(w, `{"taken":%q,"total":3,"matched":1,"page":1,"pages":1,"rows":[%s]}`, stamp, row(2))
		case path == "ids":
			fmt.Fprintf(w, `{"taken":%q,"total":3,"matched":3,"page":1,"pages":1,"rows":[%s,%s,%s]}`, stamp, row(1), row(2), hostileRow)
		case path == "sections/calls":
			fmt.Fprintf(w, `{"taken":%q,"title":"Calls","total":1,"columns":["method","p50_seconds"],"rows":[{"method":"kv.Get","p50_seconds":0.1}]}`, stamp)
		case path == "ids/1":
			fmt.Fprintf(w, `{"taken":%q,"id":1,"state":"connected","meaning":"established","history":[{"state":"idle","for_seconds":0.01},`+
				`{"state":"connected","at_seconds":0.01,"for_seconds":75}]}`, stamp)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// output runs a command line.
func output(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	err = runCommand(t.Context(), args, &o, &e)
	return o.String(), e.String(), err
}

// TestIDs: the table and the JSON of a program's identifiers, without bytes that a terminal would
// interpret.
func TestIDs(t *testing.T) {
	p := newFakePage(t)
	const want = `ID  STATE      TROUBLE  FOR    DEVICE  LOCAL       PEER            LOOP    QUEUED  CREDITS  WAITS  SENT  RECEIVED  MEMORY  WAITING  PID
1   connected  -        1m15s  rxe0    10.0.0.2:7  10.0.0.1:50001  loop-0  3       0        0      100   0         2.0K    -        id/1
2   connected  -        1m15s  rxe0    10.0.0.2:7  10.0.0.1:50002  loop-0  3       0        0      100   0         2.0K    -        id/2
-   idle       -        0      -       -           -               -       0       0        0      0     0         0       -        \x1b]0;title\a\u009b2J
`
	out, errs, err := output(t, "ids", p.URL)
	if err != nil || errs != "" || out != want {
		t.Errorf("%v %q\n%s\nwant\n%s", err, errs, out, want)
	}
	out, _, err = output(t, "ids", "--json", p.URL, "--filter", "room/2")
	if err != nil || strings.Count(out, `"id":`) != 1 || !strings.Contains(out, `"owner": "room/2"`) {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = output(t, "ids", p.URL, "--json")
	if err != nil || !strings.Contains(out, `"pid": "\u001b]0;title\u0007\u009b2J"`) || !strings.Contains(out, `"owner": "\u202e"`) {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = output(t, "ids", p.URL, "--sort", "sent_bytes")
	if err != nil || !strings.Contains(out, "  SENT_BYTES\n") || strings.Count(out, "  5.0K\n") != 2 {
		t.Errorf("%v: the field that it is sorted by is not there:\n%s", err, out)
	}
	p.broken.Store(true)
	if _, _, err := output(t, "ids", p.URL); err == nil || !strings.Contains(err.Error(), `503, Service Unavailable: no answer yet \x1b[2J`) {
		t.Error(err)
	}
}

// TestTopOnce: a snapshot without a terminal.
func TestTopOnce(t *testing.T) {
	p := newFakePage(t)
	out, _, err := output(t, "top", "--once", p.URL)
	for _, want := range []string{
		"3 identifiers: connected 2, idle 1\n", "BLOCKED for 2.5s by chat.room, 100% busy", "3 of 3 identifiers, page 1 of 1, by trouble (descending)\n", "ID  STATE ",
		"1   connected  -         1m15s", "\n-   idle ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s%v", want, out, err)
		}
	}
	if strings.ContainsAny(out, "\x1b\x07\u009b\u202e") {
		t.Errorf("%q", out)
	}
	if out, _, err := output(t, "top", "--once", p.URL, "--sort", "unfreed_messages", "--desc"); err != nil || !strings.Contains(out, "UNFREED_MESSAGESv") {
		t.Errorf("%v: the field that it is sorted by is not there:\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runCommand(ctx, []string{"top", "--once", p.URL}, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
		t.Error("Ctrl-C does not end it")
	}
	p.Close()
	if _, _, err := output(t, "top", "--once", p.URL); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

// wait sleeps for a moment: a test has no other way to wait.
func (p *fakePage) wait() { time.Sleep(5 * time.Millisecond) }
