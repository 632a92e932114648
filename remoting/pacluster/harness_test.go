package pacluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// child is a member's process, as a test has it.
type child struct {
	t     *testing.T
	role  role
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
	seen  []string // lines that no want has wanted yet
	ended bool
}

// freeAddrs returns addresses of loopback that nobody listens at. They are not of the ports that
// connections get, which might take them until a member listens there.
func freeAddrs(t *testing.T, n int) []string {
	t.Helper()
	var addrs []string
	for i := 0; len(addrs) < n; i++ {
		addr := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			if i > 1000 {
				t.Fatal(err)
			}
			continue
		}
		defer l.Close()
		addrs = append(addrs, addr)
	}
	return addrs
}

// roles are those of n members of one cluster.
func roles(t *testing.T, n int) []role {
	t.Helper()
	addrs := freeAddrs(t, 2*n)
	var all []role
	for i := range n {
		all = append(all, role{Name: addrs[i], Health: append(append([]string{}, addrs[n+i:]...), addrs[n:n+i]...)})
	}
	return all
}

// startAll starts members at the same time, and waits until each knows all.
func startAll(t *testing.T, all ...role) []*child {
	t.Helper()
	var members []*child
	var names []string
	for _, r := range all {
		members = append(members, start(t, r))
		if !r.Client {
			names = append(names, r.Name)
		}
	}
	for _, c := range members {
		c.want("= member ", "it has started")
		c.knows(names...)
	}
	return members
}

func start(t *testing.T, r role) *child {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, role: r, cmd: exec.Command(os.Args[0]), lines: make(chan string, 4096)}
	c.cmd.Env = append(os.Environ(), asMember+"="+string(text), raceLogs(t))
	c.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		if !c.ended {
			_ = c.cmd.Process.Kill()
		}
		<-read
		_ = c.cmd.Wait()
	})
	return c
}

// want waits for a line that contains text, and gives what is behind it. Other lines are kept.
func (c *child) want(text, why string) string {
	c.t.Helper()
	l, err := c.next(text, 20*time.Second)
	if err != nil {
		c.t.Fatalf("%s: %q never came (%s): %v; it wrote %q", c.role.Name, text, why, err, c.seen)
	}
	return l
}

func (c *child) next(text string, within time.Duration) (string, error) {
	for i, l := range c.seen {
		if _, rest, ok := strings.Cut(l, text); ok {
			c.seen = append(c.seen[:i], c.seen[i+1:]...)
			return rest, nil
		}
	}
	deadline := time.After(within)
	for {
		select {
		case l, ok := <-c.lines:
			if !ok {
				return "", io.EOF
			}
			if _, rest, ok := strings.Cut(l, text); ok {
				return rest, nil
			}
			c.seen = append(c.seen, l)
		case <-deadline:
			return "", os.ErrDeadlineExceeded
		}
	}
}

// never checks that no line so far contains text.
func (c *child) never(text, why string) {
	c.t.Helper()
	if l, err := c.next(text, 0); err == nil {
		c.t.Errorf("%s wrote %q%q (%s)", c.role.Name, text, l, why)
	}
}

// begin sends a command; its answer is for ends.
func (c *child) begin(format string, args ...any) (command string) {
	c.t.Helper()
	command = fmt.Sprintf(format, args...)
	if _, err := io.WriteString(c.stdin, command+"\n"); err != nil {
		c.t.Fatalf("%s: %v", c.role.Name, err)
	}
	return command
}

func (c *child) ends(command string) string {
	c.t.Helper()
	return c.want("= "+command+": ", "the answer")
}

// do sends a command, and gives its answer.
func (c *child) do(format string, args ...any) string {
	c.t.Helper()
	return c.ends(c.begin(format, args...))
}

// until repeats a command until its answer is the one that is wanted.
func (c *child) until(answer, format string, args ...any) {
	c.t.Helper()
	var got string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got = c.do(format, args...); got == answer {
			return
		}
	}
	c.t.Fatalf("%s: %s is %q, and never %q", c.role.Name, fmt.Sprintf(format, args...), got, answer)
}

// knows waits until the member knows these members, and no others.
func (c *child) knows(names ...string) {
	c.t.Helper()
	c.until(sorted(names...), "members")
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// kill kills the process, and returns when it is gone.
func (c *child) kill() {
	c.t.Helper()
	c.signal(unix.SIGKILL)
	c.ended = true
	for range c.lines {
	}
}

// freeze has all its threads stand still.
func (c *child) freeze() {
	c.t.Helper()
	c.signal(unix.SIGSTOP)
	if err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil {
		c.t.Fatal(err)
	}
}

// leaves terminates the process, and waits for its end.
func (c *child) leaves() {
	c.t.Helper()
	c.signal(unix.SIGTERM)
	c.left()
}

// left waits for the end of a process that was terminated, and checks that it is in order.
func (c *child) left() {
	c.t.Helper()
	c.want("= left", "it ends in order")
	c.ended = true
	for l := range c.lines {
		c.seen = append(c.seen, l)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("%s: %v; it wrote %q", c.role.Name, err, c.seen)
	}
}

// silent checks that gRPC was not used.
func silent(members ...*child) {
	for _, c := range members {
		c.t.Helper()
		if got := c.do("streams"); got != "0 0 0" {
			c.t.Errorf("%s: gRPC streams, dials and connections are %s", c.role.Name, got)
		}
	}
}
