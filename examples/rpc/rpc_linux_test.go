package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/internal/leak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }

// screen is the output of a command, readable while it runs.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // signals new output
}

func newScreen() *screen { return &screen{more: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await returns after text was printed.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("never printed: %q\n%s", text, s)
		}
	}
}

// started is a command that runs until stop.
type started struct {
	out, log *screen
	stop     func() error
}

func start(t *testing.T, args ...string) *started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &started{out: newScreen(), log: newScreen()}
	done := make(chan error, 1)
	go func() { done <- run(ctx, args, p.out, p.log) }()
	p.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = p.stop() })
	return p
}

// startServer starts a server and returns its address.
func startServer(t *testing.T, addr string) (*started, string) {
	t.Helper()
	return startServerWith(t, "serve", "--addr", addr)
}

func startServerWith(t *testing.T, args ...string) (*started, string) {
	t.Helper()
	p := start(t, args...)
	p.log.await(t, "\n")
	_, at, ok := strings.Cut(strings.TrimSpace(p.log.String()), "-- serving on ")
	if !ok {
		t.Fatalf("the server says %q, and ends with %v", p.log, p.stop())
	}
	return p, at
}

// output runs a command to its end.
func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, &out, io.Discard)
	return out.String(), err
}

func TestCommands(t *testing.T) {
	_, at := startServer(t, "127.0.0.1:0")
	for _, c := range []struct {
		line, want string
		err        error
	}{
		{"get a", "", kv.ErrNotFound},
		{"put a one", "revision 1\n", nil},
		{"get a", "one\n", nil},
		{"cas a 0 two", "", kv.ErrChanged}, // it exists
		{"cas a 1 two", "revision 2\n", nil},
		{"cas b 0 three", "revision 3\n", nil}, // it does not
		{"put c " + strings.Repeat("x", 3000), "revision 4\n", nil},
		{"put " + strings.Repeat("k", maxKey+1) + " v", "", kv.ErrInvalid},
		{"list", "2\ta\ttwo\n3\tb\tthree\n4\tc\t" + strings.Repeat("x", 3000) + "\n", nil},
		{"list b", "3\tb\tthree\n", nil},
		{"delete b", "revision 5\n", nil},
		{"delete b", "", kv.ErrNotFound},
	} {
		got, err := output(t, append(strings.Fields(c.line), "--addr", at)...)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%.40s: %q, %v; want %q, %v", c.line, got, err, c.want, c.err)
		}
	}
	if _, err := output(t, "cas", "a", "1", "x", "--addr", at); err == nil || !strings.Contains(err.Error(), "it is 2") {
		t.Errorf("a refused swap does not say the revision: %v", err)
	}
}

// The largest value passes in both directions, and one byte more is refused by the store, not by
// the connection.
func TestLargestValue(t *testing.T) {
	_, at := startServer(t, "127.0.0.1:0")
	largest := strings.Repeat("v", maxValue)
	if _, err := output(t, "--addr", at, "put", "k", largest); err != nil {
		t.Fatal(err)
	}
	if got, err := output(t, "--addr", at, "get", "k"); err != nil || got != largest+"\n" {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if _, err := output(t, "--addr", at, "put", "k", largest+"v"); !errors.Is(err, kv.ErrInvalid) {
		t.Errorf("a byte more: %v", err)
	}
}

// A watch gets the existing entries and the changes, and continues at the server that replaces a
// drained one.
func TestWatchSurvivesItsServer(t *testing.T) {
	server, at := startServer(t, "127.0.0.1:0")
	put := func(key string) {
		t.Helper()
		if _, err := output(t, "put", key, "v", "--addr", at); err != nil {
			t.Fatal(err)
		}
	}
	put("w/1")
	w := start(t, "watch", "w/", "--addr", at)
	w.out.await(t, "1\tw/1\tv\n")
	put("other")
	put("w/2")
	w.out.await(t, "3\tw/2\tv\n")
	if strings.Contains(w.out.String(), "other") {
		t.Errorf("got a key without the prefix:\n%s", w.out)
	}
	if err := server.stop(); err != nil {
		t.Errorf("the server's drain: %v", err)
	}
	w.log.await(t, "trying again")
	startServer(t, at)
	put("w/a") // the new store starts again, with revisions that the old one had, too
	w.out.await(t, "1\tw/a\tv\n")
	w.log.await(t, "another store")
	if err := w.stop(); err != nil {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	_, at := startServer(t, "127.0.0.1:0")
	out, err := output(t, "load", "--addr", at, "--callers", "8", "--connections", "2", "--keys", "10", "--duration", "50ms")
	var calls int
	if _, scanned := fmt.Sscanf(out, "%d calls in", &calls); err != nil || scanned != nil || calls == 0 {
		t.Errorf("%q, %v", out, err)
	}
	if !strings.HasSuffix(out, "0 refused\n") {
		t.Errorf("eight callers were refused: %q", out)
	}
}

func TestDemo(t *testing.T) {
	out, err := output(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"it is 2", "kv.Store/Get: no such key", `4 fruit/pear = "", deleted: true`, " calls in "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"fly":                  `unknown command "fly"`,
		"get":                  "0 arguments for get",
		"put a b c":            "3 arguments for put",
		"cas a x b":            "REVISION is a number",
		"load --callers 0":     "--callers must be at least 1",
		"load --reads 101":     "percentage",
		"get a --callers 3":    "not defined: -callers",
		"get a --device cloud": "cloud",

		"get a --addr 127.0.0.1:0":     "port 0: nobody can be reached there",
		"get a --addr 127.0.0.1:99999": "ports are 0 to 65535",
		"serve --addr [::1":            "the bracket is not closed",
		"watch --addr ::1:x":           "one with a port is written [IPV6]:PORT",
	} {
		args := strings.Fields(line)
		if args[0] == "cas" {
			_, at := startServer(t, "127.0.0.1:0")
			args = append(args, "--addr", at)
		}
		if _, err := output(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	out, err := output(t, "load", "--help")
	if !errors.Is(err, flag.ErrHelp) || !strings.Contains(out, "-callers") || !strings.Contains(out, "rpc watch [PREFIX]") {
		t.Errorf("load --help: %v\n%s", err, out)
	}
}
