package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/actor/keyfile"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leak.Settled{M: m}) }

// program is a command that runs until stop is called, or its server has ended.
type program struct {
	*testing.T
	stop  context.CancelFunc
	lines *bufio.Scanner
	ended chan error
}

func start(t *testing.T, args ...string) *program {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	p := &program{T: t, stop: stop, lines: bufio.NewScanner(r), ended: make(chan error, 1)}
	go func() {
		err := run(ctx, args, w)
		w.CloseWithError(err)
		p.ended <- err
	}()
	t.Cleanup(stop)
	return p
}

// want compares the next line.
func (p *program) want(line string) {
	p.Helper()
	if !p.lines.Scan() || p.lines.Text() != line {
		p.Fatalf("got %q, %v, want %q", p.lines.Text(), p.lines.Err(), line)
	}
}

// serveAt starts a server and returns a function that makes a call and returns what it prints.
func serveAt(t *testing.T, flags ...string) (srv *program, addr string, call func(args ...string) (string, error)) {
	srv = start(t, append([]string{"--addr", "127.0.0.1:0"}, append(flags, "serve")...)...)
	if !srv.lines.Scan() {
		t.Fatal(srv.lines.Err())
	}
	addr = strings.TrimPrefix(srv.lines.Text(), "serving on ")
	return srv, addr, func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"--addr", addr}, args...), &out)
		return out.String(), err
	}
}

func TestCommands(t *testing.T) {
	srv, addr, call := serveAt(t)
	is := func(want string, args ...string) {
		t.Helper()
		if got, err := call(args...); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", args, got, err, want)
		}
	}
	fails := func(want string, args ...string) {
		t.Helper()
		if got, err := call(args...); got != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want the error %q", args, got, err, want)
		}
	}
	is("1 \"apple\" \"red\"\n", "put", "apple", "red")
	fruit := start(t, "--addr", addr, "watch", "a")
	fruit.want(`1 "apple" "red"`)
	is("2 \"apple\" \"green\"\n", "cas", "apple", "1", "green")
	fails("the key has another revision: apple: it has revision 2", "cas", "apple", "1", "yellow")
	fails("the key has another revision", "cas", "pear", "1", "yellow")
	is("3 \"pear\" \"y\\x1b\"\n", "cas", "pear", "0", "y\x1b")
	is("2 \"apple\" \"green\"\n", "get", "apple")
	fails("no such key", "get", "plum")
	is("4 \"apple\" \"brown\"\n", "put", "apple", "brown")
	fruit.want(`2 "apple" "green"`)
	fruit.want(`4 "apple" "brown"`) // and no pear
	fails("watch [PREFIX]?", "get")

	other := start(t, "--addr", addr, "watch")
	for range 2 {
		other.lines.Scan()
	}
	other.stop() // Ctrl-C
	if err := <-other.ended; err != nil {
		t.Errorf("a watch that is interrupted: %v", err)
	}
	srv.stop()
	if err := <-srv.ended; err != nil {
		t.Errorf("the server drains, although somebody watches: %v", err)
	}
	if err := <-fruit.ended; !errors.Is(err, rpc.ErrDraining) {
		t.Errorf("a watch ends with %v", err)
	}
}

func TestSecured(t *testing.T) {
	var files []string
	for range 2 {
		key, err := keyfile.Generate("ann")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(t.TempDir(), "key"))
		if err := keyfile.Create(files[len(files)-1], key); err != nil {
			t.Fatal(err)
		}
	}
	srv, _, call := serveAt(t, "--key", files[0])
	if _, err := call("--key", files[0], "put", "k", "v"); err != nil {
		t.Error(err)
	}
	if _, err := call("--key", files[1], "get", "k"); err == nil || !strings.Contains(err.Error(), "no key has this id") {
		t.Errorf("another key: %v", err)
	}
	srv.stop()
	if err := <-srv.ended; err != nil {
		t.Error(err)
	}
}

func newStore() *store {
	return &store{entries: make(map[string]*kv.Entry), watchers: make(map[chan *kv.Entry]string)}
}

// A watcher that does not read costs nobody else anything, and is let go.
func TestSlowWatcher(t *testing.T) {
	s := newStore()
	changes := make(chan *kv.Entry, behind)
	s.watchers[changes] = ""
	for i := range behind + 1 {
		if _, err := s.Put(t.Context(), &kv.PutRequest{Key: "k", Value: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for range changes { // it is closed
		got++
	}
	if got != behind || len(s.watchers) != 0 {
		t.Errorf("%d changes, %d watchers", got, len(s.watchers))
	}
}

func TestFull(t *testing.T) {
	s := newStore()
	s.bytes = maxBytes - 3
	for _, tt := range []struct {
		key, value string
		want       error
	}{{"a", "12", nil}, {"b", "", kv.ErrFull}, {"a", "123", kv.ErrFull}, {"a", "1", nil}, {"b", "", nil}} {
		if _, err := s.Put(t.Context(), &kv.PutRequest{Key: tt.key, Value: []byte(tt.value)}); !errors.Is(err, tt.want) {
			t.Errorf("%s = %s: %v, want %v", tt.key, tt.value, err, tt.want)
		}
	}
}
