package rdmanet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// stranger spawns a peer without this package: an actor that runs script on every message.
func stranger(tb testing.TB, rt *rdma.Runtime, script func(ctx actor.Context)) *actor.PID {
	tb.Helper()
	return rt.System().Root.Spawn(actor.PropsFromFunc(script, rt.OnLoop()))
}

// A peer with another protocol, or without a greeting, is rejected with a reason as text.
func TestStrangersAreRejected(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	for _, private := range []string{"", "chat/1", tag, tag + "\x00"} {
		id := rt.CreateID(nil)
		_, err := rdma.Ask[*rdma.Established](t.Context(), rt, id, &rdma.Dial{Addr: l.Addr().String(), PrivateData: []byte(private)})
		var rejected *rdma.Rejected
		if !errors.As(err, &rejected) || !strings.Contains(string(rejected.PrivateData), "rdmanet/1") {
			t.Errorf("with %q: %v", private, err)
		}
	}
	connect(t, rt, l) // they take no place in the backlog
}

// A later version's greeting begins as this one's does.
func TestLaterVersions(t *testing.T) {
	for private, ok := range map[string]bool{
		tag + "\x01": true, tag + "\x02": true, tag + "\x02and more": true,
		"": false, "rdma": false, tag: false, tag + "\x00": false, "rdmane\x01": false,
	} {
		if wrong := checkGreeting([]byte(private)); (wrong == "") != ok {
			t.Errorf("%q: %q", private, wrong)
		}
	}
}

// servesStrangers starts a listener of another protocol. It answers each request with answer, a
// Reject or an Accept with private data.
func servesStrangers(tb testing.TB, rt *rdma.Runtime, answer rdma.Command) (addr string) {
	tb.Helper()
	pid := stranger(tb, rt, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
			ctx.Respond(answer)
		}
	})
	ev, err := rdma.Ask[*rdma.Listening](tb.Context(), rt, rt.CreateID(pid), &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		tb.Fatal(err)
	}
	return ev.Local.String()
}

// If a server speaks another protocol, Dial's error reports that.
func TestDialingAStranger(t *testing.T) {
	rt := openRuntime(t)
	_, err := Dial(t.Context(), rt, servesStrangers(t, rt, &rdma.Accept{PrivateData: []byte("chat/1")}))
	is(t, err, unix.EPROTO)
	_, err = Dial(t.Context(), rt, servesStrangers(t, rt, &rdma.Reject{PrivateData: []byte("want chat/1")}))
	is(t, err, unix.ECONNREFUSED)
	if !strings.Contains(err.Error(), `"want chat/1"`) {
		t.Errorf("%v does not say what the peer says", err)
	}
}

// dialsAs dials l with the right greeting, and then sends the test's messages. It returns the
// server's end.
func dialsAs(tb testing.TB, rt *rdma.Runtime, l *Listener, cfg rdma.IDConfig, sends ...string) (id *actor.PID, server *Conn) {
	tb.Helper()
	id = rt.CreateID(stranger(tb, rt, func(actor.Context) {}), cfg)
	_, err := rdma.Ask[*rdma.Established](tb.Context(), rt, id, &rdma.Dial{Addr: l.Addr().String(), PrivateData: greetingData()})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	for _, b := range sends {
		rt.System().Root.Send(id, rdma.NewSend([]byte(b)))
	}
	return id, s.(*Conn)
}

// A message after the peer's FIN ends the connection. The FIN still counts.
func TestBytesBehindTheFIN(t *testing.T) {
	rt := openRuntime(t)
	_, server := dialsAs(t, rt, listen(t, rt), rdma.IDConfig{}, "some", "", "more")
	if got, err := io.ReadAll(server); err != nil || string(got) != "some" {
		t.Errorf("read %q, %v", got, err)
	}
	var err error
	for err == nil {
		_, err = server.Write([]byte("x"))
	}
	is(t, err, unix.EPROTO)
}

// A peer without a hello does not wait for credits. Messages beyond the window wait until earlier
// ones were read.
func TestPeerWithoutCredits(t *testing.T) {
	rt := openRuntime(t)
	large := string(make([]byte, 5000))
	var sends []string
	for range 250 {
		sends = append(sends, large)
	}
	_, server := dialsAs(t, rt, listen(t, rt), rdma.IDConfig{Raw: true}, sends...)
	if n, err := io.CopyN(io.Discard, server, 250*5000); err != nil {
		t.Errorf("%d bytes were read, and then: %v", n, err)
	}
}

// An end without a FIN is not io.EOF, even if the connection ends in order. Bytes that have arrived
// are read first, then Read returns ECONNRESET.
func TestEndWithoutFIN(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	for name, end := range map[string]rdma.Command{"orderly": &rdma.Close{}, "disconnect": &rdma.Disconnect{}} {
		t.Run(name, func(t *testing.T) {
			id, server := dialsAs(t, rt, l, rdma.IDConfig{}, "some")
			if _, err := io.ReadFull(server, make([]byte, 2)); err != nil {
				t.Fatal(err)
			}
			rt.System().Root.Send(id, end)
			got, err := io.ReadAll(server)
			is(t, err, unix.ECONNRESET)
			if string(got) != "me" {
				t.Errorf("read %q", got)
			}
			for err = nil; err == nil; {
				_, err = server.Write([]byte("x"))
			}
			is(t, err, unix.ECONNRESET)
		})
	}
}

// If the peer is killed while Read waits, Read returns ECONNRESET, and nothing is left behind.
func TestPeerIsKilled(t *testing.T) {
	if at := os.Getenv("RDMANET_TEST_DIAL"); at != "" {
		c, err := Dial(context.Background(), openRuntime(t), at)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("hello"))
		_, _ = c.Read(make([]byte, 1)) // until it is killed
		return
	}
	l := listen(t, openRuntime(t))
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestPeerIsKilled$")
	cmd.Env = append(os.Environ(), "RDMANET_TEST_DIAL="+l.Addr().String())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := make([]byte, 5)
	if _, err := io.ReadFull(s, got); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v\n%s", got, err, &out)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err = s.Read(got)
	is(t, err, unix.ECONNRESET)
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) {
		t.Error(fmt.Errorf("the peer ended by itself: %w\n%s", err, &out))
	}
}
