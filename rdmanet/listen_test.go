package rdmanet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// Close ends Accept and the connections that were not accepted, and frees the address. Accepted
// connections go on.
func TestListenerClose(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	client, server := connect(t, rt, l)
	left, err := Dial(t.Context(), rt, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	errs := make(chan error)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				errs <- err
				return
			}
			defer c.Close()
		}
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	is(t, <-errs, net.ErrClosed)
	is(t, l.Close(), net.ErrClosed)
	is(t, l.SetDeadline(time.Time{}), net.ErrClosed)
	_, err = Dial(t.Context(), rt, l.Addr().String())
	is(t, err, unix.ECONNREFUSED)
	again, err := Listen(t.Context(), rt, l.Addr().String())
	if err != nil {
		t.Fatalf("the address is not free: %v", err)
	}
	_ = again.Close()
	if _, err := client.Write([]byte("still")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 5)); err != nil {
		t.Error(err)
	}
}

// The listener's Close ends connections that were not accepted.
func TestListenerCloseCutsOff(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	c, err := Dial(t.Context(), rt, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for waits := 0; waits == 0; runtime.Gosched() {
		l.mu.Lock()
		waits = len(l.ready)
		l.mu.Unlock()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = c.Read(make([]byte, 1))
	is(t, err, unix.ECONNRESET)
}

// Beyond the backlog the peer is rejected, with a reason; an Accept makes room.
func TestBacklog(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt, Config{Backlog: 3}) // one is left for other addresses
	dial := func() (net.Conn, error) { return Dial(t.Context(), rt, l.Addr().String()) }
	for range 2 {
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	_, err := dial()
	is(t, err, unix.ECONNREFUSED)
	if !strings.Contains(err.Error(), "2 connections wait to be accepted") {
		t.Errorf("%v does not say why", err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
}

// Unaccepted connections of one address leave room for others, and so do peers that have only begun
// theirs.
func TestBacklogIsShared(t *testing.T) {
	const backlog = 16
	rt := openRuntime(t)
	l := listen(t, rt, Config{Backlog: backlog})
	dial := func(from string) error {
		c, err := Dial(t.Context(), rt, l.Addr().String(), Config{Local: rdma.MustAddr(from + ":0")})
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return err
	}
	n := 0
	for ; dial("127.0.0.1") == nil; n++ {
		if n > backlog {
			t.Fatal("the backlog has no end")
		}
	}
	if n < backlog/4 || n > backlog*3/4 {
		t.Errorf("one address has %d of %d places", n, backlog)
	}
	for range 2 {
		if err := dial("127.0.0.2"); err != nil {
			t.Errorf("beside %d connections of another address: %v", n, err)
		}
	}
	for range n {
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	silent := netip.MustParseAddr("127.0.0.3")
	for n = 0; l.admitPeer(silent) == ""; n++ {
	}
	if err := dial("127.0.0.1"); err != nil {
		t.Errorf("beside %d that are not established: %v", n, err)
	}
	for range n {
		l.removeFailed(silent)
	}
	if l.admitPeer(silent) != "" {
		t.Error("an address whose connections have failed has no place")
	}
}

// Streams work on several loops, accepted and dialled ones, concurrently.
func TestSeveralLoops(t *testing.T) {
	rt := openRuntime(t, rdma.Config{Loops: make([]eventloop.Config, 2)})
	l := listen(t, rt)
	const n = 20
	done := make(chan error, 2*n)
	go func() {
		for range n {
			s, err := l.Accept()
			if err != nil {
				done <- err
				continue
			}
			go func() {
				_, err := io.Copy(s, s)
				done <- errors.Join(err, s.Close())
			}()
		}
	}()
	for i := range n {
		go func() {
			c, err := Dial(t.Context(), rt, l.Addr().String())
			if err != nil {
				done <- err
				return
			}
			defer c.Close()
			want := fmt.Sprintf("%0*d", 100_000+i, i)
			go func() {
				_, _ = io.WriteString(c, want)
				_ = c.(*Conn).CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err == nil && string(got) != want {
				err = fmt.Errorf("%d other bytes came back", len(got))
			}
			done <- err
		}()
	}
	for range 2 * n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The connections of one listener are spread over the loops, and so are those of one Dialer.
func TestSpread(t *testing.T) {
	rt, far := openRuntime(t, rdma.Config{Loops: make([]eventloop.Config, 2)}), openRuntime(t, rdma.Config{Loops: make([]eventloop.Config, 2)})
	l := listen(t, rt)
	for range 4 {
		connect(t, far, l)
	}
	for name, rt := range map[string]*rdma.Runtime{"accepted": rt, "dialled": far} {
		loops := map[string]int{}
		for _, id := range rt.Inspect() {
			if id.State == states.Connected {
				loops[id.Loop]++
			}
		}
		if len(loops) != 2 {
			t.Errorf("the loops of what was %s: %v", name, loops)
		}
	}
}

// Listen fails for an address that is taken, for one that is malformed, and after the end of its
// context.
func TestListenFails(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	_, err := Listen(t.Context(), rt, l.Addr().String())
	is(t, err, unix.EADDRNOTAVAIL)
	_, err = Listen(t.Context(), rt, "nonsense")
	is(t, err, unix.EINVAL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Listen(ctx, rt, "127.0.0.1:0")
	is(t, err, unix.ECANCELED)
	is(t, err, context.Canceled)
}

// Accept ends with a time-out at its deadline, works afterwards, and does not see an old one.
func TestAcceptDeadline(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	for _, at := range []time.Time{time.Now().Add(time.Millisecond), time.Unix(1, 0)} {
		if err := l.SetDeadline(at); err != nil {
			t.Fatal(err)
		}
		_, err := l.Accept()
		is(t, err, os.ErrDeadlineExceeded)
	}
	if err := l.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	connect(t, rt, l)
}

// After the runtime's Shutdown Listen and Dial fail, and waiting methods return an error.
func TestShutdownEndsEverything(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	client, server := connect(t, rt, l)
	errs := make(chan error, 2)
	go func() {
		_, err := l.Accept()
		errs <- err
	}()
	go func() {
		_, err := client.Read(make([]byte, 1))
		errs <- err
	}()
	if err := rt.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-errs; err == nil || errors.Is(err, net.ErrClosed) {
			t.Errorf("after Shutdown what waited got %v", err)
		}
	}
	for err := error(nil); err == nil; { // fills the window
		_, err = server.Write([]byte("x"))
	}
	if _, err := Dial(t.Context(), rt, l.Addr().String()); err == nil {
		t.Error("dialled")
	}
	if _, err := Listen(t.Context(), rt, "127.0.0.1:0"); err == nil {
		t.Error("listened")
	}
	_ = client.Close()
	_ = server.Close()
	_ = l.Close()
}

// A connection that is established after Accept has reported the listener's end is reset, because
// the bytes that its peer sends would not be read, and Shutdown would wait for that in vain.
func TestAcceptedAfterTheEnd(t *testing.T) {
	near, far := openRuntime(t), openRuntime(t)
	l, err := Listen(t.Context(), near, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.(*Listener).failWait(&failure{unix.ENODEV, rdma.ErrShutdown})
	_, err = l.Accept()
	is(t, err, unix.ENODEV)
	c, err := Dial(t.Context(), far, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write(make([]byte, 8<<10))
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err = c.Read(make([]byte, 1))
	is(t, err, unix.ECONNRESET)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := near.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	_ = l.Close()
}

// A Dial without an answer ends with its context, and leaves nothing behind.
func TestDialGivesUp(t *testing.T) {
	rt := openRuntime(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Dial(ctx, rt, "127.0.0.1:9")
	is(t, err, unix.ECANCELED)
	is(t, err, context.Canceled)
	ctx, cancel = context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	_, err = Dial(ctx, rt, "127.0.0.1:9")
	is(t, err, context.DeadlineExceeded)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v is no time-out", err)
	}
	_, err = Dial(t.Context(), rt, "127.0.0.1:9")
	is(t, err, unix.ECONNREFUSED)
	_, err = Dial(t.Context(), rt, "nonsense")
	is(t, err, unix.EINVAL)
	_, err = Dial(t.Context(), rt, "127.0.0.1:9", Config{Local: rdma.MustAddr("192.0.2.1:0")})
	if err == nil {
		t.Error("dialled from somebody else's address")
	}
}
