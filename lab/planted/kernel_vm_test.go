//go:build vm

package planted

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

// TestPlantedKernel plants the faults of the kernel's driver, one after the other, in one machine:
// on soft-RoCE, which also has datagrams. The other device there is soft-iWARP.
func TestPlantedKernel(t *testing.T) {
	if !*plant {
		return
	}
	shared := t.TempDir()
	b := vmtest.NewBench(t, vm.Config{Kernel: vm.Kernels[0], Share: map[string]string{"/planted": shared}}, "")
	n := 0
	judge(t, citation.kernel, (*fault).kernel, func(t *testing.T, f *fault, tests []citation) map[citation]string {
		n++
		name := strconv.Itoa(n) // a new name each time, because the guest may cache the old file
		args := []string{"test", "-c", "-tags=rdma", "-vet=off", "-o", filepath.Join(shared, name)}
		if f != nil {
			args = append(args, "-overlay="+f.overlay(t))
		}
		cmd := exec.CommandContext(t.Context(), "go", append(args, module+"cmid/ucm")...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("it does not compile with the fault: %v\n%s", err, out)
		}
		defer os.Remove(filepath.Join(shared, name))
		script := "cd /tmp; exec env"
		for _, word := range append(vm.Env("rxe"), "/planted/"+name, "-test.v", "-test.timeout=5m", "-test.run="+pattern(tests)) {
			script += " " + vm.Quote(word)
		}
		var out string
		if err := b.Try(t, func(m *vm.Machine) error {
			r, err := m.Run(t.Context(), script)
			out = r.Output
			return err
		}); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return outcomes(out, tests)
	})
}

// outcomes parses the output of a test binary with -test.v. A test that started and did not end has
// failed, and ended the others.
func outcomes(out string, tests []citation) map[citation]string {
	said := map[string]string{}
	for line := range strings.Lines(out) {
		word := strings.Fields(line)
		switch {
		case len(word) > 2 && word[0] == "===" && word[1] == "RUN":
			said[word[2]] = "fail"
		case len(word) > 2 && word[0] == "---":
			said[word[2]] = strings.ToLower(strings.TrimSuffix(word[1], ":"))
		}
	}
	all := map[citation]string{}
	for _, c := range tests {
		all[c] = "not run"
		if outcome, ok := said[c.test]; ok {
			all[c] = outcome
		}
	}
	return all
}
