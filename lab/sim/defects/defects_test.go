package main

import (
	"flag"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/overlay"
)

const root = "../../.."

var (
	regressions = flag.Bool("regressions", false, "run the tests that were added with the mends, which must fail with the defects: minutes long")
	proof       = flag.Bool("proof", false, "have the simulator find each defect within its bound: minutes long")
	only        = flag.String("defect", "", "only the defects with this in their names")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDefectsApply puts all defects back, as many at once as do not touch the same text, and
// compiles that.
func TestDefectsApply(t *testing.T) {
	names := map[string]bool{}
	var all []overlay.Edit
	for _, d := range defects {
		if names[d.name] || d.was == "" || d.layer == "" || (d.mended == "" || d.pkg == "" || d.test == "") && d.layer != invention || (d.workload == "") != (d.within == 0) {
			t.Errorf("%q: a defect has a name of its own, and everything else", d.name)
		}
		names[d.name] = true
		if _, err := overlay.Apply(root, d.edits...); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
		if more := append(all[:len(all):len(all)], d.edits...); applies(more) {
			all = more
			continue
		}
		compiles(t, all)
		all = d.edits
	}
	if !t.Failed() {
		compiles(t, all)
	}
}

func applies(edits []overlay.Edit) bool {
	_, err := overlay.Apply(root, edits...)
	return err == nil
}

// compiles fails the test if the packages that edits change do not compile.
func compiles(t *testing.T, edits []overlay.Edit) {
	t.Helper()
	list, err := overlay.Write(root, t.TempDir(), edits...)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-overlay=" + list}
	for _, d := range defects {
		if d.pkg != "" {
			args = append(args, module+"/"+d.pkg)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("it does not compile with the defects: %v\n%s", err, out)
	}
}

// TestRegressions shows that each defect is a real one: the test that was added when it was mended
// passes as the code is, and fails when the defect is back.
func TestRegressions(t *testing.T) {
	if !*regressions {
		return
	}
	for _, d := range defects {
		if !strings.Contains(d.name, *only) || d.layer == invention {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			if out, ok := passes(t, &d); !ok {
				t.Fatalf("it fails without the defect:\n%s", out)
			}
			list, err := overlay.Write(root, t.TempDir(), d.edits...)
			if err != nil {
				t.Fatal(err)
			}
			switch out, ok := passes(t, &d, "-overlay="+list); {
			case ok:
				t.Errorf("%s %s passes with the defect", d.pkg, d.test)
			case strings.Contains(out, "[build failed]"):
				t.Errorf("it does not compile with the defect:\n%s", out)
			default:
				t.Log(out)
			}
		})
	}
}

// passes runs the tests of a defect.
func passes(t *testing.T, d *defect, flags ...string) (out string, ok bool) {
	t.Helper()
	args := append([]string{"test", "-exec=env -C " + t.TempDir(), "-count=1", "-vet=off", "-timeout=2m"}, flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "-run=^("+d.test+")$", module+"/"+d.pkg)...)
	cmd.Dir = root
	b, err := cmd.CombinedOutput()
	if strings.Contains(string(b), "no tests to run") {
		t.Fatalf("%s has no test %s", d.pkg, d.test)
	}
	return string(b[:min(len(b), 4<<10)]), err == nil
}
