package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
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
	// The terminal takes the half-typed line away, prints the chat, and draws prompt and line
	// again.
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

// stop has a process stand still. Until all its threads do, it may take what is sent.
func stop(t *testing.T, p *process) {
	t.Helper()
	if err := p.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil {
		t.Fatal(err)
	}
}

// exit waits for the end, and gives what was shown.
func (s *screen) exit(why string) (state *os.ProcessState, shown string) {
	s.t.Helper()
	stuck := time.AfterFunc(30*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait() // the state says how it ended
	if !stuck.Stop() {
		s.t.Fatalf("%s: it does not end", why)
	}
	<-s.read
	return s.cmd.ProcessState, s.out.String()
}

// A person can leave at every stage, however much is typed that does not get away.
func TestTerminalCanBeLeft(t *testing.T) {
	const ctrlC, ctrlD = "\x03", "\x04"
	enter := func(t *testing.T) (host *process, ann *screen) {
		host = start(t, "host", "serve", "127.0.0.1:0")
		line := host.want("join with: chat join ", "it listens")
		ann = startOnTerminal(t, "join", line[strings.LastIndex(line, " ")+1:], "--nick", "ann")
		ann.want("you are ann", "connected")
		return host, ann
	}
	for name, keys := range map[string]string{"Ctrl-C": ctrlC, "Ctrl-D": ctrlD, "quit": "/quit\r"} {
		t.Run("server gone, "+name, func(t *testing.T) {
			host, ann := enter(t)
			_ = host.cmd.Process.Kill()
			ann.want("trying again", "the server has gone")
			ann.keys(strings.Repeat("line\r", 70) + keys)
			state, shown := ann.exit(name)
			if state.ExitCode() != 1 || !strings.Contains(shown, "64 lines not sent") {
				t.Errorf("%v, and it shows %q", state, shown)
			}
		})
		t.Run("server stalled, "+name, func(t *testing.T) {
			host, ann := enter(t)
			stop(t, host)
			ann.keys(strings.Repeat("line\r", 40) + keys)
			state, shown := ann.exit(name)
			if state.ExitCode() != 1 || !strings.Contains(shown, "does not take what is sent") {
				t.Errorf("%v, and it shows %q", state, shown)
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		host, ann := enter(t)
		stop(t, host)
		begin := time.Now()
		ann.keys(strings.Repeat("line\r", 40) + ctrlC)
		ann.want("leaving when", "lines wait")
		ann.keys(ctrlC)
		state, shown := ann.exit("a second Ctrl-C")
		// It may have left by itself, on a machine that was busy for so long.
		if status := state.Sys().(syscall.WaitStatus); !status.Signaled() && time.Since(begin) < leaveFor {
			t.Errorf("%v, and it shows %q", state, shown)
		}
	})
}
