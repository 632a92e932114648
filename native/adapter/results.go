package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rdmactor/rdmactor/internal/plain"
)

// The suites, by the names of their tests.
const (
	conformanceSuite = "TestConformance"
	loopbackSuite    = "TestLoopback"
)

const (
	mostLines = 40      // kept lines of a test's output
	mostLine  = 1 << 20 // bytes
)

// verdict is a test's outcome.
type verdict string

const (
	passed  verdict = "PASS"
	failed  verdict = "FAIL"
	skipped verdict = "SKIP"
)

// test is a test as printed by its process.
type test struct {
	name   string // "TestConformance/bind_addr/port 0"
	result verdict
	lines  []string // the first lines of its output
}

// results are the tests of a process.
type results struct {
	tests map[string]*test
	order []string
	loose []string // lines outside of tests: a crash
}

var (
	begun = regexp.MustCompile(`^\x16?=== (?:RUN|NAME|CONT|PAUSE) +(\S+)$`)
	ended = regexp.MustCompile(`^\x16? *--- (PASS|FAIL|SKIP): (\S+) \(`)
)

// readResults reads the output of go test -v=test2json, and copies it to echo, unless that is nil.
func readResults(from io.Reader, echo io.Writer) (*results, error) {
	r := &results{tests: make(map[string]*test)}
	var now *test
	s := bufio.NewScanner(from)
	s.Buffer(nil, mostLine)
	for s.Scan() {
		line := s.Text()
		if echo != nil {
			fmt.Fprintln(echo, plain.Text(strings.TrimPrefix(line, "\x16")))
		}
		if m := begun.FindStringSubmatch(line); m != nil {
			now = r.findOrAddTest(m[1])
			continue
		}
		if m := ended.FindStringSubmatch(line); m != nil {
			now = r.findOrAddTest(m[2])
			now.result = verdict(m[1])
			continue
		}
		if now == nil || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || len(r.loose) > 0 {
			r.loose = appendLine(r.loose, line)
			continue
		}
		now.lines = appendLine(now.lines, line)
	}
	return r, s.Err()
}

func appendLine(lines []string, line string) []string {
	if line = strings.TrimPrefix(line, "\x16"); len(lines) < mostLines && line != "" && line != "PASS" && line != "FAIL" {
		lines = append(lines, line)
	}
	return lines
}

func (r *results) findOrAddTest(name string) *test {
	if r.tests[name] == nil {
		r.tests[name] = &test{name: name}
		r.order = append(r.order, name)
	}
	return r.tests[name]
}

// isLeaf reports whether a test has no subtests.
func (r *results) isLeaf(name string) bool {
	return !slices.ContainsFunc(r.order, func(other string) bool { return strings.HasPrefix(other, name+"/") })
}

// groupOf returns the part of a suite that a test belongs to.
func groupOf(name string) string {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 2 {
		return "(as a whole)"
	}
	return strings.ReplaceAll(parts[1], "_", " ")
}

// tally is a row of the table.
type tally struct {
	group                              string
	passed, failed, skipped, undecided int
	reasons                            []string // reasons of the skips
}

// tallyTests counts the tests without subtests, and those with a failure outside of their subtests.
func (r *results) tallyTests() (all []*tally) {
	rows := make(map[string]*tally)
	for _, name := range r.order {
		t := r.tests[name]
		ownFailure := t.result == failed && len(t.lines) > 0
		if !r.isLeaf(name) && !ownFailure && t.result != "" {
			continue
		}
		g := groupOf(name)
		row := rows[g]
		if row == nil {
			row = &tally{group: g}
			rows[g] = row
			all = append(all, row)
		}
		switch t.result {
		case passed:
			row.passed++
		case failed:
			row.failed++
		case skipped:
			row.skipped++
			if why := skipReason(t); !slices.Contains(row.reasons, why) {
				row.reasons = append(row.reasons, why)
			}
		default:
			row.undecided++ // its process has ended before
		}
	}
	return all
}

// skipReason returns why a test was skipped, without its file and line.
func skipReason(t *test) string {
	if len(t.lines) == 0 {
		return "no reason given"
	}
	why := strings.TrimSpace(t.lines[len(t.lines)-1])
	if _, text, ok := strings.Cut(why, ".go:"); ok {
		if _, text, ok = strings.Cut(text, ": "); ok {
			why = text
		}
	}
	return why
}

// writeTable writes a suite's table, and the output of failed tests.
func (r *results) writeTable(w io.Writer, suite string) {
	var table bytes.Buffer
	out := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintf(out, "%s\tpassed\tfailed\tskipped\twhy skipped\n", strings.TrimPrefix(suite, "Test"))
	for _, row := range r.tallyTests() {
		lost := ""
		if row.undecided > 0 {
			lost = fmt.Sprintf(" (%d without an end)", row.undecided)
		}
		fmt.Fprintf(out, "  %s\t%d\t%d%s\t%d\t%s\n", plain.Text(row.group), row.passed, row.failed, lost, row.skipped, plain.Text(strings.Join(row.reasons, "; ")))
	}
	_ = out.Flush() // to memory
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	for _, name := range r.order {
		t := r.tests[name]
		if t.result == passed || t.result == skipped || len(t.lines) == 0 {
			continue
		}
		fmt.Fprintf(w, "FAIL %s\n", plain.Text(name))
		for _, l := range t.lines {
			fmt.Fprintln(w, plain.Text(l))
		}
	}
	for _, l := range r.loose {
		fmt.Fprintln(w, plain.Text(l))
	}
}

// allPassed reports whether every test has ended and none has failed.
func (r *results) allPassed() bool {
	for _, t := range r.tests {
		if t.result != passed && t.result != skipped {
			return false
		}
	}
	return len(r.tests) > 0
}
