package planted

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/overlay"
)

var (
	plant = flag.Bool("planted", false, "plant every fault and run the tests that must fail then: minutes long")
	only  = flag.String("fault", "", "plant only the faults with this in their names or rows")
)

// TestFaultsApply compares the faults with the code and the rows.
func TestFaultsApply(t *testing.T) {
	rows, names, broken := cited(t), map[string]bool{}, map[string]bool{}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			if names[f.name] || f.rows == "" || f.old == f.new {
				t.Error("a fault has a name of its own, a row, and changes something")
			}
			names[f.name] = true
			if _, err := overlay.Apply(root, f.edit()); err != nil {
				t.Error(err)
			}
			for _, id := range f.breaks() {
				broken[id] = true
				if !slices.ContainsFunc(rows[id], func(c citation) bool { return f.kernel() == c.kernel() }) {
					t.Errorf("%s cites no test that can fail with it", id)
				}
			}
		})
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		if !broken[id] {
			t.Errorf("%s cites tests, and nothing shows that they fail when its sentence is broken: add a fault", id)
		}
		page, _, _ := strings.Cut(id, "-")
		if page != "getaddrinfo" && !slices.ContainsFunc(rows[id], citation.real) {
			t.Errorf("%s cites no test on a real device (iwarp, cmid/ucm)", id)
		}
	}
}

// TestPlanted plants the faults that need none of the kernel's devices.
func TestPlanted(t *testing.T) {
	if !*plant {
		return
	}
	judge(t, func(c citation) bool { return !c.kernel() }, func(f *fault) bool { return !f.kernel() },
		func(t *testing.T, f *fault, tests []citation) map[citation]string {
			overlay := ""
			if f != nil {
				overlay = f.overlay(t)
				below, _, _ := strings.Cut(f.file, "/")
				// the others do not contain the fault, or only far below
				tests = slices.DeleteFunc(tests, func(c citation) bool {
					return below != "cmid" && c.pkg != below || below == "cmid" && c.pkg == "actor"
				})
			}
			return runHere(t, overlay, tests)
		})
}

// TestKernelFaultsCompile finds faults that do not compile before a machine is started for them.
func TestKernelFaultsCompile(t *testing.T) {
	if !*plant {
		return
	}
	for _, f := range faults {
		if !f.kernel() || !strings.Contains(f.name+" "+f.rows, *only) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay="+f.overlay(t), module+"cmid/ucm")
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("it does not compile with the fault: %v\n%s", err, out)
			}
		})
	}
}

// judge runs the cited tests without a fault, when they must pass, and then with each fault, when
// at least one of every row that it breaks must fail. run returns each test's outcome: pass, fail,
// skip; nil stands for no fault.
func judge(
	t *testing.T, mine func(citation) bool, ours func(*fault) bool, run func(*testing.T, *fault, []citation) map[citation]string,
) {
	rows := cited(t)
	testsOf := func(ids []string) (all []citation) {
		for _, id := range ids {
			for _, c := range rows[id] {
				if mine(c) && !slices.Contains(all, c) {
					all = append(all, c)
				}
			}
		}
		return all
	}
	var planted []*fault
	var broken []string
	left := map[string]bool{} // rows with a fault that is not selected
	for i := range faults {
		switch f := &faults[i]; {
		case !ours(f):
		case strings.Contains(f.name+" "+f.rows, *only):
			planted = append(planted, f)
			broken = append(broken, f.breaks()...)
		default:
			for _, id := range f.breaks() {
				left[id] = true
			}
		}
	}
	t.Run("without a fault", func(t *testing.T) {
		for c, outcome := range run(t, nil, testsOf(broken)) {
			if outcome != "pass" {
				t.Errorf("%v: %s", c, outcome)
			}
		}
	})
	if t.Failed() {
		t.Fatal("tests that do not pass without a fault show nothing")
	}
	failed := map[string]bool{} // row and scenario
	for _, f := range planted {
		t.Run(f.name, func(t *testing.T) {
			outcomes := run(t, f, testsOf(f.breaks()))
			for _, id := range f.breaks() {
				caught := false
				for _, c := range rows[id] {
					if outcomes[c] == "fail" {
						caught, failed[id+" "+c.scenario()] = true, true
					}
				}
				if !caught {
					t.Errorf("%s: the tests cited pass all the same: %v", id, outcomes)
				}
			}
		})
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		if left[id] || !slices.Contains(broken, id) {
			continue
		}
		for _, c := range rows[id] {
			if mine(c) && !failed[id+" "+c.scenario()] {
				t.Errorf("%s: %v fails with no fault of that row: does it test the sentence?", id, c)
			}
		}
	}
}

// pattern returns a pattern for -test.run that selects exactly these tests, and their subtests.
func pattern(tests []citation) string {
	var all []string
	for _, c := range tests {
		var levels []string
		for level := range strings.SplitSeq(c.test, "/") {
			levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
		}
		all = append(all, strings.Join(levels, "/"))
	}
	return strings.Join(all, "|")
}

// runHere runs the tests on this machine, with an overlay if there is one.
func runHere(t *testing.T, overlay string, tests []citation) map[citation]string {
	t.Helper()
	elsewhere := "-exec=env -C " + t.TempDir() // rapid writes a file for each failure
	args := []string{"test", elsewhere, "-json", "-count=1", "-vet=off", "-timeout=5m", "-run=" + pattern(tests)}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	wanted := map[citation]string{}
	for _, c := range tests {
		wanted[c] = "not run"
		if pkg := module + c.pkg; !slices.Contains(args, pkg) {
			args = append(args, pkg)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // a failing test is expected
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var ev struct{ Action, Package, Test, Output string }
		if err := dec.Decode(&ev); err != nil {
			t.Fatalf("go test -json: %v\n%s", err, out)
		}
		if ev.Action == "build-output" || ev.Action == "build-fail" {
			t.Fatalf("it does not compile with the fault:\n%s", out)
		}
		c := citation{strings.TrimPrefix(ev.Package, module), ev.Test}
		if _, ours := wanted[c]; ours && (ev.Action == "pass" || ev.Action == "fail" || ev.Action == "skip") {
			wanted[c] = ev.Action
		}
	}
	return wanted
}
