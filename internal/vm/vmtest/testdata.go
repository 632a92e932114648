package vmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/vm"
)

// putTestdata copies a package's testdata, if it has any, to where its tests look for it.
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
