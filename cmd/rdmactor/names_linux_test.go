package main

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/perf"
)

// dual skips a test on a machine without IPv6.
func dual(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("the machine has no ::1")
	}
	l.Close()
}

// TestEachAddress: a client tries each address of a name. The empty name resolves to this host's
// ::1 and 127.0.0.1, of which the server here has only the second.
func TestEachAddress(t *testing.T) {
	dual(t)
	t.Run("ping", func(t *testing.T) {
		srv := serve(t)
		r := begin(t, nil, "ping", "-c", "-a", ":"+srv.port, "-C", "1", "-v")
		r.mustEnd()
		srv.mustEnd()
		if !strings.Contains(r.errs.String(), "rdmactor: ping: [::1]:"+srv.port+": ") || !strings.Contains(r.errs.String(), "trying 127.0.0.1:"+srv.port) {
			t.Errorf("standard error has %q, want what became of ::1, and what it tries next", r.errs)
		}
	})
	t.Run("perf", func(t *testing.T) {
		srv := servePerf(t)
		r := begin(t, nil, "perf", "-c", "-a", ":"+srv.port, "--latency", "--count", "20", "--json", "-")
		r.mustEnd()
		var doc perf.Report
		if err := json.Unmarshal(r.out.Bytes(), &doc); err != nil || len(doc.Results) == 0 || doc.Server != "127.0.0.1:"+srv.port {
			t.Errorf("%v: %q, want results over 127.0.0.1", err, r.out)
		}
		srv.cancel()
		srv.mustEnd()
	})
	t.Run("time", func(t *testing.T) {
		srv := listenTime(t)
		doc := timeIt(t, "-c", "-a", ":"+srv.port, "-n", "3")
		checkRun(t, doc.Runs[0], 3, true)
		if doc.Errors != 0 || doc.Server != "127.0.0.1:"+srv.port {
			t.Errorf("%+v; want no errors, over 127.0.0.1", doc)
		}
		srv.cancel()
		srv.mustEnd()
	})
}

// TestNoAddress: the error is that of the last address, and the client has reported the errors of
// the others.
func TestNoAddress(t *testing.T) {
	dual(t)
	for _, args := range [][]string{{"ping"}, {"perf", "--latency", "--count", "1"}, {"time", "-n", "3"}} {
		r := begin(t, nil, append(append([]string{args[0], "-c", "-a", ":1"}, args[1:]...), "--device", "iwarp")...)
		r.mustFail("ECONNREFUSED", "127.0.0.1:1")
		if !strings.Contains(r.errs.String(), "[::1]:1: ") {
			t.Errorf("%s: standard error has %q, want what became of ::1", args, r.errs)
		}
		if strings.Contains(r.out.String(), "step ") {
			t.Errorf("%s prints times of connections that have all failed: %q", args, r.out)
		}
	}
}

// TestServesBothFamilies: a server without an address serves IPv6 as well.
func TestServesBothFamilies(t *testing.T) {
	dual(t)
	srv := listen(t, "ping", "-s", "-P", "-p", "0", "--device", "iwarp")
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		begin(t, nil, "ping", "-c", "-a", host+":"+srv.port, "-C", "1", "--device", "iwarp").mustEnd()
	}
	srv.cancel()
	srv.mustEnd()
}
