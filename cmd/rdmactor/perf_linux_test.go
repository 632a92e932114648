package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/perf"
)

// servePerf starts a perf server on a free port of loopback.
func servePerf(t *testing.T, args ...string) *running {
	t.Helper()
	return listen(t, append([]string{"perf", "-s", "-a", "127.0.0.1", "-p", "0", "--device", "iwarp"}, args...)...)
}

func perfClient(t *testing.T, port string, args ...string) *running {
	t.Helper()
	return begin(t, nil, append([]string{"perf", "-c", "-a", "127.0.0.1", "-p", port, "--device", "iwarp", "--warmup", "0s", "--count", "20"}, args...)...)
}

// TestPerf: one server, clients that request tables, and a document.
func TestPerf(t *testing.T) {
	dir := t.TempDir()
	srv := servePerf(t)

	cl := perfClient(t, srv.port, "--op", "send,write,read", "--sizes", "1:4,4K")
	cl.mustEnd()
	for _, want := range []string{
		"iwarp, verbs level (no actors), client waits: block, no CRC asked for, 127.0.0.1 to 127.0.0.1:" + srv.port,
		"send latency, half round trip, in us\n    bytes     count ", "write latency, half round trip", "read latency, round trip",
		"send bandwidth\n", "write bandwidth\n", "read bandwidth\n", "\n        2        20 ", "\n     4096       256 ",
	} {
		if !strings.Contains(cl.out.String(), want) {
			t.Errorf("it prints\n%s\nwant %q in it", cl.out, want)
		}
	}

	file := filepath.Join(dir, "r.json")
	perfClient(t, srv.port, "--op", "send,read", "--size", "64", "--json", file, "--wait", "spin").mustEnd()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	checkReport(t, b, "spin", 4)

	cl = perfClient(t, srv.port, "--json", "-", "--latency", "--crc")
	cl.mustEnd()
	checkReport(t, cl.out.Bytes(), "block", 1)

	srv.cancel()
	srv.mustEnd()
	if want := "served 29 tests\n"; srv.out.String() != want {
		t.Errorf("the server says %q, want %q", srv.out, want)
	}
	if srv.errs.Len() > 0 {
		t.Errorf("the server complains although nothing was wrong: %s", srv.errs)
	}
}

func checkReport(t *testing.T, b []byte, wait string, results int) {
	t.Helper()
	var doc perf.Report
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatalf("%q is no document: %v", b, err)
	}
	if doc.Device != "iwarp" || doc.Level != "verbs" || doc.Wait != wait || doc.Error != "" || len(doc.Results) != results {
		t.Errorf("%+v: want %d results over iwarp at verbs level, with --wait %s", doc, results, wait)
	}
	for _, r := range doc.Results {
		if r.Count < 20 || (r.Kind == perf.Latency) != (r.Times != nil) || (r.Kind == perf.Bandwidth) != (r.Rate != nil) {
			t.Errorf("%+v is no result of 20 messages", r)
		}
	}
}

// TestPerfFails: the document has the reason why there are no results, and standard error has the
// error.
func TestPerfFails(t *testing.T) {
	cl := perfClient(t, "1", "--json", "-")
	cl.mustFail("perf: latency of send, 64 bytes: connecting", "ECONNREFUSED")
	var doc perf.Report
	if err := json.Unmarshal(cl.out.Bytes(), &doc); err != nil || !strings.Contains(doc.Error, "ECONNREFUSED") || doc.Results == nil {
		t.Errorf("the document is %q (%v), want the error in it and no results", cl.out, err)
	}
	begin(t, nil, "perf", "-s", "-a", "203.0.113.1").mustFail("bind_addr", "EADDRNOTAVAIL")
	srv := servePerf(t)
	perfClient(t, srv.port, "--json", "/nowhere/r.json").mustFail("/nowhere/r.json")
	srv.cancel()
	srv.mustEnd()
}

// TestPerfInterrupted: Ctrl-C ends a measurement as it does ping(8), and prints the results so far.
func TestPerfInterrupted(t *testing.T) {
	srv := servePerf(t)
	args := []string{
		"perf", "-c", "-a", "127.0.0.1:" + srv.port, "--device", "iwarp", "--latency", "--json", "-", "--op", "send,read", "--duration", "1h",
	}
	warming := begin(t, nil, append(args, "--warmup", "1h")...)
	warming.cancel()
	if err := warming.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted before anything was measured: %v", err)
	}

	file := filepath.Join(t.TempDir(), "r.json")
	from, to := io.Pipe()
	cl := begin(t, to, "perf", "-c", "-a", "127.0.0.1:"+srv.port, "--device", "iwarp", "--latency", "--sizes", "1:512K",
		"--warmup", "0s", "--duration", "100ms", "--json", file)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		// the result of the first size
		if strings.HasPrefix(strings.TrimSpace(lines.Text()), "1 ") {
			break
		}
	}
	cl.cancel()
	go func() { _, _ = io.Copy(io.Discard, from) }()
	cl.mustEnd()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc perf.Report
	if err := json.Unmarshal(b, &doc); err != nil || !doc.Interrupted || doc.Error != "" || len(doc.Results) == 0 || len(doc.Results) == 20 {
		t.Errorf("the document is %s (%v), want what was measured until Ctrl-C", b, err)
	}
	if !strings.Contains(cl.errs.String(), "interrupted") {
		t.Errorf("it does not say that it was interrupted: %s", cl.errs)
	}
	srv.cancel()
	srv.mustEnd()
}

// TestPerfSizes: the words of --sizes.
func TestPerfSizes(t *testing.T) {
	for words, want := range map[string][]int{"64": {64}, "1,4K,1M": {1, 4096, 1 << 20}, "1:8": {1, 2, 4, 8}, "3:13,1K:2K": {3, 6, 12, 1024, 2048}} {
		got, err := parseSizes(words)
		if err != nil || len(got) != len(want) {
			t.Errorf("%q: %v, %v; want %v", words, got, err, want)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q: %v, want %v", words, got, want)
			}
		}
	}
}
