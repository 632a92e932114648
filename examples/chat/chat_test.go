package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// asChat makes this test binary the chat.
const asChat = "RUN_AS_CHAT"

func TestMain(m *testing.M) {
	if os.Getenv(asChat) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// process is a chat in a process.
type process struct {
	*testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner // stdout and stderr
	seen  []string       // lines before the one that was last wanted
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // nothing here takes so long
	p := &process{T: t, cmd: exec.CommandContext(ctx, os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), asChat+"=1")
	p.in, _ = p.cmd.StdinPipe()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.cmd.Stdout
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = p.cmd.Wait()
	})
	return p
}

// want reads lines until one has text, and returns what follows in it.
func (p *process) want(text string) string {
	p.Helper()
	p.seen = nil
	for p.lines.Scan() {
		if _, after, found := strings.Cut(p.lines.Text(), text); found {
			return after
		}
		p.seen = append(p.seen, p.lines.Text())
	}
	p.Fatalf("%v never shows %q, but %q", p.cmd.Args[1:], text, p.seen)
	return ""
}

func (p *process) say(line string) {
	p.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.Fatal(err)
	}
}

// exit waits until the process has ended.
func (p *process) exit(code int) {
	p.Helper()
	for p.lines.Scan() {
	}
	_ = p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.Errorf("%v ends with %d, want %d", p.cmd.Args[1:], got, code)
	}
}

func (p *process) interrupt() {
	p.Helper()
	if err := p.cmd.Process.Signal(unix.SIGINT); err != nil {
		p.Error(err)
	}
}

func TestChat(t *testing.T) {
	host := start(t, "serve", "127.0.0.1:0")
	addr := host.want("hosting on ")
	ann := start(t, "join", addr, "--nick", "ann")
	ann.want("you are ann")
	bob := start(t, "join", "--addr", addr, "--nick", "bob")
	bob.want("you are bob")
	ann.want("bob joined")
	ann.say("hello \x1b[2Jbob")
	if got := bob.want("ann: "); got != "hello [2Jbob" {
		t.Errorf("bob sees %q", got)
	}
	bob.say("hello ann")
	ann.want("bob: hello ann")
	if len(ann.seen) > 0 {
		t.Errorf("ann sees her own lines: %q", ann.seen)
	}
	ann.say(strings.Repeat("x", maxLine+1))
	ann.want("too long")

	twin := start(t, "join", addr, "--nick", "ann")
	twin.want("that name is taken")
	twin.exit(1)
	eve := start(t, "join", addr, "--nick", "ann: ")
	eve.want("a name is a few letters")
	eve.exit(1)

	ann.say("the last line")
	ann.in.Close()
	ann.exit(0)
	bob.want("ann: the last line")
	bob.want("ann left")
	carl := start(t, "join", addr, "--nick", "carl")
	bob.want("carl joined")
	carl.interrupt()
	carl.exit(0)
	bob.want("carl left")
	host.interrupt()
	host.exit(0)
	bob.want("the host has left")
	bob.exit(1)
}

// The first who comes hosts, and the second joins.
func TestWithoutACommand(t *testing.T) {
	ann := start(t, "--addr", "127.0.0.1:0", "--nick", "ann")
	addr := ann.want("hosting on ")
	ann.want("you are ann")
	start(t, "--addr", addr, "--nick", "bob").say("hello")
	ann.want("bob: hello")
}

func TestSecured(t *testing.T) {
	file := func(identity string) string {
		key, err := keyfile.Generate(identity)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "key")
		if err := keyfile.Create(name, key); err != nil {
			t.Fatal(err)
		}
		return name
	}
	key := file("ann")
	host := start(t, "serve", "127.0.0.1:0", "--key", key)
	addr := host.want("hosting on ")
	ann := start(t, "join", addr, "--nick", "ann", "--key", key)
	ann.want("you are ann")
	bob := start(t, "join", addr, "--nick", "bob", "--key", key)
	ann.want("bob (ann) joined")
	bob.say("hello")
	ann.want("bob (ann): hello")
	for want, args := range map[string][]string{
		"no key has this id":    {"--key", file("ann")},
		"another mode or suite": nil,
	} {
		eve := start(t, append([]string{"join", addr, "--nick", "eve"}, args...)...)
		eve.want(want)
		eve.exit(1)
	}
	outside := start(t, "join", "192.0.2.1:7471", "--nick", "eve")
	outside.want("no Security is set")
	outside.exit(1)
}

// A person who does not read delays nobody, misses lines, and learns how many.
func TestSlow(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		const addr, lines = "10.0.0.1:7471", 1000
		if _, err := hostRoom(w.T().Context(), w.Runtime(), addr); err != nil {
			t.Fatal(err)
		}
		enter := func(nick, from string) *actortest.Probe {
			p := w.Probe()
			p.Request(w.Host("mem-"+nick, from).CreateID(p.PID()), &rdma.Dial{Addr: addr, PrivateData: []byte(nick)})
			actortest.Next[*rdma.Established](p)
			actortest.Next[*rdma.Received](p) // that it has joined
			return p
		}
		slow := enter("slow", "10.0.0.2")
		ann, bob := enter("ann", "10.0.0.3"), enter("bob", "10.0.0.4")
		connection := ann.Sender()
		begin := w.Now()
		for range lines {
			ann.Send(connection, rdma.NewSend([]byte("line")))
			for m := ""; m != "ann: line"; {
				m = string(actortest.Next[*rdma.Received](bob).Data)
			}
		}
		if took := w.Now().Sub(begin); took > 0 {
			t.Errorf("bob waits %v for the slow one", took)
		}
		got := 0
		for {
			m := string(actortest.Next[*rdma.Received](slow).Data)
			if m == "ann: line" {
				got++
			}
			if missed, found := strings.CutPrefix(m, "-- you missed "); found {
				if want := lines - got; missed != fmt.Sprintf("%d lines", want) {
					t.Errorf("missed %s, want %d", missed, want)
				}
				return
			}
		}
	})
}
