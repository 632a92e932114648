//go:build vm

package vm_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/lab/vm"
	"github.com/rdmactor/rdmactor/lab/vm/vmtest"
)

// withoutInitrd replaces QEMU. The first %[1]d machines get no initrd, so that their kernels panic
// while they boot. Each machine leaves a file in %[2]s. %[3]s is QEMU.
const withoutInitrd = `#!/bin/bash
mktemp %[2]s/XXXXXX >/dev/null
started=(%[2]s/*)
args=("$@")
for i in "${!args[@]}"; do
  if [ "${args[i]}" = -initrd ] && [ ${#started[@]} -le %[1]d ]; then
    unset "args[i]" "args[i+1]"
  fi
done
exec %[3]s "${args[@]}"
`

// fatal is the last message of a kernel without an initrd.
const fatal = "Unable to mount root fs"

// dying makes the first machines die while they boot. started returns how many machines have been
// started.
func dying(t *testing.T, first int) (started func() int) {
	t.Helper()
	const name = "qemu-system-x86_64"
	qemu, err := exec.LookPath(name)
	if err != nil {
		vmtest.Boot(t, vm.Config{Kernel: vm.Kernels[0]}) // installs QEMU if necessary
		if qemu, err = exec.LookPath(name); err != nil {
			t.Fatal(err)
		}
	}
	bin, count := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, name), fmt.Appendf(nil, withoutInitrd, first, count, qemu), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return func() int {
		files, err := os.ReadDir(count)
		if err != nil {
			t.Error(err)
		}
		return len(files)
	}
}

func TestAnotherBootAfterDeaths(t *testing.T) {
	started := dying(t, 2)
	var said []string
	m, err := vm.Boot(t.Context(), vm.Config{Kernel: vm.Kernels[0], Logf: func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if started() != 3 {
		t.Errorf("%d machines were started, want 3", started())
	}
	if r, err := m.Run(t.Context(), "echo alive"); err != nil || r.Output != "alive\n" {
		t.Errorf("the third machine: %+v, %v", r, err)
	}
	deaths := 0
	for _, s := range said {
		if strings.Contains(s, vm.ErrDied.Error()) && strings.Contains(s, fatal) {
			deaths++
		}
	}
	if deaths != 2 {
		t.Errorf("the log shows %d deaths with their consoles, want 2:\n%s", deaths, strings.Join(said, "\n"))
	}
}

func TestBootGivesUp(t *testing.T) {
	started := dying(t, 100)
	m, err := vm.Boot(t.Context(), vm.Config{Kernel: vm.Kernels[0]})
	if m != nil || !errors.Is(err, vm.ErrDied) || !strings.Contains(err.Error(), fatal) {
		t.Errorf("machine %v, want an error with the console: %v", m, err)
	}
	if started() != 3 {
		t.Errorf("%d machines were started, want 3", started())
	}
}
