package iwarp

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/states"
)

func TestGarbageAtTheListener(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	for _, garbage := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		string(make([]byte, 4096)),
		"MPA ID Rep Frame\x00\x02\x00\x00",         // a Reply
		"MPA ID Req Frame\x00\x09\x00\x00",         // an unknown revision
		"MPA ID Req Frame\x00\x01\xff\xff" + "xxx", // a length that MPA forbids
		string(request("")) + "and more behind it",
	} {
		r := rawDial(t, at)
		r.write([]byte(garbage))
		turns(t, "its end", r.ended, n)
	}
	if len(n.events) != 0 || n.in.setups.n != 0 || n.in.conns != 0 || len(n.in.ids) != 1 {
		t.Errorf("events %v, %d set-ups, %d connections, %d identifiers left", n.events, n.in.setups.n, n.in.conns, len(n.in.ids))
	}
	r := rawDial(t, at)
	r.write(request("fine")[:19]) // in two pieces
	turns(t, "the first piece", func() bool { return n.in.setups.n == 1 }, n)
	r.write(request("fine")[19:])
	if e := n.wait(lh, states.KindConnectRequest); e.private != "fine" {
		t.Errorf("the listener is not well any more: %v", e)
	}
}

func TestHalfARequest(t *testing.T) {
	n := newNode(t, func(c *Config) { c.RequestTimeout = 20 * time.Millisecond })
	_, at := n.listen("127.0.0.1:0")
	r := rawDial(t, at)
	r.write(request("")[:10])
	turns(t, "the end of its time", r.ended, n)
	if n.in.setups.n != 0 || n.in.conns != 0 || len(n.events) != 0 {
		t.Errorf("%d set-ups, %d connections, events %v", n.in.setups.n, n.in.conns, n.events)
	}
}

// TestSetupCap: connections above the limit wait in the kernel's queue until a Request is complete.
func TestSetupCap(t *testing.T) {
	n := newNode(t, func(c *Config) { c.MaxSetups, c.RequestTimeout = 2, 100*patience })
	lh, at := n.listen("127.0.0.1:0")
	a, b := rawDial(t, at), rawDial(t, at)
	turns(t, "two set-ups", func() bool { return n.in.setups.n == 2 }, n)
	c, d := rawDial(t, at), rawDial(t, at)
	c.write(request("c"))
	l := n.in.ids[lh].lis
	turns(t, "the pause", func() bool { return l.paused }, n)
	for range 20 {
		if err := n.loop.Turn(); err != nil {
			t.Fatal(err)
		}
	}
	if n.in.conns != 2 || len(n.events) != 0 || c.ended() || d.ended() {
		t.Errorf("%d connections of at most 2, events %v, or a connection that could wait was ended", n.in.conns, n.events)
	}
	// its set-up is done: there is room for c, whose set-up is done immediately, and then for d
	a.write(request("a"))
	turns(t, "the fourth", func() bool { return len(n.events) == 2 && n.in.setups.n == 2 }, n)
	if got := n.events[0].private + n.events[1].private; got != "ac" {
		t.Errorf("notified of %q, want a, then c", got)
	}
	rawDial(t, at)
	turns(t, "the second pause", func() bool { return l.paused }, n)
	n.do(lh, &cmid.DestroyID{})
	turns(t, "the end of set-ups without a listener", func() bool { return b.ended() && d.ended() }, n)
	if a.ended() || len(n.in.crowded) != 0 {
		t.Errorf("the request that was delivered ended with its listener: %t; %d listeners wait for room", a.ended(), len(n.in.crowded))
	}
}

// TestSilentFlood: when other peers wait for a place, silent peers lose theirs after a tenth of
// their time, the oldest first.
func TestSilentFlood(t *testing.T) {
	n := newNode(t, func(c *Config) { c.MaxSetups, c.RequestTimeout = 4, 2*time.Second })
	lh, at := n.listen("127.0.0.1:0")
	var silent []*raw
	for range 10 {
		silent = append(silent, rawDial(t, at))
	}
	good := rawDial(t, at)
	good.write(request("good"))
	most := 0
	turns(t, "the request behind a flood", func() bool {
		most = max(most, n.in.setups.n)
		return n.found(lh, states.KindConnectRequest) != nil
	}, n)
	if most > 4 {
		t.Errorf("%d set-ups at once, the limit is 4", most)
	}
	for i, r := range silent {
		if i < 7 != r.ended() {
			t.Errorf("silent peer %d ended: %t; the first seven made room", i, r.ended())
		}
	}
}

// TestEvictionListensFirst: input that a late loop has not read yet counts.
func TestEvictionListensFirst(t *testing.T) {
	n := newNode(t, func(c *Config) { c.MaxSetups, c.RequestTimeout = 1, time.Second })
	lh, at := n.listen("127.0.0.1:0")
	a := rawDial(t, at)
	turns(t, "a set-up", func() bool { return n.in.setups.n == 1 }, n)
	rawDial(t, at) // the loop hears of this one first
	a.write(request("a"))
	time.Sleep(time.Second / 8)
	if e := n.wait(lh, states.KindConnectRequest); e.private != "a" || a.ended() {
		t.Errorf("notified of %v; the first peer ended: %t", e, a.ended())
	}
}

func TestMaxConns(t *testing.T) {
	n := newNode(t, func(c *Config) { c.MaxConns = 2 })
	lh, at := n.listen("127.0.0.1:0")
	connectTo(t, n, n, lh, at, 0)
	r := rawDial(t, at)
	turns(t, "the end of the third", r.ended, n)
	if inst, lis := n.in.Strangers(), n.in.ids[lh].Strangers(); inst != 1 || lis != 1 {
		t.Errorf("who was turned away is not counted: %d, and %d of the listener", inst, lis)
	}
	h := n.resolve(at)
	if _, err := n.in.ids[h].CreateQP(qpAttr(n)); err != unix.ENOMEM && errnoOf(err) != unix.ENOMEM {
		t.Errorf("third queue pair: %v, want ENOMEM", err)
	}
}

// TestAcceptWithoutFDs: a process that has no file descriptors left pauses its listeners instead of
// spinning, counts the pauses, and logs them once a minute. Later they go on.
func TestAcceptWithoutFDs(t *testing.T) {
	var log bytes.Buffer
	n := newNodeLogging(t, New(), slog.New(slog.NewTextHandler(&log, nil)))
	lh, at := n.listen("127.0.0.1:0")
	first, second := rawDial(t, at), rawDial(t, at)
	first.write(request("one"))
	second.write(request("two"))
	used := fds(t) + 8
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	limit(t, before, uint64(used))
	for { // also the holes below
		fd, err := unix.Dup(first.fd)
		if err != nil {
			break
		}
		defer unix.Close(fd)
	}
	l := n.in.ids[lh].lis
	turns(t, "the pause", func() bool { return l.paused }, n)
	turnsBefore := n.loop.Stats().Turns
	for range 100 {
		if err := n.loop.Turn(); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.loop.Stats().Turns - turnsBefore; !l.paused || n.in.conns != 0 || got != 100 {
		t.Errorf("paused %t, %d connections after %d turns", l.paused, n.in.conns, got)
	}
	if n.in.ids[lh].Starved() == 0 {
		t.Error("the pause is not counted")
	}
	if lines := strings.Count(log.String(), "cannot accept"); lines != 1 || !strings.Contains(log.String(), at.String()) {
		t.Errorf("logged %d times, want once, with the address:\n%s", lines, &log)
	}
	limit(t, before, before.Cur)
	turns(t, "both requests", func() bool { return len(n.events) == 2 }, n)
	if l.paused {
		t.Error("still paused")
	}
}

// TestEvictionWithoutFDs: when there are no file descriptors left, the oldest silent peer is
// closed, as at MaxSetups.
func TestEvictionWithoutFDs(t *testing.T) {
	n := newNode(t, func(c *Config) { c.RequestTimeout = 2 * patience }) // each has a tenth of it
	lh, at := n.listen("127.0.0.1:0")
	var silent []*raw
	for range 4 {
		silent = append(silent, rawDial(t, at))
	}
	good := rawDial(t, at)
	good.write(request("good"))
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	limit(t, before, uint64(fds(t)+8))
	var spare []int
	for {
		fd, err := unix.Dup(good.fd)
		if err != nil {
			break
		}
		spare = append(spare, fd)
	}
	defer func() {
		for _, fd := range spare {
			unix.Close(fd)
		}
	}()
	for range silent { // room for these, not for the good one
		unix.Close(spare[len(spare)-1])
		spare = spare[:len(spare)-1]
	}
	if e := n.wait(lh, states.KindConnectRequest); e.private != "good" {
		t.Errorf("got %v", e)
	}
	for i, r := range silent {
		if i == 0 != r.ended() {
			t.Errorf("silent peer %d ended: %t; the first one made room", i, r.ended())
		}
	}
	if got := n.in.Strangers(); got != 1 {
		t.Errorf("%d strangers, but one had to make room", got)
	}
}

// refused returns a Request that the application never sees: it demands markers, which we do not
// support.
func refused() []byte {
	return wire.AppendFrame(nil, &wire.Frame{Flags: wire.FlagMarkers, Revision: 1})
}

// TestRefusedSetups: a refused set-up waits until its peer has read the reason. Until then it is
// still a set-up: it is limited together with the others, counted once, and closed with its
// listener and its device.
func TestRefusedSetups(t *testing.T) {
	refuse := func(n *node, at cmid.Addr) *raw {
		t.Helper()
		r := rawDial(t, at)
		r.write(refused())
		if f := r.frame(n); f.Flags&wire.FlagReject == 0 {
			t.Fatalf("the peer got %+v, want a rejecting Reply", f)
		}
		return r
	}
	t.Run("bounded", func(t *testing.T) {
		const most = 4
		n := newNode(t, func(c *Config) { c.MaxSetups = most })
		_, at := n.listen("127.0.0.1:0")
		for i := range uint64(3 * most) {
			refuse(n, at)
			if n.in.conns > most {
				t.Fatalf("%d sockets of set-ups, want no more than %d", n.in.conns, most)
			}
			if got := n.in.Strangers(); got != i+1 {
				t.Fatalf("%d strangers, want %d", got, i+1)
			}
		}
	})
	t.Run("their time", func(t *testing.T) {
		n := newNode(t)
		_, at := n.listen("127.0.0.1:0")
		refuse(n, at)
		turns(t, "the end", func() bool { return n.in.conns == 0 && n.in.setups.n == 0 }, n)
	})
	t.Run("the listener ends", func(t *testing.T) {
		n := newNode(t)
		lh, at := n.listen("127.0.0.1:0")
		r := refuse(n, at)
		n.do(lh, &cmid.DestroyID{})
		if n.in.conns != 0 || !r.ended() {
			t.Errorf("%d connections, the peer's ended: %t", n.in.conns, r.ended())
		}
	})
	t.Run("the device is closed", func(t *testing.T) {
		n := newNode(t)
		_, at := n.listen("127.0.0.1:0")
		r := refuse(n, at)
		if err := n.inst.Close(); err != nil {
			t.Error(err)
		}
		if !r.ended() {
			t.Error("its socket is open")
		}
	})
}

func limit(t *testing.T, r unix.Rlimit, cur uint64) {
	t.Helper()
	time.Sleep(time.Millisecond) // Go's first timer needs a descriptor: it dies without
	old := r
	r.Cur = cur
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Error(err)
		}
	})
}

// TestListenerDestroyed: the child that was delivered lives on. The connection whose Request has
// not arrived is closed.
func TestListenerDestroyed(t *testing.T) {
	client, server := newNode(t), newNode(t)
	lh, at := server.listen("127.0.0.1:0")
	var hs []cmid.Handle
	for range 2 {
		h := client.resolve(at)
		client.qp(h, 1)
		client.do(h, &cmid.Connect{})
		hs = append(hs, h)
	}
	turns(t, "both Requests written", func() bool { return pendingBytes(client, hs) }, client)
	server.react = func(e delivered) {
		if e.kind == states.KindConnectRequest {
			server.do(lh, &cmid.DestroyID{}) // the other request is queued behind this one
		}
	}
	turns(t, "one request", func() bool { return len(server.events) == 1 }, server)
	child := server.events[0].child
	server.qp(child, 1)
	server.do(child, &cmid.Accept{})
	turns(t, "one accepted, one rejected", func() bool { return len(client.events) == 6 }, client, server)
	kinds := map[states.Kind]int{}
	for _, e := range client.events[4:] {
		kinds[e.kind]++
	}
	if kinds[states.KindEstablished] != 1 || kinds[states.KindRejected] != 1 {
		t.Errorf("client got %v, want one Established and one Rejected", client.events[4:])
	}
	if len(server.in.ids) != 1 {
		t.Errorf("%d identifiers left at the server, want the accepted one", len(server.in.ids))
	}
}

// pendingBytes reports whether every identifier's connection has written its Request.
func pendingBytes(n *node, hs []cmid.Handle) bool {
	for _, h := range hs {
		if c := n.in.ids[h].conn; c.phase != phRunning || c.core.Pending() {
			return false
		}
	}
	return true
}

// TestRequestBehindItsListener: if the application destroys a listener while a request waits to be
// delivered, the request is rejected.
func TestRequestBehindItsListener(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	other := n.resolve(at)
	q := n.qp(other, 1)
	r := rawDial(t, at)
	turns(t, "a set-up", func() bool { return n.in.setups.n == 1 }, n)
	r.write(request(""))
	if err := q.Destroy(); err != nil { // its flush is reported before the request
		t.Fatal(err)
	}
	n.onPoll = func() { n.do(lh, &cmid.DestroyID{}) }
	f := r.frame(n)
	if !f.Reply || f.Flags&wire.FlagReject == 0 {
		t.Errorf("the peer got %+v, want a rejecting Reply", f)
	}
	if n.found(lh, states.KindConnectRequest) != nil || len(n.in.ids) != 1 {
		t.Errorf("events %v, %d identifiers, want only the one that resolved", n.events, len(n.in.ids))
	}
}

// TestCloseRejects: when the driver is closed, unanswered requests are rejected.
func TestCloseRejects(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	r := rawDial(t, at)
	r.write(request(""))
	n.wait(lh, states.KindConnectRequest)
	if err := n.inst.Close(); err != nil {
		t.Fatal(err)
	}
	if f := r.frame(); !f.Reply || f.Flags&wire.FlagReject == 0 {
		t.Errorf("the peer got %+v, want a rejecting Reply", f)
	}
}

// TestListenAgain: a server that has closed its connections and starts again gets its port,
// although its old connections are in TIME_WAIT there.
func TestListenAgain(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	p := connectTo(t, n, n, lh, at, 0)
	n.do(p.sh, &cmid.Disconnect{})
	n.wait(p.sh, states.KindDisconnected)
	for _, h := range []cmid.Handle{p.ch, p.sh, lh} {
		n.do(h, &cmid.DestroyID{})
	}
	turns(t, "its sockets", func() bool { return n.in.conns == 0 }, n)
	lh, again := n.listen(at.String())
	if again != at {
		t.Fatalf("listens at %v, want %v", again, at)
	}
	n.events = nil
	connectTo(t, n, n, lh, at, 0)
}

// TestListenerKilled: if the system shuts a listening socket down, as `ss -K` does, the listener
// ends and its owner gets the reason. Otherwise the socket would be ready in every turn.
func TestListenerKilled(t *testing.T) {
	for what, full := range map[string]bool{"idle": false, "no room for set-ups": true} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t, func(c *Config) { c.MaxSetups, c.RequestTimeout = 1, 100*patience })
			lh, at := n.listen("127.0.0.1:0")
			l := n.in.ids[lh].lis
			r := rawDial(t, at)
			turns(t, "a set-up", func() bool { return n.in.setups.n == 1 }, n)
			if full {
				rawDial(t, at)
				turns(t, "the pause", func() bool { return l.paused }, n)
			}
			if err := unix.Shutdown(l.fd, unix.SHUT_RDWR); err != nil {
				t.Fatal(err)
			}
			e := n.wait(lh, states.KindListenFailed)
			if !errors.Is(e.err, unix.EINVAL) || e.status != -int32(unix.EINVAL) {
				t.Errorf("got %v, want EINVAL", e)
			}
			turns(t, "the end of the set-up", r.ended, n)
			if len(n.events) != 1 || n.in.conns != 0 || len(n.in.crowded) != 0 {
				t.Errorf("events %v, %d connections, %d listeners wait", n.events, n.in.conns, len(n.in.crowded))
			}
			n.do(lh, &cmid.DestroyID{})
			lh, again := n.listen(at.String())
			rawDial(t, again).write(request("again"))
			n.wait(lh, states.KindConnectRequest)
		})
	}
}

// TestListenerClosed: a file descriptor that other code has closed is not closed again, because its
// number may be in use again.
func TestListenerClosed(t *testing.T) {
	n := newNode(t)
	lh, _ := n.listen("127.0.0.1:0")
	l := n.in.ids[lh].lis
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	// closes the socket, and takes its number
	if err := unix.Dup3(fd, l.fd, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	number := l.fd
	defer unix.Close(number)
	l.Ready(eventloop.Readable)
	if e := n.wait(lh, states.KindListenFailed); !errors.Is(e.err, unix.ENOTSOCK) {
		t.Errorf("got %v, want ENOTSOCK", e)
	}
	n.do(lh, &cmid.DestroyID{})
	if _, err := unix.FcntlInt(uintptr(number), unix.F_GETFD, 0); err != nil {
		t.Errorf("the file that has the number now: %v", err)
	}
}
