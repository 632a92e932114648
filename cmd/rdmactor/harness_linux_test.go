package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/verbs"
)

func TestMain(m *testing.M) {
	if os.Getenv(asRdmactor) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(leak.Settled{M: m})
}

// patience bounds steps that have no time limit: far above the duration of any step here.
const patience = 2 * time.Minute

// running is one command line in this process.
type running struct {
	t      *testing.T
	args   []string
	cancel context.CancelFunc // Ctrl-C
	// its output, complete after its end; for a server without the first line
	out   *bytes.Buffer
	errs  *bytes.Buffer
	port  string // a server's
	ended chan error
	spoke chan struct{} // closed when a client has printed something
}

// Write records a client's output.
func (r *running) Write(b []byte) (int, error) {
	if r.out.Len() == 0 {
		close(r.spoke)
	}
	return r.out.Write(b)
}

func begin(t *testing.T, stdout io.Writer, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{
		t: t, args: args, cancel: cancel, out: new(bytes.Buffer), errs: new(bytes.Buffer),
		ended: make(chan error, 1), spoke: make(chan struct{}),
	}
	if stdout == nil {
		stdout = r
	}
	ended := r.ended // a server's is replaced
	go func() {
		defer cancel()
		err := runCommand(ctx, args, stdout, r.errs)
		defer func() { ended <- err }()
		if c, ok := stdout.(io.Closer); ok {
			c.Close()
		}
	}()
	return r
}

// serve starts a server on a free port of loopback.
func serve(t *testing.T, args ...string) *running {
	t.Helper()
	return listen(t, append([]string{"ping", "-s", "-a", "127.0.0.1", "-p", "0", "--device", "iwarp"}, args...)...)
}

// listen starts a server, and returns after it has printed its address.
func listen(t *testing.T, args ...string) *running {
	t.Helper()
	from, to := io.Pipe()
	r := begin(t, to, args...)
	lines := bufio.NewReader(from)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%q never listened: %v", r.args, <-r.ended)
	}
	_, r.port, err = net.SplitHostPort(strings.TrimPrefix(strings.TrimSpace(first), "listening on "))
	if err != nil {
		t.Fatalf("%q says %q instead of where it listens: %v", r.args, first, err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = lines.WriteTo(r.out)
	}()
	outcome, ended := r.ended, make(chan error, 1)
	r.ended = ended
	go func() {
		err := <-outcome
		<-copied // so that out is complete
		ended <- err
	}()
	return r
}

// dial starts a client of the server at port.
func dial(t *testing.T, port string, args ...string) *running {
	t.Helper()
	return begin(t, nil, append([]string{"ping", "-c", "-a", "127.0.0.1", "-p", port, "--device", "iwarp"}, args...)...)
}

// dialForever starts a client that plays until it is stopped, and returns after its first
// round.
func dialForever(t *testing.T, port string, args ...string) *running {
	t.Helper()
	r := dial(t, port, append(args, "-v")...)
	select {
	case <-r.spoke:
	case err := <-r.ended:
		t.Fatalf("%q ended before its first round: %v", r.args, err)
	case <-time.After(patience):
		t.Fatalf("%q hangs", r.args)
	}
	return r
}

// wait returns the outcome.
func (r *running) wait() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		r.t.Fatalf("%q hangs", r.args)
		return nil
	}
}

func (r *running) mustEnd() {
	r.t.Helper()
	if err := r.wait(); err != nil {
		r.t.Errorf("%q failed: %v", r.args, err)
	}
}

// mustFail checks that the outcome is an error that contains these words.
func (r *running) mustFail(words ...string) {
	r.t.Helper()
	err := r.wait()
	if err == nil {
		r.t.Errorf("%q succeeded, want an error", r.args)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			r.t.Errorf("%q failed with %q, which does not say %q", r.args, err, w)
		}
	}
}

// stranger is a peer that does not follow the protocol. It is a session whose role and talk are
// scripted.
type stranger struct {
	c           *conn
	s           *session
	port        string
	cancel      context.CancelFunc
	outcome     chan error
	established func(*conn) error
	heard       func(*conn, buffer) error
	finished    bool
	deaf        atomic.Bool   // does not answer requests
	rejects     atomic.Bool   // rejects with a text instead of accepting
	asked       chan struct{} // closed when an unanswered request has arrived
	gone        chan struct{} // closed when its connection has ended
}

// meet starts a stranger: a server on a free port, or a client of the server at port.
func meet(t *testing.T, port string, established func(*conn) error, heard func(*conn, buffer) error) *stranger {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	st := &stranger{cancel: cancel, established: established, heard: heard, outcome: make(chan error, 1), gone: make(chan struct{}), asked: make(chan struct{})}
	st.s = &session{
		pingFlags: pingFlags{where: where{timeout: patience}}, ctx: ctx, stdout: io.Discard, stderr: io.Discard,
		role: st, conns: make(map[*cmid.ID]*conn),
	}
	listening := make(chan struct{})
	go func() {
		var err error
		if st.s.ch, err = endpoint.Open(iwarp.New()); err == nil {
			to := "127.0.0.1:" + port
			if port == "" {
				to += "0"
			}
			err = st.start(cmid.MustAddr(to))
			close(listening)
		}
		if err == nil {
			err = st.s.serveEvents()
		}
		st.outcome <- err
		_ = st.s.ch.Close()
	}()
	<-listening
	t.Cleanup(func() {
		cancel()
		if err := <-st.outcome; err != nil {
			t.Errorf("the stranger failed: %v", err)
		}
	})
	return st
}

func (st *stranger) start(addr cmid.Addr) error {
	id, err := st.s.ch.CreateID(cmid.PortSpaceTCP)
	if err != nil {
		return err
	}
	if addr.Port() != 0 {
		st.c = st.s.newConn(id, st)
		st.c.startStep("resolving")
		return id.ResolveAddr(cmid.Addr{}, addr, 0)
	}
	if err := id.BindAddr(addr); err != nil {
		return err
	}
	_, st.port, _ = net.SplitHostPort(id.LocalAddr().String())
	return id.Listen(1)
}

func (st *stranger) handleOther(id *cmid.ID, ev cmid.Event) error {
	if _, ok := ev.(*cmid.ConnectRequest); !ok {
		return ev.(error)
	}
	switch {
	case st.deaf.Load():
		close(st.asked)
		return nil
	case st.rejects.Load():
		return errors.Join(id.Reject([]byte("this is a chat/1 server")), id.Destroy())
	}
	st.c = st.s.newConn(id, st)
	st.c.startStep("accepting")
	if err := st.c.setUpQueuePair(); err != nil {
		return err
	}
	return id.Accept(nil, depthParams())
}

func (st *stranger) handleEvent(ev cmid.Event) error {
	switch ev.(type) {
	case *cmid.AddrResolved:
		return st.c.ID.ResolveRoute(0)
	case *cmid.RouteResolved:
		if err := st.c.setUpQueuePair(); err != nil {
			return err
		}
		return st.c.ID.Connect(nil, depthParams())
	case *cmid.Established:
		if st.established != nil {
			return st.established(st.c)
		}
	}
	return nil
}

// vanish ends instead of answering a message.
func vanish(c *conn, _ buffer) error {
	c.talk.(*stranger).finished = true
	return nil
}

func (st *stranger) handleMessage(b buffer) error {
	if st.heard != nil {
		return st.heard(st.c, b)
	}
	return nil
}

func (st *stranger) handleDone(verbs.Opcode) error    { return nil }
func (st *stranger) mayDisconnect() bool              { return true }
func (st *stranger) stop() error                      { st.finished = true; return nil }
func (st *stranger) handleOutcome(*conn, error) error { close(st.gone); return nil }
func (st *stranger) isOver() bool                     { return st.finished }
