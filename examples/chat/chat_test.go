package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/examples/chat/room"
	"github.com/rdmactor/rdmactor/internal/leak"
)

// These tests run the chat end to end. Each part is a process of its own, which runs this test
// binary as the chat.

const asChat = "RUN_AS_CHAT"

func TestMain(m *testing.M) {
	if os.Getenv(asChat) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(leak.Settled{M: m})
}

// process is one running chat. What it writes to standard output and standard error comes line by
// line.
type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
}

func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return startTo(t, nil, name, args...)
}

// startTo starts a process with stdout as its standard output, if that is given.
func startTo(t *testing.T, stdout *os.File, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 4096)}
	p.cmd.Env = append(os.Environ(), asChat+"=1")
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
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

func (p *process) say(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, s+"\n"); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// want waits for a line that contains s.
func (p *process) want(s, why string) string {
	p.t.Helper()
	deadline := time.After(20 * time.Second)
	var seen []string
	for {
		select {
		case l, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("%s ended before %q (%s); it wrote %q", p.name, s, why, seen)
			}
			if strings.Contains(l, s) {
				return l
			}
			seen = append(seen, l)
		case <-deadline:
			p.t.Fatalf("%s never wrote %q (%s); it wrote %q", p.name, s, why, seen)
		}
	}
}

// exit waits for the end and checks the code. It gives what was still written.
func (p *process) exit(code int, why string) []string {
	p.t.Helper()
	var rest []string
	timeout := time.After(20 * time.Second)
	for {
		select {
		case l, ok := <-p.lines:
			if ok {
				rest = append(rest, l)
				continue
			}
		case <-timeout:
			p.t.Fatalf("%s does not end (%s)", p.name, why)
		}
		break
	}
	_ = p.cmd.Wait() // the code says how it ended
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("%s ended with code %d, want %d (%s); it wrote %q", p.name, got, code, why, rest)
	}
	return rest
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestEndToEnd(t *testing.T) {
	addr := freeAddr(t)
	host := start(t, "host", "serve", "--addr", addr)
	host.want("hosting on", "it listens")

	ann := start(t, "ann", "join", addr, "--nick", "ann")
	ann.want("you are ann in lobby", "the server welcomes")
	bob := start(t, "bob", "join", addr, "--nick", "bob", "--room", room.Lobby)
	bob.want("you are bob in lobby with 1 other;", "the server welcomes")
	ann.want("bob joined", "a join is announced")

	ann.say("hello \x1b[2Jbob")
	if l := bob.want("hello", "a line travels"); l != "[lobby] ann: hello [2Jbob" {
		t.Errorf("bob saw %q: control characters must go", l)
	}
	bob.say("/msg ann psst")
	ann.want("(private) bob: psst", "a private message")
	bob.say("/room cellar")
	bob.want("you are bob in cellar", "moving")
	ann.want("bob went to cellar", "moving is announced")
	bob.say("/help")
	bob.want("/nick NAME", "help")
	bob.say("/nick bobby")
	bob.want("bob is now bobby", "renaming")

	late := start(t, "late", "join", addr, "--nick", "late")
	late.want("(earlier) [lobby] ann: hello", "history for who comes late")
	late.stdin.Close()
	ann.want("late left", "the end of standard input leaves")
	late.exit(0, "the end of standard input")

	twin := start(t, "twin", "join", addr, "--nick", "ann")
	twin.want(`the nickname "ann" is taken`, "a refusal is readable")
	twin.exit(1, "a refusal")

	_ = ann.cmd.Process.Signal(unix.SIGINT)
	ann.exit(0, "Ctrl-C")

	_ = host.cmd.Process.Signal(unix.SIGINT)
	host.exit(0, "Ctrl-C")
	bob.want("trying again", "the server has gone")
	bob.say("typed while nobody was there")
	start(t, "host", "serve", "--addr", addr)
	bob.want("connected again", "redial")
	eve := start(t, "eve", "join", addr, "--nick", "eve", "--room", "cellar")
	eve.want("(earlier) [cellar] bobby: typed while", "what was typed meanwhile is not lost, nor are name and room")
}

func TestPipe(t *testing.T) {
	addr := freeAddr(t)
	start(t, "host", "serve", "--addr", addr).want("hosting on", "it listens")
	ear := start(t, "ear", "join", addr, "--nick", "ear")
	ear.want("you are ear", "connected")
	const n = 1000 // no more than a backlog takes, whatever else the machine does
	mouth := start(t, "mouth", "join", addr, "--nick", "mouth")
	for range n {
		mouth.say("one line in")
	}
	mouth.stdin.Close()
	for range n {
		ear.want("mouth: one line in", "one line out")
	}
	mouth.exit(0, "the end of standard input")
}

func TestAloneHostsAndThenJoins(t *testing.T) {
	addr := freeAddr(t)
	first := start(t, "first", "--addr", addr, "--nick", "first")
	first.want("hosting on", "nobody hosts yet")
	first.want("you are first", "and it joins")
	second := start(t, "second", "--addr", addr, "--nick", "second")
	second.want("you are second in lobby with 1 other;", "there is a host: it just joins")
}

func TestFlagsAroundTheAddress(t *testing.T) {
	host := start(t, "host", "serve", "127.0.0.1:0", "--debug=false")
	line := host.want("join with: chat join ", "the port that was chosen is printed")
	addr := line[strings.LastIndex(line, " ")+1:]
	p := start(t, "chat", "join", "--nick", "z", addr, "--room", "q")
	p.want("you are z in q", "flags before and behind the address")
}

func TestHostOnAnyPort(t *testing.T) {
	p := start(t, "chat", "--addr", "127.0.0.1:0", "--nick", "z")
	p.want("hosting on 127.0.0.1:", "the port that was chosen is printed")
	p.want("you are z in lobby", "and is the one that is joined")
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	host := start(t, "host", "serve", "127.0.0.1:0")
	line := host.want("join with: chat join ", "it listens")
	addr := line[strings.LastIndex(line, " ")+1:]
	for name, args := range map[string][]string{"chat": {"join", addr, "--nick", "x"}, "help": {"--help"}} {
		t.Run(name, func(t *testing.T) {
			p := startTo(t, full, "chat", args...)
			p.want("no space left on device", "what nobody could read is an error")
			p.exit(1, "an error")
		})
	}
}

func TestClosedPipe(t *testing.T) {
	host := start(t, "host", "serve", "127.0.0.1:0")
	line := host.want("join with: chat join ", "it listens")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	p := startTo(t, w, "chat", "join", line[strings.LastIndex(line, " ")+1:], "--nick", "x")
	if rest := p.exit(-1, "the signal that ends whoever writes into a closed pipe"); len(rest) > 1 {
		t.Errorf("it has more to say than that it is connected: %q", rest)
	}
}

func TestDeviceByAddress(t *testing.T) {
	host := start(t, "host", "serve", "127.0.0.1:0", "--device", "auto")
	host.want("-- device: iwarp (no RDMA device has 127.0.0.1)", "what was chosen is printed")
	line := host.want("join with: chat join ", "the port that was chosen is printed")
	p := start(t, "chat", "join", line[strings.LastIndex(line, " ")+1:], "--nick", "y", "--device", "auto")
	p.want("-- device: iwarp (no RDMA device has 127.0.0.1)", "what was chosen is printed")
	p.want("you are y in lobby", "it is the same device")
}

func TestReadableErrors(t *testing.T) {
	addr := freeAddr(t)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"nobody there": {[]string{"join", addr, "--nick", "x"}, "nobody listens"},
		"no address":   {[]string{"join"}, "chat join HOST:PORT"},
		"bad address":  {[]string{"join", "nowhere", "--nick", "x"}, "nowhere"},
		"bad nickname": {[]string{"join", addr, "--nick", "a b"}, "may not have spaces"},
		"bad device":   {[]string{"--device", "mlx5_0"}, "want auto, iwarp or kernel"},
		"bad flag":     {[]string{"serve", "--nope"}, "see chat serve --help"},
		"bad command":  {[]string{"dance"}, "unknown command"},
		"extra word":   {[]string{"serve", addr, "extra"}, `unexpected "extra"`},
		"port 0":       {[]string{"join", "127.0.0.1:0", "--nick", "x"}, "port 0: nobody can be reached there"},
		"no such port": {[]string{"join", "127.0.0.1:99999", "--nick", "x"}, "ports are 0 to 65535"},
		"bad service":  {[]string{"join", "127.0.0.1:bar", "--nick", "x"}, "service not known"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, "chat", tt.args...)
			p.stdin.Close() // nothing to say is no reason to call a failure a success
			p.want(tt.want, "an error a user understands")
			p.exit(1, "an error")
		})
	}
}
