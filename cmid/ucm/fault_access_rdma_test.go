//go:build linux && rdma

package ucm_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
)

const cmFile = "/dev/infiniband/rdma_cm"

// wantErrno compares an error with its errno and with parts of its text.
func wantErrno(t *testing.T, err error, errno unix.Errno, says ...string) {
	t.Helper()
	if !errors.Is(err, errno) {
		t.Errorf("got %v, want %v", err, errno)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

// without moves a file away while do runs.
func without(t *testing.T, file string, do func()) {
	t.Helper()
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Rename(file+".away", file); err != nil {
			t.Error(err)
		}
	}()
	do()
}

// mode changes a file's mode for a while.
func mode(t *testing.T, file string, m fs.FileMode) {
	t.Helper()
	st, err := os.Stat(file)
	if err == nil {
		err = os.Chmod(file, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(file, st.Mode().Perm()); err != nil {
			t.Error(err)
		}
	})
}

// dataFile returns the file of the device's data path.
func dataFile(t *testing.T) string {
	t.Helper()
	names, _ := filepath.Glob("/sys/class/infiniband_verbs/*/ibdev")
	for _, n := range names {
		if text, err := os.ReadFile(n); err == nil && strings.TrimSpace(string(text)) == env(t, "RDMA_DEVICE") {
			return "/dev/infiniband/" + filepath.Base(filepath.Dir(n))
		}
	}
	t.Fatalf("%s has no data path", env(t, "RDMA_DEVICE"))
	return ""
}

// command runs a program that has to succeed.
func command(t *testing.T, words ...string) {
	t.Helper()
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", words, err, out)
	}
}

func opening(t *testing.T) error {
	t.Helper()
	ch, err := cmid.OpenChannel(driver())
	if err == nil {
		err = ch.Close()
	}
	return err
}

// The missing file is named.
func TestFaultFilesMissing(t *testing.T) {
	leavesNothing(t)
	without(t, cmFile, func() {
		err := opening(t)
		wantErrno(t, err, unix.ENOENT, cmFile, "the kernel has rdma_cm, but its file is not there", "udev")
		var e *ucm.OpenError
		if !errors.As(err, &e) || e.Path != cmFile {
			t.Errorf("%#v names no file", err)
		}
	})
	if err := opening(t); err != nil {
		t.Fatal(err)
	}
	data := dataFile(t)
	without(t, data, func() {
		s := newSide(t)
		defer s.close()
		l := s.listen("RDMA_ADDR", 0) // connections can be made
		_, err := l.Device().CreateCQ(1, func() {})
		wantErrno(t, err, unix.ENOENT, env(t, "RDMA_DEVICE"), data, "no data path", "udev")
	})
}

// withoutModprobe hides the modules from the kernel while do runs.
func withoutModprobe(t *testing.T, do func()) {
	t.Helper()
	const file = "/proc/sys/kernel/modprobe"
	was, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte("/bin/false\n"), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.WriteFile(file, was, 0); err != nil {
			t.Error(err)
		}
	}()
	do()
}

// Modules that are missing are loaded, or named.
func TestFaultModulesMissing(t *testing.T) {
	withoutModprobe(t, func() {
		command(t, "rmmod", "rdma_ucm")
		wantErrno(t, opening(t), unix.ENOENT, "the kernel module rdma_ucm is missing", "modprobe rdma_ucm")
	})
	if err := opening(t); err != nil {
		t.Errorf("the kernel finds its module again: %v", err)
	}
	command(t, "rmmod", "rdma_rxe", "siw")
	s := newSide(t)
	id := s.create(cmid.PortSpaceTCP)
	wantErrno(t, id.BindAddr(cmid.AddrFrom(addr(t, "RDMA_ADDR"), anyPort)), unix.ENODEV, "no RDMA device", "rdma link add")
	s.close()
	withoutModprobe(t, func() {
		command(t, "rmmod", "rdma_ucm", "ib_umad", "ib_uverbs", "rdma_cm", "ib_cm", "iw_cm", "ib_core")
		if err := opening(t); err == nil || !strings.Contains(err.Error(), "this kernel has no RDMA") {
			t.Errorf("got %v", err)
		}
	})
	command(t, "modprobe", "-a", "ib_umad", "rdma_rxe", "siw", "rdma_ucm")
	command(t, "rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "rx0")
	command(t, "rdma", "link", "add", "siw0", "type", "siw", "netdev", "sw0")
	command(t, "rig-active", "rxe0", "siw0")
	works(t)
}

// works makes a connection, and sends on it.
func works(t *testing.T) {
	t.Helper()
	s := newSide(t)
	l := s.listen("RDMA_ADDR", 0)
	a, b := pair(s, s, l)
	a.talk(slots)
	s.until("messages there", func() bool { return b.received == slots })
	b.talk(0)
	s.until("messages back", func() bool { return a.received == slots })
	s.must(a.id.Disconnect())
	await[*cmid.Disconnected](s, b.id)
	s.destroy(b.id)
	s.destroy(a.id)
	s.close()
}

const nobody = 65534

// TestFaultUser runs as a user who may only open the files.
func TestFaultUser(t *testing.T) {
	data := dataFile(t)
	if what := os.Getenv("FAULT_USER"); what != "" {
		asUser(t, what)
		return
	}
	leavesNothing(t)
	for _, c := range []struct {
		what         string
		cmMode, data fs.FileMode
	}{{"works", 0o666, 0o666}, {"no control path", 0o600, 0o666}, {"no data path", 0o666, 0o600}} {
		t.Run(c.what, func(t *testing.T) {
			mode(t, cmFile, c.cmMode)
			mode(t, data, c.data)
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestFaultUser$", "-test.v")
			cmd.Env = append(os.Environ(), "FAULT_USER="+c.what)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestFaultUser") {
				t.Errorf("as user %d: %v\n%s", nobody, err, out)
			}
		})
	}
}

func asUser(t *testing.T, what string) {
	t.Helper()
	if os.Getuid() != nobody {
		t.Fatalf("runs as user %d", os.Getuid())
	}
	switch what {
	case "works":
		works(t)
	case "no control path":
		wantErrno(t, opening(t), unix.EACCES, cmFile, "user 65534 may not open it", "chmod 666")
	case "no data path":
		s := newSide(t)
		defer s.close()
		_, err := s.listen("RDMA_ADDR", 0).Device().CreateCQ(1, func() {})
		wantErrno(t, err, unix.EACCES, dataFile(t), "read and write permission is needed")
	}
	if what == "no control path" {
		return
	}
	s := newSide(t)
	defer s.close()
	low := s.create(cmid.PortSpaceTCP)
	wantErrno(t, low.BindAddr(cmid.AddrFrom(addr(t, "RDMA_ADDR"), 80)), unix.EACCES)
}
