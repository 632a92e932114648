package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// suite is the compiled tests of a package.
type suite struct {
	pkg     pkg
	program string
	groups  []group // the quickest first
}

// group is some tests of a suite that share a process.
type group struct {
	tests   []string
	took    time.Duration // without a defect
	reaches map[int]bool  // numbers of defects
}

// groupSize is the number of tests in a group: with fewer, processes take most of the time.
const groupSize = 12

// openSuite compiles a package's tests with all defects and runs them without one. It returns the
// suite and the names of tests that failed.
func (m *mutator) openSuite(ctx context.Context, of pkg) (s *suite, failed []string, err error) {
	s = &suite{pkg: of, program: filepath.Join(m.tmp, strings.ReplaceAll(of.ImportPath, "/", "_")+".test")}
	passed, out, err := m.runCommand(ctx, "", nil, "go", "test", "-c", "-vet=off", "-overlay="+m.overlay, "-o", s.program, of.ImportPath)
	switch {
	case err != nil:
		return nil, nil, err
	case !passed:
		return nil, nil, fmt.Errorf("tests of %s:\n%s", of.ImportPath, out)
	}
	if _, err := os.Stat(s.program); err != nil {
		return s, nil, nil // has no tests
	}
	_, out, err = m.runCommand(ctx, of.Dir, nil, s.program, "-test.list="+cmp.Or(m.Tests, "."))
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for name := range strings.FieldsSeq(out) {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			names = append(names, name)
		}
	}
	for tests := range slices.Chunk(names, groupSize) {
		killer, err := m.openGroup(ctx, s, tests)
		if err != nil {
			return nil, nil, err
		}
		if killer == "" {
			continue
		}
		for _, one := range tests {
			if killer, err = m.openGroup(ctx, s, []string{one}); err != nil {
				return nil, nil, err
			} else if killer != "" {
				failed = append(failed, of.ImportPath+" "+killer)
			}
		}
	}
	slices.SortFunc(s.groups, func(a, b group) int { return cmp.Compare(a.took, b.took) })
	return s, failed, nil
}

// openGroup runs tests without a defect. If they pass it adds them to the suite, otherwise it
// returns the name of the first that fails.
func (m *mutator) openGroup(ctx context.Context, s *suite, tests []string) (killer string, err error) {
	reached := filepath.Join(m.tmp, "reached")
	if err := os.RemoveAll(reached); err != nil {
		return "", err
	}
	begin := time.Now()
	killer, err = m.runTests(ctx, s, tests, 20*time.Minute, "MUTANTS_REACHED="+reached)
	if err != nil || killer != "" {
		return killer, err
	}
	g := group{tests: tests, took: time.Since(begin), reaches: map[int]bool{}}
	list, err := os.ReadFile(reached)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	for n := range strings.FieldsSeq(string(list)) {
		number, _ := strconv.Atoi(n)
		g.reaches[number] = true
	}
	s.groups = append(s.groups, g)
	return "", nil
}

// findDefect runs the tests that reach a defect until one fails. It returns the name of that one,
// or "".
func (m *mutator) findDefect(ctx context.Context, s *suite, number int) (killer string, err error) {
	for _, g := range s.groups {
		if !g.reaches[number] {
			continue
		}
		limit := 3*g.took + 5*time.Second
		killer, err := m.runTests(ctx, s, g.tests, limit, "MUTANT="+strconv.Itoa(number))
		if err == nil && strings.HasPrefix(killer, timeout) { // or the machine was busy
			killer, err = m.runTests(ctx, s, g.tests, 4*limit, "MUTANT="+strconv.Itoa(number))
		}
		if err != nil || killer != "" {
			return killer, err
		}
	}
	return "", nil
}

// runTests runs tests of a suite in one process, and returns the name of the first that fails.
func (m *mutator) runTests(ctx context.Context, s *suite, tests []string, limit time.Duration, env string) (killer string, err error) {
	names := strings.Join(tests, "|")
	limited, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	passed, out, err := m.runCommand(limited, s.pkg.Dir, []string{env}, s.program, "-test.short", "-test.failfast",
		"-test.timeout="+limit.String(), "-test.run=^("+names+")$")
	switch {
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return timeout + names, nil
	case err != nil || passed:
		return "", err
	}
	return cmp.Or(failedTest(out), names), nil
}

// grace is the time after a process's limit until it is killed. Package testing ends a process at
// its limit only while tests run: not in an init function, nor in TestMain after them.
const grace = 2 * time.Second

// failedTest returns the name of the first failed test in the output of a process, or else the
// reason of the failure.
func failedTest(out string) string {
	if found := timedOut.FindStringSubmatch(out); found != nil {
		return timeout + cmp.Or(found[1], "an example")
	}
	for _, pattern := range failures {
		if found := pattern.FindStringSubmatch(out); found != nil {
			return found[1]
		}
	}
	return ""
}

// timeout begins the name of a test that has not ended within its limit.
const timeout = "time-out of "

var timedOut = regexp.MustCompile(`panic: test timed out.*(?:\n\s+running tests:\n\s+(\S+))?`)

var failures = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`),
	regexp.MustCompile(`(?m)^((?:panic|fatal error|goleak): .*)`),
}
