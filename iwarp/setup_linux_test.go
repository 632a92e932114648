package iwarp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

func TestLimits(t *testing.T) {
	n := newNode(t)
	id := n.in.ids[n.id()]
	l := id.Limits()
	if l.ConnectData != 248 || l.AcceptData != 248 || l.RejectData != 248 || l.Padded || l.MaxBacklog != 1024 {
		t.Errorf("limits %+v", l)
	}
	if id.Flavor() != states.IWARP {
		t.Errorf("flavor %v", id.Flavor())
	}
}

func TestPrivateData(t *testing.T) {
	n := newNode(t)
	most, over := []byte(strings.Repeat("x", 248)), make([]byte, 249)
	lh, at := n.listen("127.0.0.1:0")
	h := n.resolve(at)
	n.qp(h, 0)
	if err := n.in.ids[h].Do(&cmid.Connect{PrivateData: over}); !errors.Is(err, unix.EINVAL) {
		t.Fatalf("connect with 249 bytes: %v, want EINVAL", err)
	}
	n.do(h, &cmid.Connect{PrivateData: most}) // it may try again
	req := n.wait(lh, states.KindConnectRequest)
	if req.private != string(most) {
		t.Errorf("the request has %d bytes of private data, want 248", len(req.private))
	}
	if err := n.in.ids[req.child].Do(&cmid.Reject{PrivateData: over}); !errors.Is(err, unix.EINVAL) {
		t.Fatalf("reject with 249 bytes: %v, want EINVAL", err)
	}
	n.do(req.child, &cmid.Reject{PrivateData: most})
	if e := n.wait(h, states.KindRejected); e.private != string(most) || e.status != -104 || !errors.Is(e.err, unix.ECONNRESET) {
		t.Errorf("rejected with %v", e)
	}
	if err := n.in.ids[req.child].Do(&cmid.Reject{}); err != unix.EINVAL {
		t.Errorf("second reject: %v, want EINVAL", err)
	}
}

// TestAcceptFails: a failing accept rejects the peer, as the kernel's does.
func TestAcceptFails(t *testing.T) {
	for what, c := range map[string]struct {
		qp  bool
		cmd cmid.Accept
	}{
		"without a queue pair":        {false, cmid.Accept{}},
		"249 bytes of private data":   {true, cmid.Accept{PrivateData: make([]byte, 249)}},
		"more Reads than the maximum": {true, cmid.Accept{Param: &cmid.ConnParam{InitiatorDepth: 129}}},
	} {
		t.Run(what, func(t *testing.T) {
			n := newNode(t)
			lh, at := n.listen("127.0.0.1:0")
			h := n.resolve(at)
			n.qp(h, 0)
			n.do(h, &cmid.Connect{})
			req := n.wait(lh, states.KindConnectRequest)
			if c.qp {
				n.qp(req.child, 0)
			}
			if err := n.in.ids[req.child].Do(&c.cmd); !errors.Is(err, unix.EINVAL) {
				t.Fatalf("accept: %v, want EINVAL", err)
			}
			n.wait(h, states.KindRejected)
			if len(n.events) != 4 { // AddrResolved, RouteResolved, ConnectRequest, Rejected
				t.Errorf("events %v: something was delivered for the child", n.events)
			}
		})
	}
}

func TestConnectNeedsAQueuePair(t *testing.T) {
	n := newNode(t)
	h := n.resolve(cmid.MustAddr("127.0.0.1:9"))
	if err := n.in.ids[h].Do(&cmid.Connect{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("connect without a queue pair: %v, want EINVAL", err)
	}
	if _, err := n.in.ids[n.id()].CreateQP(verbs.QPInitAttr{SendCQ: n.cq, RecvCQ: n.cq}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("queue pair without a device: %v, want EINVAL", err)
	}
	n.qp(h, 0)
	if _, err := n.in.ids[h].CreateQP(verbs.QPInitAttr{SendCQ: n.cq, RecvCQ: n.cq}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("second queue pair: %v, want EINVAL", err)
	}
	if err := n.in.ids[h].Do(&cmid.Connect{Param: &cmid.ConnParam{ResponderResources: 200}}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("connect with 200 responder resources: %v, want EINVAL", err)
	}
}

func TestConnectRefused(t *testing.T) {
	n := newNode(t)
	free := n.id()
	n.do(free, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")}) // bound, but without a listener
	h := n.resolve(n.in.ids[free].Info().Local)
	q := n.qp(h, 2)
	n.do(h, &cmid.Connect{})
	e := n.wait(h, states.KindRejected)
	if e.status != -111 || !errors.Is(e.err, unix.ECONNREFUSED) {
		t.Errorf("nobody listens: %v, want Rejected -111", e)
	}
	flushed(t, n, 2)
	if e.polled != 2 {
		t.Errorf("%d completions came before Rejected, want the 2 flushed receives", e.polled)
	}
	if err := q.PostRecv(verbs.RecvWR{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("post after the end: %v, want EINVAL", err)
	}
	if err := n.in.ids[h].Do(&cmid.Connect{}); err != unix.EINVAL {
		t.Errorf("second connect: %v, want EINVAL", err)
	}
}

// flushed checks that the node's completions are k flushed work requests.
func flushed(t *testing.T, n *node, k int) {
	t.Helper()
	if len(n.wcs) != k {
		t.Fatalf("%d completions, want %d", len(n.wcs), k)
	}
	for _, wc := range n.wcs {
		if wc.Status != verbs.StatusFlushed {
			t.Errorf("completion %+v, want it flushed", wc)
		}
	}
}

func TestSilentPeer(t *testing.T) {
	n := newNode(t, func(c *Config) { c.ReplyTimeout = 30 * time.Millisecond })
	l := rawListen(t)
	h := n.resolve(l.at)
	n.qp(h, 1)
	n.do(h, &cmid.Connect{})
	r := l.accept(n)
	if e := n.wait(h, states.KindUnreachable); e.status != -110 || !errors.Is(e.err, unix.ETIMEDOUT) || !strings.Contains(e.err.Error(), "does not speak iWARP") {
		t.Errorf("no Reply: %v, want Unreachable -110, and what may listen there", e)
	}
	flushed(t, n, 1)
	turns(t, "the silent peer's EOF", r.ended, n)
}

// TestNoTCPAnswer connects to a listener whose queue is full: the kernel drops its SYN.
func TestNoTCPAnswer(t *testing.T) {
	_, at := fullListener(t)
	n := newNode(t, func(c *Config) { c.ReplyTimeout = 50 * time.Millisecond })
	h := n.resolve(at)
	n.qp(h, 1)
	n.do(h, &cmid.Connect{})
	if e := n.wait(h, states.KindUnreachable); e.status != -110 {
		t.Errorf("no TCP answer: %v, want Unreachable -110", e)
	}
	flushed(t, n, 1)
}

// TestHoldOffLostReply: if a Reply is lost and retransmitted, the responder's messages do not
// arrive together with it. soft-iWARP would read both in one call, which it does not support.
func TestHoldOffLostReply(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	r := rawDial(t, at)
	r.write(wire.AppendFrame(nil, &wire.Frame{Revision: 1}))
	child := n.wait(lh, states.KindConnectRequest).child
	qp := n.qp(child, 0)
	r.lose(true)
	n.do(child, &cmid.Accept{})
	n.wait(child, states.KindEstablished)
	qp.send(1, "hello")
	c := n.in.ids[child].conn
	held := time.Now().Add(150 * time.Millisecond) // the pause is 100 ms
	turns(t, "the end of the first pause", func() bool { return time.Now().After(held) }, n)
	r.lose(false)
	reply := wire.AppendFrame(nil, &wire.Frame{Reply: true, Revision: 1})
	turns(t, "the Reply", func() bool { r.read(); return len(r.got) >= len(reply) }, n)
	if !bytes.Equal(r.got, reply) {
		t.Errorf("with the Reply came %x", r.got[len(reply):])
	}
	r.got = nil
	turns(t, "the message", func() bool { r.read(); return len(r.got) > 0 }, n)
	if _, ok := c.core.Deadline(); ok {
		t.Error("a deadline is left")
	}
}

// TestFallback: if a peer closes the connection after a Request of revision 2, a Request of
// revision 1 follows. The receives that were posted before are kept.
func TestFallback(t *testing.T) {
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprintf("reset=%t", reset), func(t *testing.T) {
			n := newNode(t)
			l := rawListen(t)
			h := n.resolve(l.at)
			q := n.qp(h, 1)
			n.do(h, &cmid.Connect{PrivateData: []byte("who")})
			first := l.accept(n)
			if f := first.frame(n); f.Revision != 2 || !f.Control.PeerToPeer || string(f.Private) != "who" {
				t.Fatalf("first Request %+v", f)
			}
			if reset {
				first.reset()
			} else {
				first.close()
			}
			second := l.accept(n)
			if f := second.frame(n); f.Revision != 1 || f.Enhanced() || string(f.Private) != "who" {
				t.Fatalf("second Request %+v, want revision 1", f)
			}
			second.write(wire.AppendFrame(nil, &wire.Frame{Reply: true, Revision: 1, Private: []byte("me")}))
			hd := wire.Header{Last: true, Opcode: wire.OpSend, MSN: 1}
			second.write(wire.AppendFPDU(nil, &wire.FPDU{ULPDU: append(wire.AppendHeader(nil, &hd), "early"...)}))
			e := n.wait(h, states.KindEstablished)
			if e.private != "me" || e.polled != 0 {
				t.Errorf("established with %v, %d completions before", e, e.polled)
			}
			if !errors.Is(e.err, core.ErrNoReply) || e.param.ResponderResources != 128 {
				t.Errorf("established with %v, %+v: want why revision 1, and all Reads served", e.err, e.param)
			}
			turns(t, "the message", func() bool { return len(n.wcs) == 1 }, n)
			if got := q.got(n.wcs[0]); got != "early" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestFallbackFromAPort: the second attempt comes from the same address and port to the same peer,
// although the peer has not acknowledged the end of the first one, as behind any round trip.
func TestFallbackFromAPort(t *testing.T) {
	for _, from := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		n := newNode(t)
		l := rawListen(t)
		h := n.id()
		n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr(from)})
		n.do(h, &cmid.SetOption{Option: cmid.OptionTOS, Value: 0x20})
		n.do(h, &cmid.ResolveAddr{Dst: l.at})
		n.wait(h, states.KindAddrResolved)
		source := n.in.ids[h].Info().Local
		n.qp(h, 0)
		n.do(h, &cmid.Connect{})
		first := l.accept(n)
		first.frame(n)
		first.lose(true)
		if err := unix.Shutdown(first.fd, unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		c := n.in.ids[h].conn
		turns(t, "the second attempt", func() bool { return c.phase == phConnecting || len(n.events) > 1 }, n)
		first.reset() // the beginning of the second attempt was lost too; TCP repeats it
		second := l.accept(n)
		sa, err := unix.Getpeername(second.fd)
		if err != nil || addrOf(sa) != source {
			t.Errorf("bound to %s: the second attempt comes from %v, want %v (%v)", from, addrOf(sa), source, err)
		}
		if f := second.frame(n); f.Revision != 1 {
			t.Errorf("bound to %s: the second Request is %+v, want revision 1", from, f)
		}
		if tos, err := unix.GetsockoptInt(c.fd, unix.IPPROTO_IP, unix.IP_TOS); err != nil || tos != 0x20 {
			t.Errorf("bound to %s: the second attempt's traffic class is %#x, want 0x20 (%v)", from, tos, err)
		}
		second.write(wire.AppendFrame(nil, &wire.Frame{Reply: true, Revision: 1}))
		n.wait(h, states.KindEstablished)
	}
}

func TestFallbackOnlyOnce(t *testing.T) {
	n := newNode(t)
	l := rawListen(t)
	h := n.resolve(l.at)
	n.qp(h, 1)
	n.do(h, &cmid.Connect{})
	for range 2 {
		r := l.accept(n)
		r.frame(n)
		r.close()
	}
	e := n.wait(h, states.KindRejected)
	if e.status != -104 || !strings.Contains(e.err.Error(), "with revision 2 before: iwarp: reply: connection closed by the peer") {
		t.Errorf("hung up on twice: %v, want Rejected -104, and how the first attempt ended", e)
	}
	flushed(t, n, 1)
}

func TestBadReply(t *testing.T) {
	n := newNode(t)
	l := rawListen(t)
	h := n.resolve(l.at)
	n.qp(h, 0)
	n.do(h, &cmid.Connect{})
	r := l.accept(n)
	r.frame(n)
	r.write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	e := n.wait(h, states.KindConnectError)
	var ce *core.Error
	if e.status != -22 || !errors.As(e.err, &ce) || !ce.Sent || ce.Code != 4 {
		t.Errorf("not MPA: %v, want ConnectError -22 and a Terminate of MPA code 4", e)
	}
	if want := `the peer does not speak iWARP (MPA), its first bytes are "HTTP/1.1 400 Bad Req"`; !strings.Contains(e.err.Error(), want) {
		t.Errorf("%v: does not say %q", e.err, want)
	}
	turns(t, "EOF", r.ended, n)
}

// TestPeerGoneBeforeAccept: nothing is delivered for a child before it is accepted; the accept
// fails.
func TestPeerGoneBeforeAccept(t *testing.T) {
	for _, reset := range []bool{false, true} {
		n := newNode(t)
		lh, at := n.listen("127.0.0.1:0")
		r := rawDial(t, at)
		r.write(request("x"))
		req := n.wait(lh, states.KindConnectRequest)
		n.qp(req.child, 1)
		if reset {
			r.reset()
		} else {
			r.close()
		}
		turns(t, "the socket's end", func() bool { return n.in.conns == 0 }, n)
		if len(n.events) != 1 {
			t.Errorf("events %v: something was delivered for the child", n.events)
		}
		if err := n.in.ids[req.child].Do(&cmid.Accept{}); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("accept: %v, want ECONNRESET", err)
		}
		n.do(req.child, &cmid.DestroyID{})
		flushed(t, n, 1)
	}
}

// TestAcceptedButGone: the peer requested peer-to-peer, was accepted, and ended without sending
// anything.
func TestAcceptedButGone(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	r := rawDial(t, at)
	r.write(wire.AppendFrame(nil, &wire.Frame{
		Flags: wire.FlagEnhanced, Revision: 2, Control: wire.Control{PeerToPeer: true, RTRWrite: true, IRD: 1, ORD: 1},
	}))
	req := n.wait(lh, states.KindConnectRequest)
	n.qp(req.child, 1)
	n.do(req.child, &cmid.Accept{})
	if f := r.frame(n); f.Flags&wire.FlagReject != 0 || !f.Control.RTRWrite {
		t.Fatalf("reply %+v", f)
	}
	r.close()
	if e := n.wait(req.child, states.KindConnectError); e.status != -104 {
		t.Errorf("%v, want ConnectError -104", e)
	}
	flushed(t, n, 1)
}

func TestRejectedByDestroy(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	h := n.resolve(at)
	n.qp(h, 0)
	n.do(h, &cmid.Connect{})
	req := n.wait(lh, states.KindConnectRequest)
	n.do(req.child, &cmid.DestroyID{})
	e := n.wait(h, states.KindRejected)
	if e.status != -104 || !strings.Contains(e.err.Error(), "rejected by the peer") || strings.Contains(e.err.Error(), "revision") {
		t.Errorf("%v, want Rejected -104 in the only attempt", e)
	}
}

func TestDepths(t *testing.T) {
	n := newNode(t)
	lh, at := n.listen("127.0.0.1:0")
	h := n.resolve(at)
	n.qp(h, 0)
	n.do(h, &cmid.Connect{Param: &cmid.ConnParam{ResponderResources: 4, InitiatorDepth: 255}})
	req := n.wait(lh, states.KindConnectRequest)
	if p := req.param; p.InitiatorDepth != 4 || p.ResponderResources != 128 {
		t.Errorf("request %+v, want the other side's view: 4 out, 128 in", p)
	}
	n.qp(req.child, 0)
	n.do(req.child, &cmid.Accept{Param: &cmid.ConnParam{ResponderResources: 2, InitiatorDepth: 8}})
	if p := n.wait(h, states.KindEstablished).param; p.ResponderResources != 4 || p.InitiatorDepth != 2 {
		t.Errorf("connecting side %+v, want 4 in and 2 out", p)
	}
	if p := n.wait(req.child, states.KindEstablished).param; p.ResponderResources != 2 || p.InitiatorDepth != 4 {
		t.Errorf("accepting side %+v, want 2 in and 4 out", p)
	}
}
