// Package proctest runs the processes of a test: each is this test binary, which its environment
// has do something else, on pipes or at a terminal.
package proctest

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience limits the waits of a test, for a busy machine.
const patience = 2 * time.Minute

// Config is a process as a test wants it.
type Config struct {
	Program string // "": this test binary
	Args    []string
	Env     []string // added to this process's
}

// Process is a process on pipes. Its output arrives line by line.
type Process struct {
	Name string
	Seen []string // lines that no call waited for

	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
	ended bool
}

// Start starts a process, which is killed when the test ends.
func Start(t testing.TB, name string, cfg Config) *Process {
	t.Helper()
	p := &Process{Name: name, t: t, cmd: newCommand(cfg), lines: make(chan string, 4096)}
	tieToParent(p.cmd)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		if !p.ended {
			_ = p.cmd.Process.Kill()
		}
		_ = p.cmd.Wait()
		_ = out.Close()
		for range p.lines { // a child of the process may still write
		}
		<-read
	})
	return p
}

func newCommand(cfg Config) *exec.Cmd {
	cmd := exec.Command(cmp.Or(cfg.Program, os.Args[0]), cfg.Args...)
	cmd.Env = append(os.Environ(), cfg.Env...)
	return cmd
}

// Say writes a line to its standard input.
func (p *Process) Say(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		p.t.Fatalf("%s: %v", p.Name, err)
	}
}

// CloseInput ends its standard input.
func (p *Process) CloseInput() { _ = p.stdin.Close() }

// Next waits for a line that contains text. The lines before are Seen. The error is io.EOF, or
// os.ErrDeadlineExceeded.
func (p *Process) Next(text string, within time.Duration) (string, error) {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		select {
		case l, ok := <-p.lines:
			switch {
			case !ok:
				return "", io.EOF
			case strings.Contains(l, text):
				return l, nil
			}
			p.Seen = append(p.Seen, l)
		case <-late.C:
			return "", os.ErrDeadlineExceeded
		}
	}
}

// Want waits for a line that contains text, and gives it.
func (p *Process) Want(text, why string) string {
	p.t.Helper()
	l, err := p.Next(text, patience)
	if err != nil {
		p.t.Fatalf("%s never wrote %q (%s): %v; it wrote %q", p.Name, text, why, err, p.Seen)
	}
	return l
}

// Signal sends a signal.
func (p *Process) Signal(s unix.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.Name, err)
	}
}

// Kill kills it, and returns when it is gone.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(unix.SIGKILL)
	p.awaitEnd("it was killed")
}

// awaitEnd waits for the process's end. Its remaining output is in Seen.
func (p *Process) awaitEnd(why string) {
	p.t.Helper()
	if _, err := p.Next("\x00", patience); err != io.EOF { //nolint:errorlint // Next gives it as it is
		p.t.Fatalf("%s does not end (%s); it wrote %q", p.Name, why, p.Seen)
	}
	p.ended = true
	_ = p.cmd.Wait() // the state has the outcome
}

// Exit waits for its end, and checks its code; -1 is a signal. It gives the lines that were still
// written.
func (p *Process) Exit(code int, why string) (rest []string) {
	p.t.Helper()
	n := len(p.Seen)
	p.awaitEnd(why)
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("%s ended with code %d, want %d (%s); it wrote %q", p.Name, got, code, why, p.Seen)
	}
	return p.Seen[n:]
}

// chosen are the ports that FreeAddrsOf has returned to running tests: a test that runs in parallel
// must not get one again before a process listens there.
var chosen sync.Map

// FreeAddrs returns addresses of loopback with no listener, neither at their ports nor at the ports
// at the given offsets. They are outside of the range of ephemeral ports, so that no connection
// takes them before a process listens there. Until the test ends, no other call returns them.
func FreeAddrs(t testing.TB, n int, offsets ...int) (addrs []string) {
	t.Helper()
	return FreeAddrsOf(t, "127.0.0.1", n, offsets...)
}

// FreeAddrsOf is FreeAddrs for another address of this machine.
func FreeAddrsOf(t testing.TB, host string, n int, offsets ...int) (addrs []string) {
	t.Helper()
	for i := 0; len(addrs) < n; i++ {
		port := 10000 + rand.IntN(20000)
		free := true
		for _, offset := range append([]int{0}, offsets...) {
			if _, taken := chosen.LoadOrStore(port+offset, true); taken {
				free = false
				continue
			}
			t.Cleanup(func() { chosen.Delete(port + offset) })
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port+offset)))
			if err == nil {
				_ = l.Close() // it accepted nothing
			} else if free = false; i > 1000 {
				t.Fatal(err)
			}
		}
		if free {
			addrs = append(addrs, net.JoinHostPort(host, strconv.Itoa(port)))
		}
	}
	return addrs
}
