package main

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/internal/proctest"
	"github.com/rdmactor/rdmactor/lab/chat/room"
)

// These tests run the chat end to end. Each part is a separate process, which runs this test binary
// as the chat.

const asChat = "RUN_AS_CHAT"

func TestMain(m *testing.M) {
	if os.Getenv(asChat) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(leak.Settled{M: m})
}

func chat(args []string) proctest.Config {
	return proctest.Config{Args: args, Env: []string{asChat + "=1"}}
}

func start(t *testing.T, name string, args ...string) *proctest.Process {
	t.Helper()
	return proctest.Start(t, name, chat(args))
}

// startTo starts a process with stdout as its standard output.
func startTo(t *testing.T, stdout *os.File, name string, args ...string) *proctest.Process {
	t.Helper()
	cfg := chat(args)
	cfg.Stdout = stdout
	return proctest.Start(t, name, cfg)
}

func freeAddr(t *testing.T) string {
	t.Helper()
	return proctest.FreeAddrs(t, 1)[0]
}

func TestEndToEnd(t *testing.T) {
	addr := freeAddr(t)
	host := start(t, "host", "serve", "--addr", addr)
	host.Want("hosting on", "it listens")

	ann := start(t, "ann", "join", addr, "--nick", "ann")
	ann.Want("you are ann in lobby", "the server welcomes")
	bob := start(t, "bob", "join", addr, "--nick", "bob", "--room", room.Lobby)
	bob.Want("you are bob in lobby with 1 other;", "the server welcomes")
	ann.Want("bob joined", "a join is announced")

	ann.Say("hello \x1b[2Jbob")
	if l := bob.Want("hello", "a line travels"); l != "[lobby] ann: hello [2Jbob" {
		t.Errorf("bob saw %q: control characters must go", l)
	}
	bob.Say("/msg ann psst")
	ann.Want("(private) bob: psst", "a private message")
	bob.Say("/room cellar")
	bob.Want("you are bob in cellar", "moving")
	ann.Want("bob went to cellar", "moving is announced")
	bob.Say("/help")
	bob.Want("/nick NAME", "help")
	bob.Say("/nick bobby")
	bob.Want("bob is now bobby", "renaming")

	late := start(t, "late", "join", addr, "--nick", "late")
	late.Want("(earlier) [lobby] ann: hello", "history for who comes late")
	late.CloseInput()
	ann.Want("late left", "the end of standard input leaves")
	late.Exit(0, "the end of standard input")

	twin := start(t, "twin", "join", addr, "--nick", "ann")
	twin.Want(`the nickname "ann" is taken`, "a refusal is readable")
	twin.Exit(1, "a refusal")

	ann.Signal(unix.SIGINT)
	ann.Exit(0, "Ctrl-C")

	host.Signal(unix.SIGINT)
	host.Exit(0, "Ctrl-C")
	bob.Want("trying again", "the server has gone")
	bob.Say("typed while nobody was there")
	start(t, "host", "serve", "--addr", addr)
	bob.Want("connected again", "redial")
	eve := start(t, "eve", "join", addr, "--nick", "eve", "--room", "cellar")
	eve.Want("(earlier) [cellar] bobby: typed while", "what was typed meanwhile is not lost, nor are name and room")
}

func TestPipe(t *testing.T) {
	addr := freeAddr(t)
	start(t, "host", "serve", "--addr", addr).Want("hosting on", "it listens")
	ear := start(t, "ear", "join", addr, "--nick", "ear")
	ear.Want("you are ear", "connected")
	const n = 1000 // fits into a backlog, however slow the machine is
	mouth := start(t, "mouth", "join", addr, "--nick", "mouth")
	for range n {
		mouth.Say("one line in")
	}
	mouth.CloseInput()
	for range n {
		ear.Want("mouth: one line in", "one line out")
	}
	mouth.Exit(0, "the end of standard input")
}

func TestAloneHostsAndThenJoins(t *testing.T) {
	addr := freeAddr(t)
	first := start(t, "first", "--addr", addr, "--nick", "first")
	first.Want("hosting on", "nobody hosts yet")
	first.Want("you are first", "and it joins")
	second := start(t, "second", "--addr", addr, "--nick", "second")
	second.Want("you are second in lobby with 1 other;", "there is a host: it just joins")
}

func TestFlagsAroundTheAddress(t *testing.T) {
	host := start(t, "host", "serve", "127.0.0.1:0", "--debug=false")
	line := host.Want("join with: chat join ", "the port that was chosen is printed")
	addr := line[strings.LastIndex(line, " ")+1:]
	p := start(t, "chat", "join", "--nick", "z", addr, "--room", "q")
	p.Want("you are z in q", "flags before and behind the address")
}

func TestHostOnAnyPort(t *testing.T) {
	p := start(t, "chat", "--addr", "127.0.0.1:0", "--nick", "z")
	p.Want("hosting on 127.0.0.1:", "the port that was chosen is printed")
	p.Want("you are z in lobby", "and is the one that is joined")
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	host := start(t, "host", "serve", "127.0.0.1:0")
	line := host.Want("join with: chat join ", "it listens")
	addr := line[strings.LastIndex(line, " ")+1:]
	for name, args := range map[string][]string{"chat": {"join", addr, "--nick", "x"}, "help": {"--help"}} {
		t.Run(name, func(t *testing.T) {
			p := startTo(t, full, "chat", args...)
			p.Want("no space left on device", "what nobody could read is an error")
			p.Exit(1, "an error")
		})
	}
}

func TestClosedPipe(t *testing.T) {
	host := start(t, "host", "serve", "127.0.0.1:0")
	line := host.Want("join with: chat join ", "it listens")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	p := startTo(t, w, "chat", "join", line[strings.LastIndex(line, " ")+1:], "--nick", "x")
	if rest := p.Exit(-1, "the signal that ends whoever writes into a closed pipe"); len(rest) > 1 {
		t.Errorf("it has more to say than that it is connected: %q", rest)
	}
}

func TestDeviceByAddress(t *testing.T) {
	host := start(t, "host", "serve", "127.0.0.1:0", "--device", "auto")
	host.Want("-- device: iwarp (no RDMA device has 127.0.0.1)", "what was chosen is printed")
	line := host.Want("join with: chat join ", "the port that was chosen is printed")
	p := start(t, "chat", "join", line[strings.LastIndex(line, " ")+1:], "--nick", "y", "--device", "auto")
	p.Want("-- device: iwarp (no RDMA device has 127.0.0.1)", "what was chosen is printed")
	p.Want("you are y in lobby", "it is the same device")
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
			p.CloseInput() // an empty input must not turn a failure into a success
			p.Want(tt.want, "an error a user understands")
			p.Exit(1, "an error")
		})
	}
}
