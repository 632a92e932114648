package actor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestConversation(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	for name, where := range wheres(rt) {
		t.Run(name, func(t *testing.T) {
			server, client := newProbe(t, sys, where, nil), newProbe(t, sys, where, nil)
			p := connect(t, rt, server, client)
			for i := range 100 {
				client.send(p.c, NewSend(fmt.Appendf(nil, "ping %d", i)))
				server.send(p.s, NewSend(fmt.Appendf(nil, "pong %d", i)))
			}
			for i := range 100 {
				if g := server.any(); g.data != fmt.Sprintf("ping %d", i) || g.sender.Id != p.s.Id {
					t.Fatalf("the server got %v from %v", g, g.sender)
				}
				if g := client.any(); g.data != fmt.Sprintf("pong %d", i) || g.sender.Id != p.c.Id {
					t.Fatalf("the client got %v from %v", g, g.sender)
				}
			}
			client.send(p.c, &Close{})
			for _, side := range []*probe{server, client} {
				end := until[*Closed](side)
				if k := kinds(end); k != "Disconnected Closed" {
					t.Errorf("the end is reported as %s", k)
				}
				if c := end[len(end)-1].msg.(*Closed); c.Delivered != 100 || c.Unsent+c.Unknown != 0 || c.Err != nil {
					t.Errorf("the end: %v", end)
				}
			}
			stop(t, sys, server.pid, client.pid)
		})
	}
}

func TestPrivateDataAndReject(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	server, client := newProbe(t, sys, rt.OnLoop(), nil), newProbe(t, sys, rt.OffLoop(), nil)
	_, at := listen(server, rt, "127.0.0.1:0")
	c := rt.CreateID(client.pid, IDConfig{})
	client.send(c, &Dial{Addr: at, PrivateData: []byte("hello")})
	r, s := next[*ConnectRequest](server)
	if string(r.PrivateData) != "hello" {
		t.Errorf("the request carries %q", r.PrivateData)
	}
	server.send(s, &Reject{PrivateData: []byte("go away")})
	next[*Closed](server)
	rej, _ := next[*Rejected](client)
	if string(rej.PrivateData) != "go away" {
		t.Errorf("rejected with %q", rej.PrivateData)
	}
	if _, ok := rej.Failed().(*Dial); !ok {
		t.Errorf("what failed is %T, want the Dial", rej.Failed())
	}
	closed, _ := next[*Closed](client)
	is(t, closed.Err, unix.ECONNREFUSED)

	c = rt.CreateID(client.pid, IDConfig{})
	client.send(c, &Dial{Addr: at, PrivateData: bytes.Repeat([]byte("x"), 256)})
	f, _ := next[*CommandFailed](client)
	is(t, f, unix.EINVAL)
	if !contains(f.Error(), "256 bytes of private data, the limit is 236") {
		t.Errorf("%v does not say the limit", f)
	}
	next[*Closed](client)
}

func TestAskListensAndDials(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	server := newProbe(t, sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, "127.0.0.1:0")
	ctx := context.Background()
	c := rt.CreateID(nil, IDConfig{})
	go func() {
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{PrivateData: []byte("welcome")})
	}()
	e, err := Ask[*Established](ctx, rt, c, &Dial{Addr: at})
	if err != nil || string(e.PrivateData) != "welcome" || e.MaxMessage != defaultMaxMessage {
		t.Fatalf("%+v, %v", e, err)
	}
	if _, err := Ask[*Established](ctx, rt, c, &Dial{Addr: at}); err == nil {
		t.Error("a connected identifier has dialled")
	}
	var infos []IDInfo
	turn(t, rt, func() { infos = rt.Inspect() })
	if len(infos) != 3 || infos[0].State.String() != "listening" || infos[2].Wire != "messages" {
		t.Errorf("%+v", infos)
	}
	if _, err := Ask[*Closed](ctx, rt, c, &DestroyID{}); err != nil {
		t.Error(err)
	}
	_, err = Ask[*Closed](ctx, rt, c, &DestroyID{})
	is(t, err, unix.ENOENT)
}

func TestNobodyListens(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	client := newProbe(t, sys, rt.OnLoop(), nil)
	c := rt.CreateID(client.pid, IDConfig{})
	client.send(c, &Dial{Addr: "127.0.0.1:9"})
	f, _ := next[Failure](client)
	is(t, f, unix.ECONNREFUSED)
	next[*Closed](client)
}

func TestPortInUse(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	p := newProbe(t, sys, rt.OnLoop(), nil)
	_, at := listen(p, rt, "127.0.0.1:0")
	id := rt.CreateID(p.pid, IDConfig{})
	p.send(id, &Serve{Addr: at})
	f, _ := next[*CommandFailed](p)
	is(t, f, unix.EADDRNOTAVAIL) // the kernel's answer where loopback or a wildcard takes part
	c, _ := next[*Closed](p)
	is(t, c.Err, unix.EADDRNOTAVAIL) // the kernel's answer where loopback or a wildcard takes part
}

// TestListenerKilled: the owner of a listener whose socket the system has closed is notified, and
// the identifier ends.
func TestListenerKilled(t *testing.T) {
	sys := testSystem(t)
	log := make(lines, 16)
	rt := openIWARP(t, sys, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	server := newProbe(t, sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, "127.0.0.1:0")
	if err := unix.Shutdown(listeningAt(t, at), unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	f, _ := next[*ListenFailed](server)
	is(t, f, unix.EINVAL)
	closed, _ := next[*Closed](server)
	if !errors.Is(closed.Err, unix.EINVAL) || !errors.As(closed.Err, &f) {
		t.Errorf("closed: %v", closed.Err)
	}
	select {
	case line := <-log: // its keys have the rest
		if !contains(line, "err="+strconv.Quote(Brief(f))) || contains(line, "history") {
			t.Errorf("the log says %s", line)
		}
	case <-time.After(patience):
		t.Error("nothing in the log")
	}
}

// listeningAt returns the file descriptor of this process that listens there.
func listeningAt(t *testing.T, at string) int {
	t.Helper()
	for fd := range 1 << 12 {
		if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on == 0 {
			continue
		}
		sa, err := unix.Getsockname(fd)
		if in4, ok := sa.(*unix.SockaddrInet4); ok && err == nil && strings.HasSuffix(at, fmt.Sprintf(":%d", in4.Port)) {
			return fd
		}
	}
	t.Fatalf("nobody listens at %s", at)
	return -1
}

// lines is where a log goes line by line.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// A stranger that speaks something else to a listener is counted by the loop, and logged.
func TestStrangersAreCounted(t *testing.T) {
	sys := testSystem(t)
	log := make(lines, 16)
	rt := openIWARP(t, sys, Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	server := newProbe(t, sys, rt.OnLoop(), nil)
	id, at := listen(server, rt, "127.0.0.1:0")
	browser, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer browser.Close()
	if _, err := browser.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case line := <-log:
		if !contains(line, "level=INFO") || !contains(line, "peer="+browser.LocalAddr().String()) || !contains(line, "(HTTP)") {
			t.Errorf("the log says %s", line)
		}
	case <-time.After(patience):
		t.Fatal("nothing in the log")
	}
	turn(t, rt, func() {
		if n := rt.Loops()[0].Strangers; n != 1 {
			t.Errorf("%d strangers, want 1", n)
		}
		if i := rt.Inspect()[0]; i.Listener == nil || i.Listener.Strangers != 1 || i.Listener.Requests != 0 {
			t.Errorf("of the listener: %+v, want 1 stranger", i.Listener)
		}
	})
	server.send(id, &DestroyID{})
	until[*Closed](server)
	turn(t, rt, func() {
		if l := rt.Loops()[0]; len(l.Listeners) != 0 || l.EndedListeners.Strangers != 1 {
			t.Errorf("after the listener's end: %+v, ended %+v", l.Listeners, l.EndedListeners)
		}
	})
}
