package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clamp = `package clamp

// Clamp returns n, or most if n is above it.
func Clamp(n, most int) (int, error) {
	if n > most {
		n = most
	}
	return n, nil
}

func use(func(int, int) (int, error)) {}

func init() {
	clamp := Clamp
	use(clamp) // without this statement it does not compile
}
`

// TestRun mutates a module whose tests miss one defect, which a package that imports it finds.
func TestRun(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example.com/clamp\n\ngo 1.26\n",
		"clamp.go":       clamp,
		"clamp_test.go":  "package clamp\n\nimport \"testing\"\n\nfunc TestClamp(t *testing.T) {\n\tif n, _ := Clamp(1, 2); n != 1 {\n\t\tt.Error(n)\n\t}\n}\n",
		"user/user.go":   "package user\n",
		"lab/sim/sim.go": "package main\n\nimport (\n\t\"os\"\n\n\t\"example.com/clamp\"\n)\n\nfunc main() {\n\tif n, _ := clamp.Clamp(3, 2); n != 2 || len(os.Args) != 9 {\n\t\tos.Exit(1)\n\t}\n}\n",
		"user/u_test.go": "package user\n\nimport (\n\t\"testing\"\n\n\t\"example.com/clamp\"\n)\n\nfunc TestUser(t *testing.T) {\n\tif n, _ := clamp.Clamp(3, 2); n != 2 {\n\t\tt.Error(n)\n\t}\n}\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	p := Plan{Dir: dir, Package: ".", N: 10, Seed: 7}
	survivors, count, err := Run(t.Context(), p, &log)
	if err != nil {
		t.Fatal(err)
	}
	// Negated: found. `n = most` deleted: found by the user. `>=`: equivalent to the original code.
	if count[Found] != 1 || count[FoundLate] != 1 || count[Survived] != 1 || survivors[0].With != ">=" {
		t.Errorf("%v, %v:\n%s", count, survivors, log.String())
	}
	for _, by := range []string{"found by TestClamp: ", "found by a dependent's tests of example.com/clamp/user, TestUser: "} {
		if !strings.Contains(log.String(), by) {
			t.Errorf("no %q in:\n%s", by, log.String())
		}
	}
	p.Own = true
	if _, count, err = Run(t.Context(), p, io.Discard); err != nil || count[Survived] != 2 {
		t.Errorf("with its own tests only: %v, %v", count, err)
	}
	p.Tests = "TestClamp/sub"
	if _, _, err = Run(t.Context(), p, io.Discard); err == nil {
		t.Error("a subtest was selected")
	}
	p.Tests, p.Sim = "", "all"
	if survivors, count, err = Run(t.Context(), p, io.Discard); err != nil || count[Found] != 2 || survivors[0].With != ">=" {
		t.Errorf("with the simulation: %v, %v, %v", count, survivors, err)
	}
	if left, err := os.ReadFile(filepath.Join(dir, "clamp.go")); err != nil || string(left) != clamp {
		t.Errorf("the file was changed: %v\n%s", err, left)
	}
}

// TestCopies plants a defect into functions whose parameters have no names, and which are generic,
// variadic, or without results.
func TestCopies(t *testing.T) {
	m := &mutator{pkg: pkg{Name: "p", Dir: t.TempDir()}, tmp: t.TempDir()}
	m.overlay = filepath.Join(m.tmp, "overlay.json")
	file := filepath.Join(m.pkg.Dir, "f.go")
	const text = `package p

func (*T[K]) f(_ int, s ...string) bool { return true }
func g[K, V any](K, V) { go a() }
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if m.sites, err = findSites(file); err != nil {
		t.Fatal(err)
	}
	lines, err := m.writeOverlay()
	if want := [][2]int{{5, 5}, {6, 6}}; err != nil || !slices.Equal(lines, want) {
		t.Errorf("the copies are in the lines %v, %v, want %v", lines, err, want)
	}
	const want = `package p

func (mutantReceiver0 *T[K]) f(mutantParam0 int, s ...string) bool { if isMutant(1) { return mutantReceiver0.f_mutant1(mutantParam0, s...) }; return true }
func g[K, V any](mutantParam0 K, mutantParam1 V) { if isMutant(2) { g_mutant2[K, V](mutantParam0, mutantParam1); return }; go a() }
func (*T[K]) f_mutant1(_ int, s ...string) bool { return false }
func g_mutant2[K, V any](K, V) {  }
`
	if got, err := os.ReadFile(filepath.Join(m.tmp, "f.go")); err != nil || string(got) != want {
		t.Errorf("%v, got:\n%s\nwant:\n%s", err, got, want)
	}
}

// TestLimits: a process that hangs outside of its tests is killed, and a simulation that exceeds
// its limit has not found a defect if it passes in a longer time.
func TestLimits(t *testing.T) {
	m := &mutator{tmp: t.TempDir(), limit: time.Second}
	m.Dir = m.tmp
	if err := os.WriteFile(m.simulation(), []byte("#!/bin/sh\nif mkdir again; then exec sleep 60; fi\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &suite{pkg: pkg{Dir: m.tmp}, program: m.simulation()}
	killer, err := m.runTests(t.Context(), s, []string{"TestA", "TestB"}, 0, "A=")
	if want := "time-out of TestA|TestB"; err != nil || killer != want {
		t.Errorf("got %q, %v, want %q", killer, err, want)
	}
	if err := os.Remove(filepath.Join(m.tmp, "again")); err != nil {
		t.Fatal(err)
	}
	if found, err := m.playSeeds(t.Context(), 1); err != nil || found {
		t.Errorf("found: %v, %v, want that the second run decides", found, err)
	}
}

// TestFailedTest reads what processes of the testing package print.
func TestFailedTest(t *testing.T) {
	for out, want := range map[string]string{
		"--- FAIL: TestA (0.01s)\n    --- FAIL: TestA/b (0.00s)\n        a_test.go:7: 1\nFAIL\n":       "TestA",
		"panic: test timed out after 5s\n\trunning tests:\n\t\tTestB (4s)\n\ngoroutine 9 [running]:\n": "time-out of TestB",
		"panic: test timed out after 5s\n\ngoroutine 9 [running]:\n":                                   "time-out of an example",
		"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select]:\n":                "fatal error: all goroutines are asleep - deadlock!",
		"exit status 3\n": "",
	} {
		if got := failedTest(out); got != want {
			t.Errorf("got %q, want %q from %q", got, want, out)
		}
	}
}

// TestOperators lists the mutations of a function by each operator.
func TestOperators(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.go")
	const text = `package p

func (t *T) f() error {
	if err != nil {
		return err
	}
	a()
	b()
	for i < 3 {
		i++
	}
	return true
}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sites, err := findSites(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sites {
		got = append(got, s.Operator+": "+strings.Join(strings.Fields(s.With), " "))
		if s.Func != "(*T).f" || text[s.Start:s.End] != s.Was {
			t.Errorf("%v is not %q", s, text[s.Start:s.End])
		}
	}
	want := []string{
		"deleted statement: ", "deleted statement: ", "swapped neighbours: b() a()", "dropped error: false && err != nil",
		"dropped error: nil", "another operator: <=", "off by one: 4", "deleted statement: ", "wrong constant: false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
