package main

import (
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/proctest"
)

// asRdmactor is the environment variable that makes this test binary run as rdmactor.
const asRdmactor = "RUN_AS_RDMACTOR"

func atTerminal(t *testing.T, args ...string) *proctest.Screen {
	t.Helper()
	return proctest.StartAtTerminal(t, "rdmactor", proctest.Config{Args: args, Env: []string{asRdmactor + "=1"}})
}

const back = "\x1b[?25h\x1b[?1049l" // the end of the sequence that restores the screen

// TestTopAtTerminal: a user looks at the page, filters, sorts, looks at one identifier, and quits.
func TestTopAtTerminal(t *testing.T) {
	p := newFakePage(t)
	s := atTerminal(t, "top", p.URL)
	s.Want("\x1b[?1049h", "it takes the other screen")
	s.Want("10.0.0.1:50002", "the table")
	s.Want("BLOCKED", "news come by themselves")
	s.Keys("/room/2\r")
	s.Want("1 of 3 identifiers, page 1 of 1", "the filter")
	s.Keys("\x1b")
	s.Want("3 of 3", "no filter")
	s.Keys("S")
	s.Want("STATEv", "sorted by state, descending")
	s.Resize(60, 9)
	s.Want("by state (descending)", "it is still there")
	s.Keys("\r")
	s.Want("identifier 1,", "one identifier")
	s.Keys("q")
	s.Want("3 of 3", "the table again")
	s.Keys("j\r")
	s.Want("identifier 2 has ended", "one that has ended meanwhile")
	s.Keys("q")
	s.Want("3 of 3", "the table again")
	s.Keys("\t")
	s.Want("METHOD", "the program's own table")
	s.Want("kv.Get", "and its row")
	s.Keys("\t")
	s.Want("3 of 3", "the table again")
	s.Keys("q")
	wantGivenBack(t, s, "q", 0)
}

func wantGivenBack(t *testing.T, s *proctest.Screen, why string, code int) {
	t.Helper()
	state, shown := s.Exit(why)
	if state.ExitCode() != code || !strings.Contains(shown, back) || strings.Contains(shown[strings.LastIndex(shown, back)+len(back):], "\x1b") {
		t.Errorf("%s: %v, and it shows %q", why, state, shown)
	}
}

// TestTopEnds: however top ends, the terminal is restored.
func TestTopEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*proctest.Screen)
		code int
	}{
		"Ctrl-C":  {func(s *proctest.Screen) { s.Keys("\x03") }, 0},
		"SIGTERM": {func(s *proctest.Screen) { s.Signal(unix.SIGTERM) }, 0},
		"SIGINT":  {func(s *proctest.Screen) { s.Signal(unix.SIGINT) }, 0},
		"SIGHUP":  {func(s *proctest.Screen) { s.Signal(unix.SIGHUP) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakePage(t)
			s := atTerminal(t, "top", p.URL)
			s.Want("10.0.0.1:50002", "the table")
			c.end(s)
			wantGivenBack(t, s, name, c.code)
		})
	}
}

// TestTopGone: while the program does not answer, top reports that, and shows the new data when it
// answers again.
func TestTopGone(t *testing.T) {
	p := newFakePage(t)
	s := atTerminal(t, "top", p.URL)
	s.Want("10.0.0.1:50002", "the table")
	p.broken.Store(true)
	s.Want("no news, trying again in", "it does not answer")
	s.Want(": the server answers with 503", "and why")
	s.Want("10.0.0.1:50002", "what was there before is still there")
	p.broken.Store(false)
	s.Want("\x1b[0m\r\n3 identifiers", "no line says any more that there are no news")
	p.CloseClientConnections()
	p.Close()
	s.Want("connection re", "it is gone")
	s.Keys("q")
	wantGivenBack(t, s, "q", 0)
}

// TestTopGarbage: unsolicited bytes of a server do not reach the screen by way of a log.
func TestTopGarbage(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan struct{}, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("\x1b]0;title\x07\x1b[2J\r\n\r\n"))
			_ = conn.Close()
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}()
	s := atTerminal(t, "top", l.Addr().String())
	for range 20 {
		<-asked
		s.Keys("r") // another request
	}
	s.Keys("q")
	state, shown := s.Exit("q")
	if state.ExitCode() != 0 || strings.Contains(shown, "nsolicited") || strings.Contains(shown, "\x07") || strings.Contains(shown, "\x1b[2J") {
		t.Errorf("%v, and it shows %q", state, shown)
	}
}

// TestTopStuck: a terminal that reads nothing does not block top.
func TestTopStuck(t *testing.T) {
	p := newFakePage(t)
	s := atTerminal(t, "top", p.URL)
	s.Want("10.0.0.1:50002", "the table")
	s.Stick()
	for asked := p.asked.Load(); p.asked.Load() < asked+40; { // more frames than a terminal buffers
		p.wait()
	}
	s.Signal(unix.SIGTERM)
	if state, shown := s.Exit("SIGTERM"); state.ExitCode() != 0 {
		t.Errorf("%v, and it shows %q", state, shown)
	}
}

// TestTopSuspended: Ctrl-Z and SIGTSTP hand the terminal to the shell, and fg takes it back.
func TestTopSuspended(t *testing.T) {
	p := newFakePage(t)
	const script = `set -m
"$0" top "$1"
stty -a | grep -ow -e '-*icanon' -e '-*echo'
fg
echo "status $?"`
	s := proctest.StartAtTerminal(t, "a shell", proctest.Config{
		Program: "/bin/sh", Args: []string{"-c", script, os.Args[0], p.URL}, Env: []string{asRdmactor + "=1"},
	})
	s.Want("10.0.0.1:50002", "the table")
	s.Keys("\x1a")
	s.Want(back, "the terminal as it was")
	s.Want("icanon\r\necho\r\n", "its modes, and not -icanon")
	s.Want("\x1b[?1049h", "fg gives it the terminal again")
	s.Want("10.0.0.1:50002", "the table")
	s.Keys("q")
	s.Want("status 0", "it has ended")
	if state, shown := s.Exit("q"); state.ExitCode() != 0 {
		t.Errorf("%v, and it shows %q", state, shown)
	}
}

// TestTopNoShell: without a shell that could continue it, it does not stop.
func TestTopNoShell(t *testing.T) {
	p := newFakePage(t)
	s := atTerminal(t, "top", p.URL)
	for _, suspend := range []func(){
		func() { s.Keys("\x1a") }, func() { s.Signal(unix.SIGTSTP) }, func() { s.Signal(unix.SIGCONT) },
	} {
		s.Want("10.0.0.1:50002", "the table")
		suspend()
		s.Want(back, "it gives the terminal back")
		s.Want("\x1b[?1049h", "and takes it again")
	}
	s.Want("10.0.0.1:50002", "the table")
	s.Keys("q")
	wantGivenBack(t, s, "q", 0)
}

// TestTopTiny: a terminal of one column and one line, which then grows.
func TestTopTiny(t *testing.T) {
	p := newFakePage(t)
	s := atTerminal(t, "top", p.URL)
	s.Want("10.0.0.1:50002", "the table")
	s.Resize(1, 1)
	s.Want("\x1b[?2026h\x1b[H\x1b[7m~\x1b[0m\x1b[J", "one column")
	s.Keys("jjG\r/x\x7f\x1b")
	s.Resize(300, 100)
	s.Want("10.0.0.1:50002", "the table")
	s.Keys("q")
	wantGivenBack(t, s, "q", 0)
}
