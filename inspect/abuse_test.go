package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// dial returns a connection to the page's server, for requests by hand.
func (r *rig) dial() (net.Conn, *bufio.Reader) {
	r.Helper()
	conn, err := net.Dial("tcp", strings.Split(r.url, "/")[2])
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testPatience)); err != nil {
		r.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// exchange sends a request and returns its answer, on a connection that both keep.
func (r *rig) exchange(conn net.Conn, in *bufio.Reader, method, path string, header ...string) (status int, body string) {
	r.Helper()
	fmt.Fprintf(conn, "%s %s%s HTTP/1.1\r\nHost: localhost\r\n", method, r.page.cfg.Path, path)
	for i := 0; i+1 < len(header); i += 2 {
		fmt.Fprintf(conn, "%s: %s\r\n", header[i], header[i+1])
	}
	fmt.Fprint(conn, "\r\n")
	resp, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		r.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, string(text)
}

// TestTooManyRequests: a request waits while others occupy all places, and is then refused. A
// viewer stays.
func TestTooManyRequests(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	for name, places := range map[string]chan struct{}{"answers": r.page.bounds.answers, "making": r.page.bounds.making} {
		for range cap(places) {
			places <- struct{}{}
		}
		for _, path := range []string{"ids", "states.svg"} {
			if status, _, body := r.get(path); status != http.StatusServiceUnavailable || body != "too many requests\n" {
				t.Errorf("%s, %s: %d %s", name, path, status, body)
			}
		}
		if status, _, _ := r.get("page.js"); status != http.StatusOK {
			t.Errorf("%s: the script: %d", name, status)
		}
		next, stop := r.watch("view=ids")
		if event, data := next(); (event == "failure") != (name == "making") {
			t.Errorf("%s: %s %s", name, event, data)
		}
		for range cap(places) { // No more: the viewer takes a place immediately, and frees it.
			<-places
		}
		event, _ := next()
		for event == "failure" { // before the places were free
			event, _ = next()
		}
		if event != "news" {
			t.Errorf("%s, after that: %s", name, event)
		}
		stop()
	}
}

// TestRequestsThatAreNotRead: clients that do not read answers cost a few answers, for seconds.
func TestRequestsThatAreNotRead(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	r.idle(1000)
	for range 2 * mostAnswers {
		conn, _ := r.dial()
		if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			fmt.Fprintf(conn, "GET %sids?size=500 HTTP/1.1\r\nHost: localhost\r\n\r\n", r.page.cfg.Path)
		}
	}
	answers := r.page.bounds.answers
	r.until("no place is left", func() bool { return len(answers) == cap(answers) })
	r.until("they are given up", func() bool { return len(answers) == 0 })
	if status, _, _ := r.get("ids"); status != http.StatusOK {
		t.Errorf("after that: %d", status)
	}
}

// TestHead: HEAD returns headers, and takes no viewer's place.
func TestHead(t *testing.T) {
	r := newRig(t, quick, rdma.Config{})
	for _, path := range []string{"", "ids", "page.js", "states.svg", "events?view=ids"} {
		conn, in := r.dial()
		for range 2 {
			if status, body := r.exchange(conn, in, "HEAD", path); status != 200 || body != "" {
				t.Errorf("%q: %d %q", path, status, body)
			}
		}
	}
	r.until("no viewers", func() bool { return r.page.viewers.Load() == 0 })
}

// TestNoNumbers: a value that is no number in JSON is a text.
func TestNoNumbers(t *testing.T) {
	type row struct {
		A float64
		B float32
		C plain
		D uint64
	}
	r := newRig(t, Config{Interval: minInterval, Sections: []Section{Rows("n", "", func() []row {
		return []row{{math.NaN(), float32(math.Inf(1)), 1, math.MaxUint64}, {math.Inf(-1), 1, plain(math.NaN()), 0}}
	})}}, rdma.Config{})
	v := read[sectionView](r, "sections/n")
	if got := fmt.Sprint(v.Rows[0]["a"], v.Rows[0]["b"], v.Rows[0]["c"], v.Rows[1]["a"], v.Rows[1]["c"]); got != "NaN+Inf1-InfNaN" {
		t.Error(got)
	}
	next, stop := r.watch("view=section&name=n")
	defer stop()
	if name, data := next(); name != "news" {
		t.Errorf("%q %q", name, data)
	}
}

// TestErrorsAreText: characters of an error that a terminal would interpret are escaped.
func TestErrorsAreText(t *testing.T) {
	r := newRig(t, Config{Interval: minInterval, Actions: &Actions{Token: token, Capture: func(io.Writer, Chosen) (Capture, error) {
		return nil, errors.New("a\x1b[2Jb\u202e\nc")
	}}}, rdma.Config{})
	if status, answer := r.post("actions/capture", `{"peer":"::1"}`, with...); status != http.StatusConflict || answer != `a\x1b[2Jb\u202e\nc`+"\n" {
		t.Errorf("%d %q", status, answer)
	}
}

// plain is a number whose MarshalJSON must not be called.
type plain float64

func (plain) MarshalJSON() ([]byte, error) { panic("asked by the page's goroutine") }

// TestPaths: a path that no request can have is an error.
func TestPaths(t *testing.T) {
	for _, path := range []string{"//", "/a//b/", "/a/../b/", "/./", "/a b/", "/a\tb/", "/a{x}/", "a/", "/a"} {
		if page, err := New(nil, Config{Path: path}); err == nil || page != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}
