package iwarp

import (
	"errors"
	"runtime"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestNoAllocationPerMessage: a steady exchange allocates nothing.
func TestNoAllocationPerMessage(t *testing.T) {
	for _, crc := range []bool{false, true} {
		pp := newPingPong(t, func(c *Config) { c.CRC = crc })
		for range 100 {
			pp.round()
		}
		if got := testing.AllocsPerRun(500, pp.round); got != 0 {
			t.Errorf("crc %t: %v allocations per round trip, want 0", crc, got)
		}
	}
}

// pingPong is a connection on which messages of 64 bytes go back and forth.
type pingPong struct {
	client, server *node
	cq, sq         *pinger
}

// pinger answers every message, at verbs level.
type pinger struct {
	qp    verbs.QP
	cq    verbs.CQ
	wc    [16]verbs.WC
	send  verbs.SendWR
	recv  verbs.RecvWR
	heard int
	echo  bool
	err   error
}

func (p *pinger) notify() {
	for {
		n := p.cq.Poll(p.wc[:])
		if n == 0 {
			return
		}
		for _, wc := range p.wc[:n] {
			if wc.Op != verbs.Recv || wc.Status != verbs.StatusSuccess {
				continue
			}
			p.heard++
			p.err = errors.Join(p.err, p.qp.PostRecv(p.recv))
			if p.echo {
				p.err = errors.Join(p.err, p.qp.PostSend(&p.send))
			}
		}
	}
}

func newPingPong(t testing.TB, opts ...option) *pingPong {
	t.Helper()
	return newPingPongOf(t, newNode(t, opts...))
}

func newPingPongOf(t testing.TB, client *node) *pingPong {
	t.Helper()
	pp := &pingPong{client: client, server: newNode(t)}
	lh, at := pp.server.listen("127.0.0.1:0")
	h := pp.client.resolve(at)
	pp.cq = newPinger(t, pp.client, h, false)
	pp.client.do(h, &cmid.Connect{})
	child := pp.server.wait(lh, states.KindConnectRequest, pp.client).child
	pp.sq = newPinger(t, pp.server, child, true)
	pp.server.do(child, &cmid.Accept{})
	pp.client.wait(h, states.KindEstablished, pp.server)
	pp.server.wait(child, states.KindEstablished, pp.client)
	return pp
}

func newPinger(t testing.TB, n *node, h cmid.Handle, echo bool) *pinger {
	t.Helper()
	p := &pinger{echo: echo}
	var err error
	if p.cq, err = n.in.dev.CreateCQ(16, p.notify); err != nil {
		t.Fatal(err)
	}
	if p.qp, err = n.in.ids[h].CreateQP(verbs.QPInitAttr{SendCQ: p.cq, RecvCQ: p.cq, MaxSendWR: 16, MaxRecvWR: 16}); err != nil {
		t.Fatal(err)
	}
	mr, err := n.in.dev.Alloc(128, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	p.recv = verbs.RecvWR{SGE: verbs.SGE{MR: mr, Length: 64}}
	p.send = verbs.SendWR{SGL: []verbs.SGE{{MR: mr, Offset: 64, Length: 64}}}
	for range 16 {
		if err := p.qp.PostRecv(p.recv); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// round makes one round trip.
func (p *pingPong) round() {
	want := p.cq.heard + 1
	if err := p.cq.qp.PostSend(&p.cq.send); err != nil {
		panic(err)
	}
	for p.cq.heard < want {
		if err := errors.Join(p.client.loop.Turn(), p.server.loop.Turn(), p.cq.err, p.sq.err); err != nil {
			panic(err)
		}
	}
}

// BenchmarkPingPong is a round trip of 64 bytes over loopback, both loops polled by one goroutine.
func BenchmarkPingPong(b *testing.B) {
	pp := newPingPong(b)
	b.ReportAllocs()
	for b.Loop() {
		pp.round()
	}
}

// BenchmarkSend64 posts 16 messages of 64 bytes per turn; an op is those 16, sent and received.
func BenchmarkSend64(b *testing.B) {
	pp := newPingPong(b)
	pp.sq.echo = false
	b.ReportAllocs()
	for b.Loop() {
		want := pp.sq.heard + 16
		for range 16 {
			if err := pp.cq.qp.PostSend(&pp.cq.send); err != nil {
				b.Fatal(err)
			}
		}
		for pp.sq.heard < want {
			if err := errors.Join(pp.client.loop.Turn(), pp.server.loop.Turn()); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestIdleMemory checks the memory that an idle connection costs, including both ends and the
// loop's part.
func TestIdleMemory(t *testing.T) {
	client, server := newNode(t), newNode(t)
	lh, at := server.listen("127.0.0.1:0")
	const conns = 400
	var before, after runtime.MemStats
	open := func() {
		h := client.resolve(at)
		if _, err := client.in.ids[h].CreateQP(qpAttr(client)); err != nil {
			t.Fatal(err)
		}
		client.do(h, &cmid.Connect{})
		child := server.wait(lh, states.KindConnectRequest, client).child
		if _, err := server.in.ids[child].CreateQP(qpAttr(server)); err != nil {
			t.Fatal(err)
		}
		server.do(child, &cmid.Accept{})
		client.wait(h, states.KindEstablished, server)
		server.wait(child, states.KindEstablished, client)
		client.events, server.events = nil, nil
	}
	open()
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range conns {
		open()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / (2 * conns)
	t.Logf("%d bytes per idle end of a connection", each)
	if each > 3072 {
		t.Errorf("%d bytes per idle end of a connection, want at most 3072", each)
	}
}
