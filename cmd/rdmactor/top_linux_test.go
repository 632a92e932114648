package main

import (
	"net"
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

// TestTopAtTerminal: a user looks at the page until Ctrl-C. The table has the terminal's size.
func TestTopAtTerminal(t *testing.T) {
	p := newFakePage(t)
	s := atTerminal(t, "top", p.URL)
	s.Want("10.0.0.1:50002", "the table")
	s.Want("BLOCKED", "news come by themselves")
	s.Resize(20, 6)
	s.Want("\x1b[H\x1b[1mrdmactor top  http:~", "its first line is as wide as the terminal")
	s.Resize(1, 1)
	s.Want("\x1b[H\x1b[1m~\x1b[0m\x1b[J", "one column")
	s.Resize(300, 100)
	s.Want("10.0.0.1:50002", "the table")
	s.Keys("\x03")
	if state, shown := s.Exit("Ctrl-C"); state.ExitCode() != 0 || !strings.HasSuffix(shown, "\r\n") {
		t.Errorf("%v, and it shows %q", state, shown)
	}
}

// TestTopGone: while the program does not answer, top reports that, and shows the new data when it
// answers again.
func TestTopGone(t *testing.T) {
	p := newFakePage(t)
	s := atTerminal(t, "top", p.URL, "--filter", "room/2")
	s.Want("1 of 3, by id, with", "the filter")
	p.broken.Store(true)
	s.Want("no news, trying again: the server answers with 503", "it does not answer")
	s.Want("10.0.0.1:50002", "what was there before is still there")
	p.broken.Store(false)
	s.Want("\x1b[0m\r\n3 identifiers", "no line says any more that there are no news")
	p.CloseClientConnections()
	p.Close()
	s.Want("connection re", "it is gone")
	s.Signal(unix.SIGTERM)
	if state, shown := s.Exit("SIGTERM"); state.ExitCode() != 0 {
		t.Errorf("%v, and it shows %q", state, shown)
	}
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
			_, _ = conn.Write([]byte("\x1b]0;title\x07\x1b[3J\r\n\r\n"))
			_ = conn.Close()
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}()
	s := atTerminal(t, "top", l.Addr().String())
	for range 3 {
		<-asked
	}
	s.Signal(unix.SIGTERM)
	state, shown := s.Exit("SIGTERM")
	if state.ExitCode() != 0 || strings.Contains(shown, "nsolicited") || strings.Contains(shown, "\x07") || strings.Contains(shown, "\x1b[3J") {
		t.Errorf("%v, and it shows %q", state, shown)
	}
}
