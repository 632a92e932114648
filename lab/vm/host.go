package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

type need struct{ program, pkg string }

var (
	needToRun   = []need{{"qemu-system-x86_64", "qemu-system-x86"}}
	needToBuild = []need{{"gcc", "gcc"}, {"make", "make"}, {"xz", "xz-utils"}, {"zstd", "zstd"}, {"dpkg-deb", "dpkg"}}
)

// installNeeds installs the Debian packages of those programs that are not in the path.
func installNeeds(ctx context.Context, logf func(string, ...any), needs []need) error {
	var pkgs []string
	for _, n := range needs {
		if _, err := exec.LookPath(n.program); err != nil {
			pkgs = append(pkgs, n.pkg)
		}
	}
	if len(pkgs) == 0 {
		return nil
	}
	slices.Sort(pkgs)
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("missing here, to be installed by root: apt-get install --no-install-recommends %s", strings.Join(pkgs, " "))
	}
	logf("vm: installing %s", strings.Join(pkgs, " "))
	if _, err := aptTool(ctx, "", nil, "apt-get", "-q", "update"); err != nil {
		return err
	}
	_, err := aptTool(ctx, "", nil, "apt-get", append([]string{"-q", "-y", "--no-install-recommends", "install"}, pkgs...)...)
	return err
}

func checkSupported() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return errors.New("the VM's kernels and programs come from Debian's amd64 packages: this needs linux/amd64, not " +
			runtime.GOOS + "/" + runtime.GOARCH)
	}
	return nil
}
