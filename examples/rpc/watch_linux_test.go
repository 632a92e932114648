package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/internal/proctest"
	"github.com/rdmactor/rdmactor/rpc"
)

// wire is a network between a store and its clients, which can be cut.
type wire struct {
	to    string
	at    string
	most  int64 // bytes from the store over the first connection; 0: unlimited
	conns []net.Conn

	mu   sync.Mutex
	done sync.WaitGroup
}

func newWire(t *testing.T, to string, most int64) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{to: to, at: l.Addr().String(), most: most}
	w.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.forward(c)
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.cut()
		w.done.Wait()
	})
	return w
}

func (w *wire) forward(from net.Conn) {
	store, err := net.Dial("tcp", w.to)
	if err != nil {
		from.Close()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var answers io.Reader = store
	if w.most > 0 && len(w.conns) == 0 {
		answers = io.LimitReader(store, w.most)
	}
	w.conns = append(w.conns, from, store)
	pass := func(to net.Conn, from io.Reader) {
		_, _ = io.Copy(to, from)
		to.Close()
	}
	w.done.Go(func() { pass(store, from) })
	w.done.Go(func() { pass(from, answers) })
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
}

// fill puts keys into a store.
func fill(t *testing.T, at string, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if _, err := output(t, "put", k, "v", "--addr", at); err != nil {
			t.Fatal(err)
		}
	}
}

// If a watch loses its connection during the snapshot, it gets all entries again.
func TestWatchCutInItsSnapshot(t *testing.T) {
	_, at := startServer(t, "127.0.0.1:0")
	const keys = 3000
	if _, err := output(t, "load", "--addr", at, "--keys", fmt.Sprint(keys), "--duration", "1ms", "--callers", "1"); err != nil {
		t.Fatal(err)
	}
	fill(t, at, "load/000000") // the first key has changed last
	cut := newWire(t, at, 32<<10)
	w := start(t, "watch", "load/", "--addr", cut.at)
	w.log.await(t, "trying again")
	if strings.Contains(w.out.String(), fmt.Sprintf("load/%06d", keys-1)) {
		t.Fatal("it was not cut in the middle")
	}
	w.out.await(t, fmt.Sprintf("load/%06d", keys-1)) // they arrive in order
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(w.out.String()) {
		seen[strings.Fields(line)[1]] = true
	}
	if len(seen) != keys {
		t.Errorf("%d of %d keys were sent", len(seen), keys)
	}
}

// A watch whose connection is lost after the snapshot resumes where it was: nothing is missing,
// nothing is sent twice.
func TestWatchGoesOnWhereItWas(t *testing.T) {
	_, at := startServer(t, "127.0.0.1:0")
	fill(t, at, "a", "b")
	between := newWire(t, at, 0)
	w := start(t, "watch", "--addr", between.at)
	w.out.await(t, "2\tb\tv\n")
	fill(t, at, "c")
	w.out.await(t, "3\tc\tv\n")
	between.cut()
	w.log.await(t, "trying again")
	fill(t, at, "d", "a")
	w.out.await(t, "5\ta\tv\n")
	if want := "1\ta\tv\n2\tb\tv\n3\tc\tv\n4\td\tv\n5\ta\tv\n"; w.out.String() != want {
		t.Errorf("printed\n%swant\n%s", w.out, want)
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
}

// A watch that starts before its server waits for it.
func TestWatchWaitsForItsServer(t *testing.T) {
	at := proctest.FreeAddrs(t, 1)[0]
	w := start(t, "watch", "--addr", at)
	w.log.await(t, "nobody listens on that port (not sent) - trying again")
	startServer(t, at)
	fill(t, at, "a")
	w.out.await(t, "1\ta\tv\n")
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(w.log.String(), "\n"); n != 1 {
		t.Errorf("%d lines about one cause:\n%s", n, w.log)
	}
}

// A watch ends only with errors that another attempt would end with, too. It continues if a server
// is away, late, frozen or overloaded.
func TestWatchGivesUp(t *testing.T) {
	refused := &rdma.Rejected{}
	refused.Err = unix.ECONNREFUSED
	wrong := &rdma.CommandFailed{}
	wrong.Err = unix.EINVAL
	for _, c := range []struct {
		err  error
		ends bool
	}{
		{&rpc.Error{Code: rpc.CodeUnavailable, Err: refused}, false},
		{&rpc.Error{Code: rpc.CodeUnavailable, Err: unix.ECONNRESET}, false},
		{&rpc.Error{Code: rpc.CodeDraining}, false},
		{&rpc.Error{Code: rpc.CodeDeadline}, false},
		{&rpc.Error{Code: rpc.CodeOverloaded}, false},
		{&rpc.Error{Code: rpc.CodeInternal}, false},
		{nil, false}, // the store has ended the watch
		{&rpc.Error{Code: rpc.CodeForeign}, true},
		{&rpc.Error{Code: rpc.CodeVersion}, true},
		{&rpc.Error{Code: rpc.CodeUnknownMethod}, true},
		{&rpc.Error{Code: rpc.CodeUnavailable, Err: wrong}, true},
	} {
		if got := hopeless(c.err); got != c.ends {
			t.Errorf("%v ends a watch: %v", c.err, got)
		}
	}
}

// Without arguments after the command the defaults of its flags apply, too: calls in flight may
// finish, and watches are notified.
func TestServeDrainsWithoutFlags(t *testing.T) {
	for range 8 {
		p, at := startServerWith(t, "--addr", "127.0.0.1:0", "serve")
		w := start(t, "watch", "--addr", at)
		fill(t, at, "a")
		w.out.await(t, "1\ta\tv\n")
		if err := p.stop(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	}
}

// On Ctrl-C a load prints its measurements. A command that has not finished its work returns an
// error that reports so.
func TestInterrupted(t *testing.T) {
	_, at := startServer(t, "127.0.0.1:0")
	fill(t, at, "a")
	w := start(t, "watch", "--addr", at)
	w.out.await(t, "1\ta\tv\n")
	l := start(t, "load", "--addr", at, "--callers", "1", "--keys", "1", "--reads", "0", "--duration", "1h")
	w.out.await(t, "\n9\tload/000000") // the only caller has received the earlier answers
	if err := l.stop(); err != nil || !strings.Contains(l.out.String(), " calls in ") {
		t.Errorf("a load that was interrupted: %q, %v", l.out, err)
	}
	for _, args := range [][]string{{}, {"load", "--addr", at}, {"get", "a", "--addr", at}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := run(ctx, args, io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
			t.Errorf("%q: %v, want that it was cancelled", args, err)
		}
	}
}

// A watcher's revision is valid for one store only.
func TestEpochs(t *testing.T) {
	s := newStore()
	for range 3 {
		_, _ = s.put("k", nil)
	}
	for _, c := range []struct {
		epoch, after uint64
		want         bool
	}{{s.epoch, 3, true}, {s.epoch, 1, true}, {0, 2, true}, {0, 0, false}, {s.epoch, 0, false}, {s.epoch + 2, 2, false}, {0, 4, false}} {
		if got := s.knows(c.epoch, c.after); got != c.want {
			t.Errorf("revision %d of epoch %d: %v", c.after, c.epoch, got)
		}
	}
	if newStore().epoch == s.epoch || s.epoch == 0 {
		t.Error("two stores have one epoch")
	}
	var first *kv.Change
	_ = s.watch(t.Context(), "", 2, func(c *kv.Change) error {
		first = c
		return errors.New("enough")
	})
	if first.GetRevision() != 3 {
		t.Errorf("%v does not say how far the watcher is", first)
	}
}
