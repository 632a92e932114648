//go:build linux && rdma

package native

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/kernelrig"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// openIt opens the machine's device as a program does.
func openIt(t *testing.T) (verbs.ProviderDevice, error) {
	t.Helper()
	l, err := eventloop.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Shutdown(t.Context()) })
	d, err := Provider{}.Open(l, verbs.DeviceIdent{Name: kernelrig.Env(t, "RDMA_DEVICE")})
	if err == nil {
		t.Cleanup(func() { _ = d.Close() })
	}
	return d, err
}

// again runs one test of this program in another process, where child returns true.
func again(t *testing.T, change func(*exec.Cmd)) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "NATIVE_CHILD=1")
	change(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func child() bool { return os.Getenv("NATIVE_CHILD") != "" }

// asNobody makes cmd run as an unprivileged user. The kernel's limit does not apply to root.
func asNobody(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// wants checks that an error wraps an errno and that its text contains some words.
func wants(t *testing.T, err error, errno unix.Errno, says ...string) {
	t.Helper()
	if !errors.Is(err, errno) {
		t.Fatalf("%v, want %v", err, errno)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

// theFile returns the device's file.
func theFile(t *testing.T) string {
	t.Helper()
	file := deviceFile(kernelrig.Env(t, "RDMA_DEVICE"))
	if file == "" {
		t.Fatal("the device has no file")
	}
	return file
}

// TestMemlock: a region that RLIMIT_MEMLOCK forbids is refused with advice.
func TestMemlock(t *testing.T) {
	if !child() {
		if err := os.Chmod(theFile(t), 0o666); err != nil {
			t.Fatal(err)
		}
		again(t, asNobody)
		return
	}
	d, err := openIt(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 1 << 18, Max: 1 << 18}); err != nil {
		t.Fatal(err)
	}
	_, err = d.Alloc(1<<20, verbs.LocalWrite)
	var e *uverbs.MemlockError
	if !errors.As(err, &e) {
		t.Fatalf("%v, want a MemlockError", err)
	}
	wants(t, err, unix.ENOMEM, "ibv_reg_mr", "libibverbs.so.1", "ulimit -l")
}

// TestNoPermission: without permission for the file, the error states the cause.
func TestNoPermission(t *testing.T) {
	if !child() {
		file := theFile(t)
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(file, 0o666) }()
		again(t, asNobody)
		return
	}
	_, err := openIt(t)
	wants(t, err, unix.EACCES, "ibv_open_device", "libibverbs.so.1", "permission", "/dev/infiniband")
}

// TestNoFile: a container without the file gets an error with the cause.
func TestNoFile(t *testing.T) {
	file := theFile(t)
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Rename(file+".away", file); err != nil {
			t.Error(err)
		}
	}()
	_, err := openIt(t)
	wants(t, err, unix.ENOENT, file, "container")
}

// TestNoDriver: a device without a driver in the library is named, with what to install.
func TestNoDriver(t *testing.T) {
	if !child() {
		const configs = "/etc/libibverbs.d"
		if err := os.Rename(configs, configs+".away"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.Rename(configs+".away", configs); err != nil {
				t.Error(err)
			}
		}()
		again(t, func(*exec.Cmd) {})
		return
	}
	_, err := openIt(t)
	var e *LibraryError
	if !errors.As(err, &e) {
		t.Fatalf("%v, want a LibraryError", err)
	}
	wants(t, err, unix.ENODEV, "no driver for "+kernelrig.Env(t, "RDMA_DEVICE"), "ibverbs-providers", "/etc/libibverbs.d")
}
