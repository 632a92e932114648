package iwarp

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/internal/sockets"
	"github.com/rdmactor/rdmactor/states"
)

// TestStalledPeer: a peer that stalls in the middle of a message is given up. A peer whose bytes
// wait for a busy loop is not.
func TestStalledPeer(t *testing.T) {
	const limit = time.Second // a machine may stop the test for less
	n := newNode(t, func(c *Config) { c.MessageTimeout = limit })
	_, addr := n.listen("127.0.0.1:0")
	r := rawDial(t, addr)
	r.write(wire.AppendFrame(nil, &wire.Frame{Revision: 1}))
	turns(t, "request", func() bool { return len(n.events) == 1 }, n)
	h := n.events[0].child
	n.qp(h, 2)
	n.do(h, &cmid.Accept{})
	n.wait(h, states.KindEstablished)
	msg := wire.AppendFPDU(nil, &wire.FPDU{ULPDU: append(wire.AppendHeader(nil, &wire.Header{Last: true, Opcode: wire.OpSend, MSN: 1}), "hello"...)})
	r.write(msg[:10])
	turns(t, "the first bytes are read", func() bool { c := n.in.ids[h].conn; _, armed := c.core.Deadline(); return armed }, n)
	idle := 0
	turns(t, "epoll forgets that the socket was readable", func() bool { idle++; return idle > 3 }, n)
	crowd(n, 200)
	r.write(msg[10:])
	// the loop is busy elsewhere; afterwards so much is readable that timers run first
	time.Sleep(limit + limit/10)
	turns(t, "the message", func() bool { return len(n.wcs) == 1 }, n)
	if e := n.found(h, states.KindDisconnected); e != nil {
		t.Fatalf("the peer was given up with its bytes unread: %v", e)
	}
	msg[15] = 2 // the low byte of the MSN
	r.write(msg[:10])
	if e := n.wait(h, states.KindDisconnected); !errors.Is(e.err, unix.ETIMEDOUT) {
		t.Errorf("a stalled peer: %v, want ETIMEDOUT", e.err)
	}
	turns(t, "the socket's end", r.ended, n)
}

// A peer that has done its part of a set-up in time is not given up because this side's loop was
// busy. Data that waits in the socket is read first, to the end.
func TestSetupOnABusyLoop(t *testing.T) {
	const limit = time.Second // as above
	times := func(c *Config) { c.ReplyTimeout, c.RequestTimeout = limit, limit }
	inPieces := func(n *node) { n.in.sys = sips{n.in.sys} }
	checks := []func(){dialOnABusyLoop(t, newNode(t, times))}
	for _, begin := range []func(*testing.T, *node) (check func()){replyOnABusyLoop, requestOnABusyLoop, firstMessageOnABusyLoop} {
		for _, reads := range []func(*node){func(*node) {}, inPieces} {
			n := newNode(t, times)
			reads(n)
			checks = append(checks, begin(t, n))
		}
	}
	time.Sleep(limit + limit/10) // all loops are busy
	for _, check := range checks {
		check()
	}
}

// sips is a Stack whose reads return a byte each, as read(2) may.
type sips struct{ sockets.Stack }

func (s sips) Recv(fd int, b []byte) (int, error) { return s.Stack.Recv(fd, b[:min(len(b), 1)]) }

func (s sips) Readv(fd int, b [][]byte) (int, error) { return s.Recv(fd, b[0]) }

// slowDial is a Stack whose first connection is not complete when connect(2) returns.
type slowDial struct {
	sockets.Stack
	asked bool
}

func (s *slowDial) Peer(fd int) (unix.Sockaddr, error) {
	if !s.asked {
		s.asked = true
		return nil, unix.ENOTCONN
	}
	return s.Stack.Peer(fd)
}

// writeBusy writes part while n's loop is busy elsewhere.
func writeBusy(t *testing.T, n *node, r *raw, part []byte) {
	t.Helper()
	idle := 0
	turns(t, "epoll forgets that the socket was readable", func() bool { idle++; return idle > 3 }, n)
	crowd(n, 200)
	r.write(part)
}

// dialOnABusyLoop: TCP's handshake is complete in time.
func dialOnABusyLoop(t *testing.T, n *node) (check func()) {
	l := rawListen(t)
	h := n.resolve(l.at)
	n.qp(h, 1)
	crowd(n, 200)
	n.in.sys = &slowDial{Stack: n.in.sys}
	n.do(h, &cmid.Connect{})
	return func() {
		if f := l.accept(n).frame(n); f.Reply {
			t.Errorf("got %v", f)
		}
		if e := n.found(h, states.KindUnreachable); e != nil {
			t.Errorf("got %v", e)
		}
	}
}

// replyOnABusyLoop: the Reply arrives in time.
func replyOnABusyLoop(t *testing.T, n *node) (check func()) {
	l := rawListen(t)
	h := n.resolve(l.at)
	n.qp(h, 1)
	n.do(h, &cmid.Connect{})
	writeBusy(t, n, l.accept(n), wire.AppendFrame(nil, &wire.Frame{
		Reply: true, Revision: 2, Flags: wire.FlagEnhanced, Control: wire.Control{IRD: 1, ORD: 1},
	}))
	return func() {
		turns(t, "an end", func() bool { return len(n.events) > 2 }, n)
		if n.found(h, states.KindEstablished) == nil {
			t.Errorf("got %v", n.events)
		}
	}
}

// requestOnABusyLoop: the Request arrives in time.
func requestOnABusyLoop(t *testing.T, n *node) (check func()) {
	_, addr := n.listen("127.0.0.1:0")
	r := rawDial(t, addr)
	turns(t, "a set-up", func() bool { return n.in.setups.n == 1 }, n)
	writeBusy(t, n, r, wire.AppendFrame(nil, &wire.Frame{Revision: 1}))
	return func() {
		turns(t, "an end", func() bool { return len(n.events) > 0 || r.ended() }, n)
		if len(n.events) != 1 || n.events[0].kind != states.KindConnectRequest {
			t.Errorf("got %v", n.events)
		}
	}
}

// firstMessageOnABusyLoop: the first message arrives in time.
func firstMessageOnABusyLoop(t *testing.T, n *node) (check func()) {
	_, addr := n.listen("127.0.0.1:0")
	r := rawDial(t, addr)
	r.write(wire.AppendFrame(nil, &wire.Frame{
		Revision: 2, Flags: wire.FlagEnhanced, Control: wire.Control{IRD: 1, ORD: 1, PeerToPeer: true, RTRWrite: true},
	}))
	turns(t, "request", func() bool { return len(n.events) == 1 }, n)
	h := n.events[0].child
	n.qp(h, 2)
	n.do(h, &cmid.Accept{})
	writeBusy(t, n, r, wire.AppendFPDU(nil, &wire.FPDU{ULPDU: wire.AppendHeader(nil, &wire.Header{Tagged: true, Last: true, Opcode: wire.OpWrite})}))
	return func() {
		turns(t, "an end", func() bool { return len(n.events) > 1 }, n)
		if n.found(h, states.KindEstablished) == nil {
			t.Errorf("got %v", n.events)
		}
	}
}

// crowd gives n's loop so many readable fds.
func crowd(n *node, fds int) {
	n.t.Helper()
	for range fds {
		fd, err := unix.Eventfd(1, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		if err != nil {
			n.t.Fatal(err)
		}
		reg, err := n.loop.Add(fd, eventloop.Readable, ignore{})
		if err != nil {
			n.t.Fatal(err)
		}
		n.t.Cleanup(func() {
			if err := reg.Remove(); err != nil {
				n.t.Error(err)
			}
			unix.Close(fd)
		})
	}
}

type ignore struct{}

func (ignore) Ready(eventloop.Events) {}
