// Package vmtest is package vm for tests. Every failure in the machine, or on the way to it, fails
// the test. Nothing is skipped.
//
//	m := vmtest.Boot(t, vm.Config{Kernel: "6.1"})
//	vmtest.GoTest(t, m, "github.com/rdmactor/rdmactor/cmid/ucm", vm.Env("rxe"), "-test.run", "Connect")
//	vmtest.Program(t, m, "github.com/rdmactor/rdmactor/cmd/rdmactor")
//	out := vmtest.Run(t, m, time.Minute, "rdmactor ping -s ...")
//
// # Ownership
//
// A machine ends with the test that booted it. Subtests share it. A Bench replaces its machine when
// the kernel dies. Call the functions on the test's goroutine only.
//
// # Errors
//
// The text of a failure has the guest's output. A test binary that runs no test is a failure,
// because a missing tag or a misspelt -test.run would otherwise look like success.
package vmtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/lab/vm"
)

// Boot boots a machine for the test and closes it at the test's end. It logs the duration of the
// boot.
func Boot(t testing.TB, c vm.Config) *vm.Machine {
	t.Helper()
	c.Logf = t.Logf
	m, err := vm.Boot(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Run runs a script and returns its output. The test fails if the exit code is not 0, or if the
// script takes longer than limit.
func Run(t testing.TB, m *vm.Machine, limit time.Duration, script string) string {
	t.Helper()
	out, err := runOutput(t.Context(), m, limit, script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// runOutput does what Run does, without a test.
func runOutput(ctx context.Context, m *vm.Machine, limit time.Duration, script string) (string, error) {
	r, err := runWithin(ctx, m, limit, script)
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("in the VM: %s\nexit code %d, output:\n%s", script, r.Code, r.Output)
	}
	return r.Output, err
}

func runWithin(ctx context.Context, m *vm.Machine, limit time.Duration, script string) (vm.Result, error) {
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no end within %s", limit))
	defer stop()
	return m.Run(ctx, script)
}

// Program compiles the command in a package and puts it into the guest's path.
func Program(t testing.TB, m *vm.Machine, pkg string) {
	t.Helper()
	file, err := Compile(t.Context(), "build", pkg)
	if err == nil {
		err = m.Put(t.Context(), file, "/usr/bin/"+path.Base(pkg))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// testLimit is the -test.timeout of GoTest unless args have one. The guest gets a minute more to
// print the stacks.
const testLimit = 10 * time.Minute

// GoTest compiles the tests of a package with the tag rdma and runs them in the guest, in a
// directory with the package's testdata. env has NAME=value strings, usually those of vm.Env. args
// are flags of the test binary. GoTest logs the output.
func GoTest(t testing.TB, m *vm.Machine, pkg string, env []string, args ...string) {
	t.Helper()
	out, err := goTest(t, m, pkg, env, args)
	checkOutcome(t, pkg, out, err)
}

// checkOutcome checks and logs the outcome of GoTest.
func checkOutcome(t testing.TB, pkg, out string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("the tests of %s in the VM: %v\n%s", pkg, err, out)
	}
	t.Logf("the tests of %s in the VM:\n%s", pkg, out)
}

// runs numbers the runs of GoTest.
var runs atomic.Int64

func goTest(t testing.TB, m *vm.Machine, pkg string, env, args []string) (string, error) {
	limit := testLimit
	for _, a := range args {
		if s, ok := strings.CutPrefix(a, "-test.timeout="); ok {
			d, err := time.ParseDuration(s)
			if err != nil {
				return "", err
			}
			limit = d
		}
	}
	// Concurrent tests may be of the same package.
	dir := fmt.Sprintf("/tmp/test/%d/%s", runs.Add(1), path.Base(pkg))
	binary := dir + "/" + path.Base(pkg) + ".test"
	file, err := Compile(t.Context(), "test -c -tags rdma", pkg)
	if err != nil {
		return "", err
	}
	if err := m.Put(t.Context(), file, binary); err != nil {
		return "", err
	}
	if err := putTestdata(t, m, pkg, dir); err != nil {
		return "", err
	}
	var script strings.Builder
	fmt.Fprintf(&script, "cd %s\nexec env", dir)
	for _, word := range append(append(env[:len(env):len(env)], binary, "-test.v", "-test.timeout="+limit.String()), args...) {
		fmt.Fprintf(&script, " %s", vm.Quote(word))
	}
	r, err := runWithin(t.Context(), m, limit+time.Minute, script.String())
	if err == nil {
		// The machine's files use its memory.
		_, err = runWithin(t.Context(), m, time.Minute, "rm -rf "+path.Dir(dir))
	}
	switch {
	case err != nil:
	case r.Code != 0:
		err = fmt.Errorf("exit code %d", r.Code)
	case !strings.Contains(r.Output, "--- PASS: "):
		err = errors.New("no test ran to its end")
	}
	return r.Output, err
}

// putTestdata copies a package's testdata, if there is any, to the directory where its tests look
// for it.
func putTestdata(t testing.TB, m *vm.Machine, pkg, dir string) error {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return err
	}
	data := filepath.Join(strings.TrimSpace(string(out)), "testdata")
	if _, err := os.Stat(data); os.IsNotExist(err) {
		return nil
	}
	return m.PutDir(t.Context(), data, dir+"/testdata")
}
