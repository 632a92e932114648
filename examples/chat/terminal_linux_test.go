package main

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

// screen is a chat on a pseudo terminal, and all it has written.
type screen struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	mu     sync.Mutex
	out    bytes.Buffer
	read   chan struct{}
}

func startOnTerminal(t *testing.T, args ...string) *screen {
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
	defer slave.Close()
	s := &screen{t: t, master: master, cmd: exec.Command(os.Args[0], args...), read: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), asChat+"=1")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.copy()
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
		<-s.read // the terminal reports an error once nobody has it open
		master.Close()
	})
	return s
}

func (s *screen) copy() {
	defer close(s.read)
	b := make([]byte, 4096)
	for {
		n, err := s.master.Read(b)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.out.Write(b[:n])
		s.mu.Unlock()
	}
}

func (s *screen) keys(k string) {
	s.t.Helper()
	if _, err := s.master.WriteString(k); err != nil {
		s.t.Fatal(err)
	}
}

// want waits until what was written since the last want contains text, and forgets it.
func (s *screen) want(text, why string) string {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		s.mu.Lock()
		got := s.out.String()
		if i := strings.Index(got, text); i >= 0 {
			s.out.Next(i + len(text))
			s.mu.Unlock()
			return got[:i+len(text)]
		}
		s.mu.Unlock()
		if time.Now().After(deadline) {
			s.t.Fatalf("the screen never shows %q (%s), but %q", text, why, got)
		}
		time.Sleep(5 * time.Millisecond) // a real terminal and a real process: nothing to wait on
	}
}

func TestTerminal(t *testing.T) {
	addr := freeAddr(t)
	start(t, "host", "serve", "--addr", addr).want("hosting on", "it listens")
	bob := start(t, "bob", "join", addr, "--nick", "bob")
	bob.want("you are bob", "connected")
	ann := startOnTerminal(t, "join", addr, "--nick", "ann")
	ann.want("you are ann", "connected")

	ann.keys("helo")
	ann.want("helo", "what is typed is shown")
	ann.keys("\x1b[Dl") // go left, insert: the rest is drawn again, and the cursor goes back
	ann.want("lo\x1b[D", "the line is being edited")
	bob.say("meanwhile")
	// The terminal takes the half-typed line away, prints the chat, and draws prompt and line again.
	ann.want("[lobby] bob: meanwhile\r\n", "the chat goes on above the prompt")
	ann.want("> hello", "what was typed is still there, in one piece")
	ann.keys("\r")
	bob.want("[lobby] ann: hello", "the edited line")
	ann.keys("\x1b[A\r") // the line before, from the history
	bob.want("[lobby] ann: hello", "the history")
	ann.keys("/help\r")
	ann.want("/msg NAME TEXT", "help")
	ann.keys("\x03")
	bob.want("ann left", "Ctrl-C leaves")
	if err := ann.cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C ends the program cleanly: %v", err)
	}
}
