package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Outcome is the fate of a defect.
type Outcome string

// The outcomes of a defect that compiles.
const (
	Found     Outcome = "found"
	FoundLate Outcome = "found by a dependent's tests"
	Survived  Outcome = "survived"
)

// Plan is a run's configuration.
type Plan struct {
	Dir     string // directory of the go command
	Package string // as an argument of the go command
	N       int    // defects that compile
	Seed    uint64
	Own     bool     // run only the package's tests, not those of dependents
	Flags   []string // of go test

	Sim   string // if not empty, play these workloads of the simulation instead of tests
	Seeds int    // of the simulation
}

// pkg is a package as go list prints it.
type pkg struct {
	ImportPath, Dir                                   string
	GoFiles, Deps, Imports, TestImports, XTestImports []string
}

// mutator runs a Plan.
type mutator struct {
	Plan
	pkg        pkg
	dependents []string
	tmp        string
	limit      time.Duration // for the tests of one defect
}

// Run plants the defects of a plan one after the other, writes each with its outcome to log, and
// returns the survivors and the number of each outcome.
func Run(ctx context.Context, p Plan, log io.Writer) (survivors []Site, count map[Outcome]int, err error) {
	m := &mutator{Plan: p}
	if m.tmp, err = os.MkdirTemp("", "mutate"); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.tmp)) }()
	if err := m.loadPackages(ctx); err != nil {
		return nil, nil, err
	}
	var sites []Site
	for _, f := range m.pkg.GoFiles {
		of, err := findSites(filepath.Join(m.pkg.Dir, f))
		if err != nil {
			return nil, nil, err
		}
		sites = append(sites, of...)
	}
	if err := m.measureTests(ctx); err != nil {
		return nil, nil, err
	}
	rng := rand.New(rand.NewPCG(p.Seed, 0))
	rng.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	count = make(map[Outcome]int)
	for _, s := range sites {
		if count[Found]+count[FoundLate]+count[Survived] == p.N {
			break
		}
		outcome, err := m.tryDefect(ctx, s)
		if err != nil {
			return survivors, count, err
		}
		if outcome == "" {
			continue
		}
		count[outcome]++
		if outcome == Survived {
			survivors = append(survivors, s)
		}
		fmt.Fprintf(log, "%s: %v\n", outcome, s)
	}
	return survivors, count, nil
}

// loadPackages finds the package and its dependents in the same module.
func (m *mutator) loadPackages(ctx context.Context) error {
	listed, err := m.listPackages(ctx, m.Package)
	if err != nil {
		return err
	}
	if len(listed) != 1 {
		return fmt.Errorf("%s is %d packages, want one", m.Package, len(listed))
	}
	m.pkg = listed[0]
	if m.Own || m.Sim != "" {
		return nil
	}
	all, err := m.listPackages(ctx, "./...")
	if err != nil {
		return err
	}
	deps := map[string][]string{}
	for _, p := range all {
		deps[p.ImportPath] = p.Deps
	}
	uses := func(path string) bool {
		return path == m.pkg.ImportPath || slices.Contains(deps[path], m.pkg.ImportPath)
	}
	for _, p := range all {
		if p.ImportPath != m.pkg.ImportPath && slices.ContainsFunc(slices.Concat(p.Imports, p.TestImports, p.XTestImports), uses) {
			m.dependents = append(m.dependents, p.ImportPath)
		}
	}
	return nil
}

func (m *mutator) listPackages(ctx context.Context, pattern string) (list []pkg, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,GoFiles,Deps,Imports,TestImports,XTestImports", pattern)
	cmd.Dir, cmd.Stderr = m.Dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pattern, err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// measureTests runs the tests without a defect.
func (m *mutator) measureTests(ctx context.Context) error {
	m.limit = 20 * time.Minute
	if _, err := m.runChecks(ctx, ""); err != nil { // compiles
		return err
	}
	begin := time.Now()
	passed, err := m.runChecks(ctx, "")
	if err != nil {
		return err
	}
	if !passed {
		return fmt.Errorf("%s fails without a defect", cmp.Or(m.Sim, m.pkg.ImportPath))
	}
	m.limit = 10*time.Since(begin) + 30*time.Second
	return nil
}

// errNotCompiled is the outcome of a defect that the compiler finds.
var errNotCompiled = errors.New("does not compile")

// tryDefect returns the outcome of a defect, or "" if it does not compile.
func (m *mutator) tryDefect(ctx context.Context, s Site) (Outcome, error) {
	overlay, err := m.plantDefect(s)
	if err != nil {
		return "", err
	}
	passed, err := m.runChecks(ctx, overlay)
	switch {
	case errors.Is(err, errNotCompiled):
		return "", nil
	case err != nil:
		return "", err
	case !passed:
		return Found, nil
	}
	for _, d := range m.dependents {
		if passed, err := m.runTests(ctx, overlay, d); err != nil {
			return "", err
		} else if !passed {
			return FoundLate, nil
		}
	}
	return Survived, nil
}

// plantDefect writes the changed file and the overlay for it.
func (m *mutator) plantDefect(s Site) (overlay string, err error) {
	text, err := os.ReadFile(s.File)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(m.tmp, "changed.go"), filepath.Join(m.tmp, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {s.File: changed}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(
		os.WriteFile(changed, slices.Concat(text[:s.Start], []byte(s.With), text[s.End:]), 0o600),
		os.WriteFile(overlay, list, 0o600))
}

// runChecks runs the tests or the simulation with an overlay, and reports whether they pass.
func (m *mutator) runChecks(ctx context.Context, overlay string) (passed bool, err error) {
	if m.Sim != "" {
		return m.playSeeds(ctx, overlay)
	}
	return m.runTests(ctx, overlay, m.pkg.ImportPath)
}

// runTests runs a package's tests and reports whether they pass.
func (m *mutator) runTests(ctx context.Context, overlay, of string) (passed bool, err error) {
	args := slices.Concat([]string{"test", "-vet=off", "-count=1", "-failfast", "-timeout=" + m.limit.String()}, m.Flags)
	passed, out, err := m.runCommand(ctx, "go", append(withOverlay(args, overlay), of)...)
	if strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") {
		return false, fmt.Errorf("%s: %w\n%s", of, errNotCompiled, out)
	}
	return passed, err
}

// playSeeds builds the simulation, plays seeds, and reports whether all pass.
func (m *mutator) playSeeds(ctx context.Context, overlay string) (passed bool, err error) {
	program := filepath.Join(m.tmp, "sim")
	passed, out, err := m.runCommand(ctx, "go", append(withOverlay([]string{"build", "-o", program}, overlay), "./lab/sim")...)
	switch {
	case err != nil:
		return false, err
	case !passed:
		return false, fmt.Errorf("lab/sim: %w\n%s", errNotCompiled, out)
	}
	ctx, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	passed, _, err = m.runCommand(ctx, program, "-only", m.Sim, "-from", "1", "-seeds", strconv.Itoa(m.Seeds), "-shrink", "0")
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return passed, err
}

func withOverlay(args []string, overlay string) []string {
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	return args
}

// runCommand runs a command, and reports whether its exit status is 0.
func (m *mutator) runCommand(ctx context.Context, name string, args ...string) (passed bool, output string, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = m.Dir
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return true, string(out), nil
	case ctx.Err() != nil:
		return false, "", ctx.Err()
	case !errors.As(err, &failed):
		return false, "", err
	}
	return false, string(out), nil
}
