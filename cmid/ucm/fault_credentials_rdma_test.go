//go:build linux && rdma

package ucm_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// changeCredentials gives each thread of the process separate credentials, equal as they are: the
// kernel compares by identity.
func changeCredentials(t *testing.T) {
	t.Helper()
	var ready, done sync.WaitGroup
	ready.Add(8)
	for range 8 { // there are some threads
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait()
		})
	}
	done.Wait()
	if err := syscall.Setuid(os.Getuid()); err != nil {
		t.Fatal(err)
	}
}

func wantCredentials(t *testing.T, what string, err error) {
	t.Helper()
	var c *verbs.CredentialsError
	if !errors.As(err, &c) || !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "exec") {
		t.Errorf("%s: %v; want a CredentialsError, which is EACCES and says the way out", what, err)
	}
}

// A process that has changed its credentials is not given a channel: some of its threads could use
// it, some could not.
func TestFaultCredentialsBefore(t *testing.T) {
	if os.Getenv("FAULT_CREDENTIALS") != "" {
		changeCredentials(t)
		wantCredentials(t, "open", opening(t))
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestFaultCredentialsBefore$", "-test.v")
	overdue := time.AfterFunc(faultPatience, func() { _ = cmd.Process.Kill() })
	defer overdue.Stop()
	cmd.Env = append(os.Environ(), "FAULT_CREDENTIALS=before")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestFaultCredentialsBefore") {
		t.Errorf("%v\n%s", err, out)
	}
}

// When a process changes its credentials afterwards, everything that it has there ends in words,
// and the kernel keeps nothing of it.
func TestFaultCredentialsAfter(t *testing.T) {
	leavesNothing(t)
	p := startProcess(t, "credentials")
	overdue := time.AfterFunc(faultPatience, p.shoot)
	defer overdue.Stop()
	port, err := strconv.ParseUint(p.hears("port"), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	p.hears("destroyed")
	s := newSide(t)
	defer s.close()
	l := s.create(cmid.PortSpaceTCP)
	s.must(l.BindAddr(cmid.AddrFrom(addr(t, "RDMA_ADDR"), uint16(port)))) // an unused port
	s.must(l.Listen(0))
	p.hears("ready")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the process: %v", err)
	}
}

// changesCredentials runs in that process.
func changesCredentials(s *side, _ cmid.Addr) {
	l := s.listen("RDMA_ADDR", 0)
	a, b := pair(s, s, l)
	exchange(s, a, b)
	say("port", l.SrcPort())
	changeCredentials(s.T)
	s.destroy(l)
	say("destroyed")
	for _, c := range []*conn{a, b} {
		wantCredentials(s.T, "the connection", await[*cmid.DeviceRemoval](s, c.id).Err)
		s.destroy(c.id)
	}
	_, err := s.ch.CreateID(cmid.PortSpaceTCP)
	wantCredentials(s.T, "create_id", err)
	s.close()
	say("ready")
	if s.Failed() {
		os.Exit(1)
	}
	os.Exit(0)
}
