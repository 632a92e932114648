package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/timing"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
)

// timeIt runs a time command to its end and reads its document.
func timeIt(t *testing.T, args ...string) timing.Report {
	t.Helper()
	r := begin(t, nil, append([]string{"time", "--json", "--device", "iwarp"}, args...)...)
	r.mustEnd()
	var doc timing.Report
	if err := json.Unmarshal(r.out.Bytes(), &doc); err != nil {
		t.Fatalf("%q prints %q: %v", r.args, r.out, err)
	}
	return doc
}

// checkRun checks a run without failures.
func checkRun(t *testing.T, r timing.Run, want int, connect bool) {
	t.Helper()
	rows := []string{"create id", "bind addr", "destroy"}
	if connect {
		rows = []string{"create id", "bind addr", "resolve addr", "resolve route", "create qp", "connect", "disconnect", "destroy"}
	}
	var got []string
	for _, s := range r.Steps {
		got = append(got, s.Name)
		if s.MinUS <= 0 || s.P50US < s.MinUS || s.P99US < s.P50US || s.MaxMS*1000 < s.P99US-0.001 {
			t.Errorf("%d: %s took %+v, which is no distribution", want, s.Name, s)
		}
		if inside := s.Name == "create qp"; inside != (s.Inside == "connect") {
			t.Errorf("%s is part of %q", s.Name, s.Inside)
		}
	}
	if r.IDs != want || r.Connect != connect || r.Errors != 0 || !slices.Equal(got, rows) {
		t.Errorf("%d identifiers, connect %t, %d errors, rows %q; want %d, %t, 0, %q", r.IDs, r.Connect, r.Errors, got, want, connect, rows)
	}
}

// TestTimeBoth: both sides in one command.
func TestTimeBoth(t *testing.T) {
	doc := timeIt(t, "-n", "1,50", "--ids", "200")
	if len(doc.Runs) != 3 || doc.Errors != 0 || doc.Served == nil || *doc.Served != 51 || doc.Device != "iwarp" || doc.Local != "127.0.0.1" {
		t.Fatalf("%+v; want three runs over iwarp, 51 connections and no errors", doc)
	}
	checkRun(t, doc.Runs[0], 1, true)
	checkRun(t, doc.Runs[1], 50, true)
	checkRun(t, doc.Runs[2], 200, false)
}

// listenTime starts a server of time on 127.0.0.1.
func listenTime(t *testing.T) *running {
	t.Helper()
	before := inUse()
	srv := listen(t, "time", "-s", "-a", "127.0.0.1", "-p", "0", "--device", "iwarp")
	// its loop starts when it is listening, and is not a leak of the clients
	for end := time.Now().Add(time.Second); inUse().goroutines == before.goroutines && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // bounded: a goroutine counted in before may have ended
	}
	return srv
}

// TestTimeApart: clients of a server in another process, one after the other.
func TestTimeApart(t *testing.T) {
	srv := listenTime(t)
	for range 2 {
		doc := timeIt(t, "-c", "-a", "127.0.0.1", "-p", srv.port, "-I", "127.0.0.3", "-n", "20")
		if doc.Served != nil || doc.Local != "127.0.0.3" || len(doc.Runs) != 1 {
			t.Fatalf("%+v; want one run from 127.0.0.3, without a server's count", doc)
		}
		checkRun(t, doc.Runs[0], 20, true)
	}
	srv.cancel()
	srv.mustEnd()
	if want := "served 40 connections, 0 errors\n"; srv.out.String() != want {
		t.Errorf("the server says %q, want %q", srv.out, want)
	}
}

// TestTimeTable: people get tables, and a line about a choice.
func TestTimeTable(t *testing.T) {
	r := begin(t, nil, "time", "-a", "127.0.0.1", "-n", "2", "--ids", "3")
	r.mustEnd()
	for _, want := range []string{
		"iwarp, level actor, 127.0.0.1 to 127.0.0.1:", "2 connections\nstep              total ms     max ms     min us  us / conn\ncreate id    : ",
		"(create qp is part of connect)\nerrors: 0\n", "3 identifiers, not connected\n",
	} {
		if !strings.Contains(r.out.String(), want) {
			t.Errorf("it prints %q, want %q in it", r.out, want)
		}
	}
	if want := "device: iwarp (no RDMA device has 127.0.0.1)\n"; r.errs.String() != want {
		t.Errorf("standard error has %q, want %q", r.errs, want)
	}
}

// TestTimeRaw reads a client's MPA Request (RFC 6581, 9): a C server must find nothing of this
// project's protocol in it.
func TestTimeRaw(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	r := begin(t, nil, "time", "-c", "-a", "127.0.0.1", "-p", port, "-n", "1", "--timeout", "2m", "--device", "iwarp")
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	request := make([]byte, 20)
	if _, err := io.ReadFull(c, request); err != nil {
		t.Fatalf("no Request: %v", err)
	}
	const depths = 4 // IRD and ORD
	if n := binary.BigEndian.Uint16(request[18:]); n != depths {
		t.Errorf("the Request %x has %d bytes of private data, want %d", request, n, depths)
	}
	c.Close()
	if c, err = l.Accept(); err == nil { // again, with revision 1
		c.Close()
	}
	l.Close()
	r.mustFail("1 error, the first: connect, identifier 1 of 1")
}

func TestTimeFails(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, port, _ := net.SplitHostPort(silent.Addr().String())
	r := begin(t, nil, "time", "-c", "-a", "127.0.0.1", "-p", "1", "-n", "3", "--device", "iwarp")
	r.mustFail("time: 3 errors, the first: connect, identifier ", "of 3", "ECONNREFUSED")
	if !strings.Contains(r.out.String(), "errors: 3\n") {
		t.Errorf("the table does not show the errors: %s", r.out)
	}
	r = begin(t, nil, "time", "-c", "-a", "127.0.0.1", "-p", port, "-n", "3", "--timeout", "300ms", "--device", "iwarp")
	r.mustFail("3 errors, the first: connect, identifier ")
	r = begin(t, nil, "time", "-c", "-a", "127.0.0.1", "-p", port, "-n", "3", "--device", "iwarp")
	r.cancel()
	r.mustFail("time: interrupted")
	begin(t, nil, "time", "-s", "-a", "203.0.113.1", "--device", "iwarp").mustFail("bind_addr", "EADDRNOTAVAIL")
}

// TestHeld: resources that are not freed are detected.
func TestHeld(t *testing.T) {
	before := inUse()
	for range 50 { // resources of another test may take a moment to be freed
		time.Sleep(2 * time.Millisecond)
		now := inUse()
		before = resources{min(before.goroutines, now.goroutines), min(before.fds, now.fds)}
	}
	ch, err := cmid.OpenChannel(iwarp.New())
	if err != nil {
		t.Fatal(err)
	}
	id, err := ch.CreateID(cmid.PortSpaceTCP)
	if err == nil {
		err = id.BindAddr(cmid.MustAddr("127.0.0.1:0"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := before.checkLeaks(); err == nil || !strings.Contains(err.Error(), "0 goroutines, 1 sockets") {
		t.Errorf("a bound identifier: %v, want one socket not given back", err)
	}
	if err := ch.Close(); err != nil {
		t.Fatal(err)
	}
	if err := before.checkLeaks(); err != nil {
		t.Errorf("after Close: %v", err)
	}
}

// TestRoundTimes: a client reports the durations of its rounds on standard error; standard output
// stays rping's.
func TestRoundTimes(t *testing.T) {
	srv := serve(t)
	cl := dial(t, srv.port, "-C", "3", "-I", "127.0.0.2")
	cl.mustEnd()
	srv.mustEnd()
	var least, avg, most float64
	if _, err := fmt.Sscanf(cl.errs.String(), "3 rounds of 64 bytes, min/avg/max = %f/%f/%f ms\n", &least, &avg, &most); err != nil ||
		least <= 0 || avg < least || most < avg {
		t.Errorf("standard error has %q (%v), want three rounds' times", cl.errs, err)
	}
	if cl.out.Len() > 0 {
		t.Errorf("standard output has %q, rping prints nothing", cl.out)
	}
	r := roundTimes{}
	for _, d := range []time.Duration{3, 1, 2} {
		r.add(d * time.Millisecond)
	}
	if want := "min/avg/max = 1.000/2.000/3.000 ms"; r.String() != want {
		t.Errorf("rounds of 1, 2 and 3 ms: %v, want %s", r, want)
	}
}
