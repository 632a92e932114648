package iwarp

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

func TestDisconnectByEither(t *testing.T) {
	for _, byServer := range []bool{false, true} {
		client, server := newNode(t), newNode(t)
		p := connect(t, client, server, 3)
		n, h, q := client, p.ch, p.cq
		if byServer {
			n, h, q = server, p.sh, p.sq
		}
		q.send(9, "posted before") // is sent first, as if a doorbell had been rung
		n.do(h, &cmid.Disconnect{})
		if err := q.PostSend(&verbs.SendWR{Inline: []byte("x")}); !errors.Is(err, unix.EINVAL) {
			t.Errorf("send after Disconnect: %v, want EINVAL", err)
		}
		if n.found(h, states.KindDisconnected) != nil {
			t.Error("Disconnected was delivered from inside Do")
		}
		for _, e := range []delivered{client.wait(p.ch, states.KindDisconnected, server), server.wait(p.sh, states.KindDisconnected, client)} {
			if e.status != 0 || e.err != nil || e.polled < 3 {
				t.Errorf("byServer %t: %v after %d completions, want an orderly end behind all completions", byServer, e, e.polled)
			}
		}
		n.do(h, &cmid.Disconnect{}) // asked twice: harmless
		for _, n := range []*node{client, server} {
			if n.in.conns != 0 {
				t.Errorf("%d sockets left after both FINs", n.in.conns)
			}
		}
	}
}

// TestDisconnectKeepsWhatWasSent: data that the peer sent before it saw this side's FIN is
// received, and reported before Disconnected.
func TestDisconnectKeepsWhatWasSent(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 4)
	p.sq.send(1, "crossing")
	turns(t, "written", func() bool { return len(server.wcs) == 1 }, server)
	client.do(p.ch, &cmid.Disconnect{})
	e := client.wait(p.ch, states.KindDisconnected, server)
	if client.wcs[0].Status != verbs.StatusSuccess || p.cq.got(client.wcs[0]) != "crossing" || e.polled != 4 {
		t.Errorf("completions %+v, %d of them before Disconnected", client.wcs, e.polled)
	}
}

// TestNoReceivePosted: a message without a receive ends its connection, with a Terminate that both
// sides report. Other connections are not affected.
func TestNoReceivePosted(t *testing.T) {
	client, server := newNode(t), newNode(t)
	lh, at := server.listen("127.0.0.1:0")
	good, bad := connectTo(t, client, server, lh, at, 1), connectTo(t, client, server, lh, at, 0)
	bad.cq.send(1, "nobody waits for this")
	var sent, received *core.Error
	if e := server.wait(bad.sh, states.KindDisconnected, client); !errors.As(e.err, &sent) || !sent.Sent {
		t.Errorf("the receiver: %v, want a Terminate sent", e)
	}
	if e := client.wait(bad.ch, states.KindDisconnected, server); !errors.As(e.err, &received) || !received.Received || e.status != 0 {
		t.Errorf("the sender: %v, want a Terminate received", e)
	}
	if sent.Layer != received.Layer || sent.Type != received.Type || sent.Code != received.Code {
		t.Errorf("sent %v, received %v", sent, received)
	}
	good.cq.send(2, "still here")
	turns(t, "the other connection", func() bool { return len(server.wcs) == 1 }, client, server)
	if got := good.sq.got(server.wcs[0]); got != "still here" {
		t.Errorf("got %q", got)
	}
	for _, x := range []struct {
		n *node
		h cmid.Handle
	}{{client, bad.ch}, {server, bad.sh}} {
		x.n.do(x.h, &cmid.DestroyID{})
	}
	turns(t, "the bad one's sockets", func() bool { return client.in.conns == 1 && server.in.conns == 1 }, client, server)
}

func TestTooLong(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 1)
	p.cq.send(1, string(make([]byte, 5000)))
	server.wait(p.sh, states.KindDisconnected, client)
	client.wait(p.ch, states.KindDisconnected, server)
	if len(server.wcs) != 1 || server.wcs[0].Status != verbs.StatusLocLen {
		t.Errorf("completions %+v, want a length error", server.wcs)
	}
}

func TestReset(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	r := rawDial(t, at)
	r.write(request(""))
	req := n.wait(lh, states.KindConnectRequest)
	n.qp(req.child, 2)
	n.do(req.child, &cmid.Accept{})
	n.wait(req.child, states.KindEstablished)
	r.reset()
	if e := n.wait(req.child, states.KindDisconnected); e.status != 0 || !errors.Is(e.err, unix.ECONNRESET) || e.polled != 2 {
		t.Errorf("%v after %d completions, want status 0, ECONNRESET, both receives flushed", e, e.polled)
	}
}

// TestDestroyEverywhere destroys an identifier in every possible state and checks that nothing is
// left of it.
func TestDestroyEverywhere(t *testing.T) {
	stages := []string{
		"idle", "bound", "listening", "resolving", "resolved", "queue pair", "connecting", "requested", "requested with queue pair",
		"accepting", "connected", "sending", "disconnecting", "ended",
	}
	for _, stage := range stages {
		for _, whose := range []string{"client", "server"} {
			t.Run(stage+" "+whose, func(t *testing.T) {
				before := fds(t)
				client := newNode(t, func(c *Config) { c.LingerTimeout = time.Minute })
				server := newNode(t)
				lh, at := server.listen("127.0.0.1:0")
				victim, h := reach(t, stage, whose, client, server, lh, at)
				delivered := len(victim.events)
				victim.do(h, &cmid.DestroyID{})
				if victim.in.ids[h] != nil {
					t.Error("the identifier is still there")
				}
				turns(t, "its sockets", func() bool { return victim.in.lingers.n == 0 }, client, server)
				for _, e := range victim.events[delivered:] {
					if e.h == h {
						t.Errorf("got %v after DestroyID", e)
					}
				}
				for _, wc := range victim.wcs {
					if wc.Status != verbs.StatusFlushed && wc.Op == verbs.Recv {
						t.Errorf("completion %+v, want it flushed", wc)
					}
				}
				for _, n := range []*node{client, server} {
					if err := n.inst.Close(); err != nil {
						t.Error(err)
					}
					if n.loop.Stats().FDs != 0 || n.loop.Stats().Timers != 0 || len(n.in.dev.qps) != 0 {
						t.Errorf("left in the loop: %+v, queue pairs %d", n.loop.Stats(), len(n.in.dev.qps))
					}
				}
				if got := fds(t) - 4; got != before { // the loops' own: epoll and eventfd, twice
					t.Errorf("%d fds, %d before", got, before)
				}
			})
		}
	}
}

// reach brings an identifier to a stage and returns it with its node.
func reach(t *testing.T, stage, whose string, client, server *node, lh cmid.Handle, at cmid.Addr) (*node, cmid.Handle) {
	h := client.id()
	own := func() (*node, cmid.Handle) {
		if whose == "server" {
			return server, lh
		}
		return client, h
	}
	switch stage {
	case "idle", "listening":
		return own()
	case "bound":
		client.do(h, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
		return own()
	}
	client.do(h, &cmid.ResolveAddr{Dst: at})
	if stage == "resolving" {
		return own()
	}
	client.wait(h, states.KindAddrResolved)
	if stage == "resolved" {
		return own()
	}
	cq := client.qp(h, 3)
	if stage == "queue pair" {
		return own()
	}
	client.do(h, &cmid.Connect{})
	if stage == "connecting" {
		return own()
	}
	child := server.wait(lh, states.KindConnectRequest, client).child
	own = func() (*node, cmid.Handle) {
		if whose == "server" {
			return server, child
		}
		return client, h
	}
	if stage == "requested" {
		return own()
	}
	server.qp(child, 3)
	if stage == "requested with queue pair" {
		return own()
	}
	server.do(child, &cmid.Accept{})
	if stage == "accepting" {
		return own()
	}
	client.wait(h, states.KindEstablished, server)
	server.wait(child, states.KindEstablished, client)
	switch stage {
	case "sending":
		cq.send(1, "not written yet")
	case "disconnecting":
		client.do(h, &cmid.Disconnect{})
	case "ended":
		client.do(h, &cmid.Disconnect{})
		client.wait(h, states.KindDisconnected, server)
		server.wait(child, states.KindDisconnected, client)
	}
	return own()
}

// TestDestroyIsOrderly: destroying a connection sends a FIN, not a reset, and posted messages
// arrive.
func TestDestroyIsOrderly(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 2)
	p.cq.send(1, "last words")
	// arrives at a destroyed identifier, but must not turn the FIN into a reset
	p.sq.send(1, "unread")
	turns(t, "the server's send", func() bool { return len(server.wcs) == 1 }, server)
	client.do(p.ch, &cmid.DestroyID{})
	if e := server.wait(p.sh, states.KindDisconnected, client); e.err != nil {
		t.Errorf("the peer of a destroyed connection: %v, want an orderly end", e)
	}
	if got := p.sq.got(server.wcs[1]); got != "last words" {
		t.Errorf("got %q", got)
	}
	turns(t, "the client's socket", func() bool { return client.in.conns == 0 }, client, server)
}

// TestLingerIsBounded: peers that never answer a FIN occupy at most MaxLinger sockets, for
// LingerTimeout.
func TestLingerIsBounded(t *testing.T) {
	for what, long := range map[string]time.Duration{"sockets": 100 * patience, "time": 50 * time.Millisecond} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t, func(c *Config) { c.MaxLinger = 2; c.LingerTimeout = long })
			_, at := n.listen("127.0.0.1:0")
			var peers []*raw
			for i := range 3 {
				r := rawDial(t, at)
				r.write(request(fmt.Sprint(i)))
				peers = append(peers, r)
				turns(t, "a request", func() bool { return len(n.events) > 0 }, n)
				h := n.events[0].child
				n.qp(h, 0)
				n.do(h, &cmid.Accept{})
				n.wait(h, states.KindEstablished)
				n.events = nil
				n.do(h, &cmid.DestroyID{})
			}
			if what == "sockets" {
				if n.in.lingers.n != 2 || n.in.conns != 2 {
					t.Errorf("%d linger, %d sockets, want 2", n.in.lingers.n, n.in.conns)
				}
				return
			}
			turns(t, "their time", func() bool { return n.in.conns == 0 }, n)
			for _, r := range peers {
				r.read() // Reply and FIN
				if !r.over || r.rst {
					t.Errorf("a peer saw no FIN, or a reset: %+v", r)
				}
			}
		})
	}
}

// TestAbandonedRequestLingers: soft-iWARP loses its listener when a connection is reset before it
// was answered.
func TestAbandonedRequestLingers(t *testing.T) {
	n := newNode(t)
	l := rawListen(t)
	h := n.resolve(l.at)
	n.qp(h, 1)
	n.do(h, &cmid.Connect{})
	fd := n.in.ids[h].conn.fd
	turns(t, "TCP's handshake", func() bool { return tcpState(t, fd) == tcpEstablished })
	n.do(h, &cmid.DestroyID{}) // before a turn: the Request was not sent
	r := l.accept(n)
	if f := r.frame(n); f.Reply {
		t.Fatalf("frame %+v, want the Request", f)
	}
	if r.ended() {
		t.Error("the socket was closed before the Reply")
	}
	turns(t, "100 ms", r.ended, n)
	if r.rst {
		t.Error("the socket was reset")
	}
	flushed(t, n, 1)
}

func TestDestroyQP(t *testing.T) {
	client, server := newNode(t), newNode(t)
	lh, at := server.listen("127.0.0.1:0")
	h := client.resolve(at)
	if err := client.qp(h, 2).Destroy(); err != nil {
		t.Fatal(err)
	}
	turns(t, "flush", func() bool { return len(client.wcs) == 2 }, client)
	flushed(t, client, 2)
	client.wcs = nil
	q := client.qp(h, 2) // another may take its place
	client.do(h, &cmid.Connect{})
	req := server.wait(lh, states.KindConnectRequest, client)
	if err := server.qp(req.child, 1).Destroy(); err != nil {
		t.Fatal(err)
	}
	server.qp(req.child, 1) // the request is still there
	server.do(req.child, &cmid.Accept{})
	client.wait(h, states.KindEstablished, server)
	if err := q.Destroy(); err != nil { // ends the connection
		t.Fatal(err)
	}
	client.wait(h, states.KindDisconnected, server)
	flushed(t, client, 2)
	server.wait(req.child, states.KindDisconnected, client)
	if err := q.PostRecv(verbs.RecvWR{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("post to a destroyed queue pair: %v", err)
	}
	if err := q.PostSend(&verbs.SendWR{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("post to a destroyed queue pair: %v", err)
	}
}

func TestDestroyQPWhileConnecting(t *testing.T) {
	n := newNode(t)
	l := rawListen(t)
	h := n.resolve(l.at)
	q := n.qp(h, 1)
	n.do(h, &cmid.Connect{})
	r := l.accept(n)
	r.frame(n)
	if err := q.Destroy(); err != nil {
		t.Fatal(err)
	}
	if e := n.wait(h, states.KindConnectError); !errors.Is(e.err, unix.ECONNABORTED) {
		t.Errorf("%v, want ConnectError with ECONNABORTED", e)
	}
	flushed(t, n, 1)
}

func TestCloseWithEverythingOpen(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 1)
	client.resolve(server.in.ids[p.lh].Info().Local)
	rawDial(t, server.in.ids[p.lh].Info().Local)
	turns(t, "a set-up", func() bool { return server.in.setups.n == 1 }, server)
	p.cq.send(1, "x")
	for _, n := range []*node{client, server} {
		if err := n.inst.Close(); err != nil {
			t.Error(err)
		}
		delivered := len(n.events)
		for range 10 {
			if err := n.loop.Turn(); err != nil {
				t.Fatal(err)
			}
		}
		if s := n.loop.Stats(); s.FDs != 0 || s.Timers != 0 || len(n.events) != delivered {
			t.Errorf("after Close: %+v, %d more events", s, len(n.events)-delivered)
		}
		if _, err := n.inst.CreateID(n.NewHandle(), 0, cmid.QPTypeRC); err != unix.ENODEV {
			t.Errorf("CreateID after Close: %v", err)
		}
	}
}

func TestThousandConnections(t *testing.T) {
	client, server := newNode(t), newNode(t)
	lh, at := server.listen("127.0.0.1:0")
	// opens the socket that asks for routes, which stays
	client.do(client.resolve(at), &cmid.DestroyID{})
	before := fds(t)
	for i := range 1000 {
		p := connectTo(t, client, server, lh, at, 1)
		if i%2 == 0 {
			client.do(p.ch, &cmid.DestroyID{})
			server.wait(p.sh, states.KindDisconnected, client)
			server.do(p.sh, &cmid.DestroyID{})
		} else {
			server.do(p.sh, &cmid.Disconnect{})
			client.wait(p.ch, states.KindDisconnected, server)
			client.do(p.ch, &cmid.DestroyID{})
			server.do(p.sh, &cmid.DestroyID{})
		}
		client.events, server.events, client.wcs, server.wcs = nil, nil, nil, nil
	}
	turns(t, "the last sockets", func() bool { return client.in.conns+server.in.conns == 0 }, client, server)
	if got := fds(t); got != before {
		t.Errorf("%d fds, %d before", got, before)
	}
	if len(client.in.ids) != 0 || len(server.in.ids) != 1 || len(client.in.dev.qps)+len(server.in.dev.qps) != 0 {
		t.Errorf("identifiers %d and %d, queue pairs %d and %d left",
			len(client.in.ids), len(server.in.ids), len(client.in.dev.qps), len(server.in.dev.qps))
	}
}
