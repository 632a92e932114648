package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	out := "\x16=== RUN   TestConformance\n" +
		"\x16=== RUN   TestConformance/bind_addr\n" +
		"\x16=== RUN   TestConformance/bind_addr/port_0\n" +
		"\x16=== RUN   TestConformance/bind_addr/plain\n" +
		"\x16=== NAME  TestConformance/bind_addr/plain\n" +
		"    rig.go:164: every interface here: has a device\n" +
		"\x16        --- PASS: TestConformance/bind_addr/port_0 (0.00s)\n" +
		"\x16        --- SKIP: TestConformance/bind_addr/plain (0.00s)\n" +
		"\x16    --- PASS: TestConformance/bind_addr (0.00s)\n" +
		"\x16=== RUN   TestConformance/data\n" +
		"\x16=== RUN   TestConformance/data/send\n" +
		"    data.go:1: it is \x1b[31mred\n" +
		"    data.go:2: PASS is no result here\n" +
		"\x16        --- FAIL: TestConformance/data/send (0.00s)\n" +
		"\x16    --- FAIL: TestConformance/data (0.00s)\n" +
		"\x16=== NAME  TestConformance\n" +
		"    run.go:9: a difference does not show\n" +
		"\x16--- FAIL: TestConformance (0.04s)\n" +
		"\x16FAIL\n"
	r, err := readResults(strings.NewReader(out), nil)
	if err != nil || r.allPassed() {
		t.Fatalf("%v, good: %v", err, r.allPassed())
	}
	var b bytes.Buffer
	r.writeTable(&b, conformanceSuite)
	for _, want := range []string{
		"Conformance     passed  failed  skipped  why skipped\n",
		"  bind addr     1       0       1        every interface here: has a device\n",
		"  data          0       1       0\n",
		"  (as a whole)  0       1       0\n",
		"FAIL TestConformance/data/send\n    data.go:1: it is \\x1b[31mred\n",
		"FAIL TestConformance\n    run.go:9: a difference does not show\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestAllIsWell: passed and skipped tests are good, and none at all is not.
func TestAllIsWell(t *testing.T) {
	if r, err := readResults(strings.NewReader("=== RUN   TestLoopback\n--- PASS: TestLoopback (0.00s)\nPASS\n"), nil); err != nil || !r.allPassed() || len(r.loose) > 0 {
		t.Errorf("%v, %+v", err, r)
	}
	if r, err := readResults(strings.NewReader("testing: warning: no tests to run\nPASS\n"), nil); err != nil || r.allPassed() {
		t.Errorf("nothing ran: %v, %+v", err, r)
	}
}

// TestCrash: tests that were running when their process died count, and its last output is kept.
func TestCrash(t *testing.T) {
	out := "=== RUN   TestLoopback\n=== RUN   TestLoopback/echo\n--- PASS: TestLoopback/echo (0.00s)\n=== RUN   TestLoopback/atomics\n" +
		"fatal error: unexpected signal\n[signal SIGSEGV]\n" + strings.Repeat("goroutine\n", 10*mostLines)
	r, err := readResults(strings.NewReader(out), nil)
	if err != nil || r.allPassed() {
		t.Fatalf("%v, good: %v", err, r.allPassed())
	}
	var b bytes.Buffer
	r.writeTable(&b, loopbackSuite)
	s := b.String()
	if !strings.Contains(s, "(1 without an end)") || !strings.Contains(s, "SIGSEGV") || strings.Count(s, "\n") > 2*mostLines {
		t.Errorf("%s", s)
	}
	if _, err := readResults(strings.NewReader(strings.Repeat("x", 2*mostLine)), nil); err == nil {
		t.Error("a line without an end is read whole")
	}
}

// TestEcho: the user of -v sees the output as it is printed.
func TestEcho(t *testing.T) {
	var b bytes.Buffer
	if _, err := readResults(strings.NewReader("\x16=== RUN   TestX\n    \x1b]0;title\x07\n"), &b); err != nil || b.String() != "=== RUN   TestX\n    \\x1b]0;title\\a\n" {
		t.Errorf("%v: %q", err, b.String())
	}
}
