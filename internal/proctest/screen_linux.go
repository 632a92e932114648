package proctest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Screen is a process at a terminal, and all that it has written.
type Screen struct {
	Name string

	t      testing.TB
	master *os.File
	cmd    *exec.Cmd
	read   chan struct{}
	gate   sync.Mutex // locked: the output is not read
	stuck  bool
	mu     sync.Mutex
	out    bytes.Buffer
}

// StartAtTerminal starts a process, which is killed when the test ends.
func StartAtTerminal(t testing.TB, name string, cfg Config) *Screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slave.Close() }()
	s := &Screen{Name: name, t: t, master: master, cmd: newCommand(cfg), read: make(chan struct{})}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: unix.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.copyOutput()
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
		s.resumeReading()
		<-s.read // the terminal reports an error once it is no longer open
		_ = master.Close()
	})
	return s
}

func (s *Screen) copyOutput() {
	defer close(s.read)
	b := make([]byte, 4096)
	for {
		s.gate.Lock()
		s.gate.Unlock() //nolint:staticcheck // it only waits
		n, err := s.master.Read(b)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.out.Write(b[:n])
		s.mu.Unlock()
	}
}

// Stick stops reading the output until the process ends.
func (s *Screen) Stick() {
	s.gate.Lock()
	s.stuck = true
}

func (s *Screen) resumeReading() {
	if s.stuck {
		s.stuck = false
		s.gate.Unlock()
	}
}

// Keys presses keys.
func (s *Screen) Keys(k string) {
	s.t.Helper()
	if _, err := s.master.WriteString(k); err != nil {
		s.t.Fatal(err)
	}
}

// Resize gives the terminal another size.
func (s *Screen) Resize(columns, lines int) {
	s.t.Helper()
	size := &unix.Winsize{Col: uint16(columns), Row: uint16(lines)}
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, size); err != nil {
		s.t.Fatal(err)
	}
}

// Want waits until the output since the last Want contains text, and discards it up to there.
func (s *Screen) Want(text, why string) string {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		s.mu.Lock()
		got := s.out.String()
		if i := strings.Index(got, text); i >= 0 {
			s.out.Next(i + len(text))
			s.mu.Unlock()
			return got[:i+len(text)]
		}
		s.mu.Unlock()
		if time.Now().After(deadline) {
			s.t.Fatalf("the screen of %s never shows %q (%s), but %q", s.Name, text, why, got)
		}
		time.Sleep(5 * time.Millisecond) // a real terminal and a real process: nothing to wait on
	}
}

// Signal sends a signal.
func (s *Screen) Signal(sig unix.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("%s: %v", s.Name, err)
	}
}

// Exit waits for its end, and returns its state and the remaining output.
func (s *Screen) Exit(why string) (state *os.ProcessState, shown string) {
	s.t.Helper()
	stuck := time.AfterFunc(patience+10*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait() // the state has the outcome
	if !stuck.Stop() {
		s.t.Fatalf("%s: %s does not end", why, s.Name)
	}
	s.resumeReading()
	<-s.read
	return s.cmd.ProcessState, s.out.String()
}
