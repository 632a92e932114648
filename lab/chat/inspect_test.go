package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/proctest"
)

// pageOf returns the URL of a process's page.
func pageOf(p *proctest.Process) string {
	_, url, _ := strings.Cut(p.Want("-- the live page is at ", "it has a page"), " at ")
	return url
}

// table is a section or a list of the page.
type table struct {
	Rows []map[string]any `json:"rows"`
}

// find returns the row that has these values.
func (l table) find(want map[string]any) map[string]any {
	for _, row := range l.Rows {
		same := true
		for name, value := range want {
			same = same && row[name] == value
		}
		if same {
			return row
		}
	}
	return nil
}

func read(t *testing.T, url string) (l table) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&l); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, resp.Status, err)
	}
	return l
}

// await polls until a row has these values.
func await(t *testing.T, url string, want map[string]any) map[string]any {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		l := read(t, url)
		if row := l.find(want); row != nil {
			return row
		}
		if time.Now().After(end) {
			t.Fatalf("%s never has %v: %v", url, want, l.Rows)
		}
	}
}

// TestInspect: the page of a host lists its people, each with its identifier, and its rooms. The
// page of a client lists neither, and ends with its program.
func TestInspect(t *testing.T) {
	addr := freeAddr(t)
	host := start(t, "host", "serve", "--addr", addr, "--inspect", "127.0.0.1:0")
	url := pageOf(host)
	ann := start(t, "ann", "join", addr, "--nick", "ann", "--room", "cellar", "--inspect", "127.0.0.1:0")
	ofAnn := pageOf(ann)
	ann.Want("you are ann", "the server welcomes")
	bob := start(t, "bob", "join", addr, "--nick", "bob")
	bob.Want("you are bob", "the server welcomes")
	bob.Say("hello")
	who := await(t, url+"sections/people", map[string]any{"nick": "ann", "room": "cellar", "lines_waiting": 0.})
	row := await(t, url+"ids", map[string]any{"id": who["identifier"]})
	if row["state"] != "connected" || row["peer"] != who["peer"] {
		t.Errorf("%v is %v", who, row)
	}
	await(t, url+"sections/rooms", map[string]any{"room": "cellar", "members": 1., "who": "ann"})
	await(t, url+"sections/rooms", map[string]any{"room": "lobby", "members": 1., "who": "bob"})
	if rows := read(t, ofAnn+"ids").Rows; len(rows) != 1 || rows[0]["peer"] != addr {
		t.Errorf("at ann there is %v", rows)
	}

	ann.CloseInput()
	ann.Exit(0, "the end of standard input")
	if _, err := http.Get(ofAnn); err == nil {
		t.Error("her page is still there")
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		rows := read(t, url+"sections/people").Rows
		if len(rows) == 1 && rows[0]["nick"] == "bob" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("long after she has gone there is %v", rows)
		}
	}
	host.Signal(unix.SIGINT)
	host.Exit(0, "Ctrl-C")
}

// TestInspectTaken: a page that cannot be served is an error, and nothing is hosted.
func TestInspectTaken(t *testing.T) {
	host := start(t, "host", "serve", "--addr", freeAddr(t), "--inspect", "127.0.0.1:0")
	taken := strings.TrimSuffix(strings.TrimPrefix(pageOf(host), "http://"), "/debug/rdma/")
	second := start(t, "second", "serve", "--addr", freeAddr(t), "--inspect", taken)
	second.Want("--inspect: listen tcp "+taken, "the flag and why")
	second.Exit(1, "an error")
}
