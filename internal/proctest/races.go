package proctest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// LogRaces returns the environment variable of children that run code of others which races with
// itself: Proto.Actor's remote and cluster, and the cluster's providers. With it, the race detector
// of a child does not change its exit status and writes to files. In the end the test fails if a
// race is with this project's code.
func LogRaces(t *testing.T) (env string) {
	t.Helper()
	// Not t.TempDir: it may have a comma, which ends an option of GORACE.
	dir, err := os.MkdirTemp("", "races") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}()
		files, _ := filepath.Glob(dir + "/race.*")
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Error(err)
			}
			for _, report := range ownReports(string(b)) {
				t.Errorf("a data race of ours:\n%s", report)
			}
		}
	})
	return "GORACE=exitcode=0 atexit_sleep_ms=0 log_path=" + dir + "/race"
}

var (
	access = regexp.MustCompile(`(?m)^(?:Previous )?(?i:read|write) at .*:\n((?:  .*\n)+)`)
	caller = regexp.MustCompile(`(?m)^  (\S+)\(\)$`)
	// BroadcastEvent reads the list of members without its lock, and with it the members that this
	// project's code has made and passed to the list. That access excuses the report.
	unlocked = regexp.MustCompile(`(?m)^  github\.com/asynkron/protoactor-go/cluster\.\(\*MemberList\)\.BroadcastEvent\(\)$`)
)

// ownReports returns the reports in which one of the two accesses is in this project's code. An
// access in the standard library counts as its caller's.
func ownReports(log string) (reports []string) {
	for _, report := range strings.Split(log, "==================\n") {
		var found, excused bool
		for _, a := range access.FindAllStringSubmatch(report, -1) {
			calls := caller.FindAllStringSubmatch(a[1], -1)
			i := slices.IndexFunc(calls, func(c []string) bool {
				domain, _, path := strings.Cut(c[1], "/")
				return path && strings.Contains(domain, ".")
			})
			isOurs := i >= 0 && strings.HasPrefix(calls[i][1], "github.com/rdmactor/")
			found = found || isOurs
			excused = excused || !isOurs && unlocked.MatchString(a[1])
		}
		if found && !excused {
			reports = append(reports, report)
		}
	}
	return reports
}
