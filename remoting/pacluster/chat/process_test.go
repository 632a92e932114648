package main

import (
	"bufio"
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

// process is one member of the chat, a process of its own, which runs this test binary as the chat.
// What it writes comes line by line.
type process struct {
	t     *testing.T
	name  string // of the member; "": whichever is free
	nick  string
	all   []string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
	seen  []string
}

// freeMembers returns names of members that are free, with their ports for HTTP. They are not of
// the ports that connections get, which might take them until a member listens there.
func freeMembers(t *testing.T, n int) (names []string) {
	t.Helper()
	for i := 0; len(names) < n; i++ {
		addr := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			defer l.Close()
			var h net.Listener
			if h, err = net.Listen("tcp", health(addr)); err == nil {
				defer h.Close()
				names = append(names, addr)
			}
		}
		if err != nil && i > 1000 {
			t.Fatal(err)
		}
	}
	return names
}

func start(t *testing.T, all []string, name, nick string, more ...string) *process {
	t.Helper()
	args := append([]string{"--members", strings.Join(all, ","), "--nick", nick}, more...)
	if name != "" {
		args = append(args, name)
	}
	p := &process{t: t, name: name, nick: nick, all: all, cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 4096)}
	p.cmd.Env = append(os.Environ(), asChat+"=1", "GORACE=exitcode=0 log_path=/dev/null")
	p.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
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
	in.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		out.Close()
		<-read
	})
	return p
}

func (p *process) say(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		p.t.Fatalf("%s: %v", p.nick, err)
	}
}

// want waits for a line that contains text, and gives it. Lines before it are kept in seen.
func (p *process) want(text, why string) string {
	p.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case l, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("%s ended before %q (%s); it wrote %q", p.nick, text, why, p.seen)
			}
			if strings.Contains(l, text) {
				return l
			}
			p.seen = append(p.seen, l)
		case <-deadline:
			p.t.Fatalf("%s never wrote %q (%s); it wrote %q", p.nick, text, why, p.seen)
		}
	}
}

// next waits for a line that contains text, for a while.
func (p *process) next(text string, within time.Duration) bool {
	deadline := time.After(within)
	for {
		select {
		case l := <-p.lines:
			if strings.Contains(l, text) {
				return true
			}
			p.seen = append(p.seen, l)
		case <-deadline:
			return false
		}
	}
}

// sawNot checks the lines that no want has wanted.
func (p *process) sawNot(texts ...string) {
	p.t.Helper()
	for _, l := range p.seen {
		for _, text := range texts {
			if strings.Contains(l, text) {
				p.t.Errorf("%s saw %q", p.nick, l)
			}
		}
	}
}

// exit waits for the end, and gives the lines that were still written.
func (p *process) exit(code int, why string) {
	p.t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case l, ok := <-p.lines:
			if ok {
				p.seen = append(p.seen, l)
				continue
			}
		case <-timeout:
			p.t.Fatalf("%s does not end (%s); it wrote %q", p.nick, why, p.seen)
		}
		break
	}
	_ = p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("%s ended with code %d, want %d (%s); it wrote %q", p.nick, got, code, why, p.seen)
	}
}

func (p *process) signal(s unix.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) freeze() {
	p.t.Helper()
	p.signal(unix.SIGSTOP)
	if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil {
		p.t.Fatal(err)
	}
}

// three starts three members, with a person each, who all see one another in the lobby.
func three(t *testing.T) (people []*process) {
	t.Helper()
	all := freeMembers(t, 3)
	for i, nick := range []string{"ann", "bob", "cat"} {
		people = append(people, start(t, all, all[i], nick))
	}
	for _, p := range people {
		p.want("you are "+p.nick+" in lobby", "it has joined")
	}
	together(people...)
	return people
}

// together waits until all are members of one cluster, in one room.
func together(people ...*process) {
	for _, p := range people {
		p.t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			p.say("/who")
			line := p.want("* in ", "who is there")
			if strings.Count(line, ",") == len(people)-1 {
				break
			}
			if time.Now().After(deadline) {
				p.t.Fatalf("%s sees %q", p.nick, line)
			}
		}
	}
}

// split gives who has the room on their process, and the others.
func split(people []*process) (host *process, others []*process) {
	people[0].t.Helper()
	people[0].say("/where")
	line := people[0].want("-- lobby is at ", "where the room is")
	for _, p := range people {
		if strings.Contains(line, "lobby is at "+p.name+",") {
			host = p
		} else {
			others = append(others, p)
		}
	}
	if host == nil {
		people[0].t.Fatalf("nobody has the room: %q", line)
	}
	return host, others
}
