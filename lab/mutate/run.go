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
	Own     bool   // run only the package's tests, not those of dependents
	Tests   string // if not empty, run only tests that match this expression, without a slash

	Sim   string // if not empty, play these workloads of the simulation instead of tests
	Seeds int    // of the simulation
}

// pkg is a package as go list prints it.
type pkg struct {
	ImportPath, Name, Dir                             string
	GoFiles, Deps, Imports, TestImports, XTestImports []string
}

// mutator runs a Plan.
type mutator struct {
	Plan
	log        io.Writer
	pkg        pkg
	dependents []pkg // the one that imports least first
	suites     map[string]*suite
	tmp        string
	overlay    string
	sites      []Site        // of the defects
	limit      time.Duration // for the simulation of one defect
}

// Run plants the defects of a plan, writes each with its outcome to log, and returns the survivors
// and the number of each outcome.
func Run(ctx context.Context, p Plan, log io.Writer) (survivors []Site, count map[Outcome]int, err error) {
	if strings.Contains(p.Tests, "/") { // a process lists no subtests
		return nil, nil, fmt.Errorf("-run %s: subtests cannot be selected", p.Tests)
	}
	m := &mutator{Plan: p, log: log, suites: map[string]*suite{}}
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
	rng := rand.New(rand.NewPCG(p.Seed, 0))
	rng.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	if err := m.plantDefects(ctx, sites); err != nil {
		return nil, nil, err
	}
	if p.Sim != "" {
		if err := m.measureSeeds(ctx); err != nil {
			return nil, nil, err
		}
	}
	count = make(map[Outcome]int)
	for i, s := range m.sites {
		outcome, by, err := m.tryDefect(ctx, i+1)
		if err != nil {
			return survivors, count, err
		}
		count[outcome]++
		if outcome == Survived {
			survivors = append(survivors, s)
		}
		fmt.Fprintf(log, "%s%s: %v\n", outcome, by, s)
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
			m.dependents = append(m.dependents, p)
		}
	}
	slices.SortStableFunc(m.dependents, func(a, b pkg) int { return cmp.Compare(len(a.Deps), len(b.Deps)) })
	return nil
}

func (m *mutator) listPackages(ctx context.Context, pattern string) (list []pkg, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Name,Dir,GoFiles,Deps,Imports,TestImports,XTestImports", pattern)
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

// measureSeeds builds the simulation and plays the seeds without a defect.
func (m *mutator) measureSeeds(ctx context.Context) error {
	passed, out, err := m.runCommand(ctx, "", nil, "go", "build", "-overlay="+m.overlay, "-o", m.simulation(), "./lab/sim")
	switch {
	case err != nil:
		return err
	case !passed:
		return fmt.Errorf("lab/sim:\n%s", out)
	}
	m.limit = 20 * time.Minute
	begin := time.Now()
	if found, err := m.playSeeds(ctx, 0); err != nil {
		return err
	} else if found {
		return fmt.Errorf("%s fails without a defect", m.Sim)
	}
	m.limit = 3*time.Since(begin) + 5*time.Second
	return nil
}

func (m *mutator) simulation() string { return filepath.Join(m.tmp, "sim") }

// playSeeds plays the simulation with a defect, and reports whether it is found.
func (m *mutator) playSeeds(ctx context.Context, number int) (found bool, err error) {
	// At the first limit the machine may be busy.
	for _, limit := range []time.Duration{m.limit, 4 * m.limit} {
		limited, cancel := context.WithTimeout(ctx, limit)
		passed, _, err := m.runCommand(limited, "", []string{"MUTANT=" + strconv.Itoa(number)},
			m.simulation(), "-only", m.Sim, "-from", "1", "-seeds", strconv.Itoa(m.Seeds), "-shrink", "0")
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return !passed, err
		}
	}
	return true, nil
}

// tryDefect returns the outcome of a defect, and which test found it.
func (m *mutator) tryDefect(ctx context.Context, number int) (o Outcome, by string, err error) {
	if m.Sim != "" {
		found, err := m.playSeeds(ctx, number)
		if found {
			return Found, "", err
		}
		return Survived, "", err
	}
	for i, p := range append([]pkg{m.pkg}, m.dependents...) {
		s := m.suites[p.ImportPath]
		if s == nil {
			var failed []string
			if s, failed, err = m.openSuite(ctx, p); err != nil {
				return "", "", err
			}
			m.suites[p.ImportPath] = s
			for _, f := range failed {
				fmt.Fprintf(m.log, "fails without a defect: %s\n", f)
			}
		}
		switch killer, err := m.findDefect(ctx, s, number); {
		case err != nil:
			return "", "", err
		case killer == "":
		case i == 0:
			return Found, " by " + killer, nil
		default:
			return FoundLate, " of " + p.ImportPath + ", " + killer, nil
		}
	}
	return Survived, "", nil
}

// runCommand runs a command, and reports whether its exit status is 0.
func (m *mutator) runCommand(ctx context.Context, dir string, env []string, name string, args ...string) (passed bool, output string, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = cmp.Or(dir, m.Dir), append(os.Environ(), env...)
	cmd.WaitDelay = time.Second // for children that a test leaves behind
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return true, string(out), nil
	case ctx.Err() != nil:
		return false, "", ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay):
		return true, string(out), nil
	case !errors.As(err, &failed):
		return false, "", err
	}
	return false, string(out), nil
}
