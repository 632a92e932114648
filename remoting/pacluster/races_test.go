package pacluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// With the race detector, Proto.Actor's cluster and its providers are reported, even with one
// member in a process. What counts here is what races with this module's code.

// raceLogs has a member's race detector write to files, and the test look at them in the end.
func raceLogs(t *testing.T) (env string) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		files, _ := filepath.Glob(dir + "/race.*")
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Error(err)
			}
			for _, report := range ours(string(b)) {
				t.Errorf("a data race of ours:\n%s", report)
			}
		}
	})
	return "GORACE=exitcode=0 log_path=" + dir + "/race"
}

var (
	access = regexp.MustCompile(`(?m)^(?:Previous )?(?i:read|write) at .*:\n((?:  .*\n)+)`)
	caller = regexp.MustCompile(`(?m)^  (\S+)\(\)$`)
)

// ours returns the reports in which one of the two accesses is of this module's code. What is of
// the standard library counts as its caller's.
func ours(log string) (reports []string) {
	for _, report := range strings.Split(log, "==================\n") {
		for _, a := range access.FindAllStringSubmatch(report, -1) {
			calls := caller.FindAllStringSubmatch(a[1], -1)
			i := slices.IndexFunc(calls, func(c []string) bool {
				domain, _, path := strings.Cut(c[1], "/")
				return path && strings.Contains(domain, ".")
			})
			if i >= 0 && strings.HasPrefix(calls[i][1], "github.com/rdmactor/") {
				reports = append(reports, report)
				break
			}
		}
	}
	return reports
}

func TestOurs(t *testing.T) {
	report := func(one, two string) string {
		return "==================\nWARNING: DATA RACE\nRead at 0x1 by goroutine 1:\n  runtime.x()\n      /go/x.go:1 +0x1\n  " + one +
			"()\n      /a.go:1 +0x1\n  github.com/rdmactor/rdmactor/x.caller()\n      /b.go:2 +0x1\n\n" +
			"Previous write at 0x1 by goroutine 2:\n  " + two + "()\n      /a.go:1 +0x1\n\n" +
			"Goroutine 1 (running) created at:\n  github.com/rdmactor/rdmactor/x.Start()\n      /c.go:1 +0x1\n==================\n"
	}
	const theirs, our = "github.com/asynkron/protoactor-go/remote.(*BlockList).Block", "github.com/rdmactor/rdmactor/remoting.(*link).x"
	for _, tt := range []struct {
		one, two string
		want     int
	}{{theirs, theirs, 0}, {theirs, our, 1}, {our, theirs, 1}, {our, our, 1}} {
		if got := ours(report(tt.one, tt.two)); len(got) != tt.want {
			t.Errorf("%s and %s: %q", tt.one, tt.two, got)
		}
	}
}
