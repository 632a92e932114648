package iwarp_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// end is one end of a connection, written as in C: with a channel, an identifier, and a poll loop.
type end struct {
	t  *testing.T
	ch *cmid.Channel
	wc []verbs.WC

	seen []got // events taken while waiting for the other end
}

func open(t *testing.T) *end {
	t.Helper()
	ch, err := cmid.OpenChannel(iwarp.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ch.Close(); err != nil {
			t.Error(err)
		}
	})
	return &end{t: t, ch: ch}
}

type got struct {
	ev cmid.Event
	id *cmid.ID
}

// look appends an event to e.seen, if there is one. Channel.GetEvent runs a turn of the channel's
// loop.
func (e *end) look() {
	e.t.Helper()
	ev, id, err := e.ch.GetEvent()
	switch {
	case err == nil:
		e.seen = append(e.seen, got{ev, id})
	case !errors.Is(err, unix.EAGAIN):
		e.t.Fatal(err)
	}
}

// next waits for an event of e, while the others turn too.
func (e *end) next(others ...*end) (cmid.Event, *cmid.ID) {
	e.t.Helper()
	for limit := time.Now().Add(20 * time.Second); len(e.seen) == 0; e.look() {
		if time.Now().After(limit) {
			e.t.Fatal("no event")
		}
		for _, o := range others {
			o.look()
		}
	}
	g := e.seen[0]
	e.seen = e.seen[1:]
	return g.ev, g.id
}

func want[E cmid.Event](t *testing.T, ev cmid.Event) E {
	t.Helper()
	out, ok := ev.(E)
	if !ok {
		t.Fatalf("got %T %v, want %T", ev, ev, out)
	}
	return out
}

func (e *end) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *end) qp(id *cmid.ID) (verbs.QP, *verbs.MR) {
	e.t.Helper()
	dev := id.Device()
	var cq verbs.CQ
	cq, err := dev.CreateCQ(8, func() {
		var wc [8]verbs.WC
		for n := cq.Poll(wc[:]); n > 0; n = cq.Poll(wc[:]) {
			e.wc = append(e.wc, wc[:n]...)
		}
	})
	e.must(err)
	qp, err := id.CreateQP(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 8, MaxRecvWR: 8})
	e.must(err)
	mr, err := dev.Alloc(64, verbs.LocalWrite)
	e.must(err)
	e.must(qp.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: mr, Length: 64}}))
	return qp, mr
}

// TestThroughAChannel connects as rdma_cm(7) describes, through the state machine of cmid.
func TestThroughAChannel(t *testing.T) {
	client, server := open(t), open(t)
	lid, err := server.ch.CreateID(cmid.PortSpaceTCP)
	server.must(err)
	server.must(lid.BindAddr(cmid.MustAddr("127.0.0.1:0")))
	server.must(lid.Listen(0))

	id, err := client.ch.CreateID(cmid.PortSpaceTCP)
	client.must(err)
	client.must(id.ResolveAddr(cmid.Addr{}, lid.LocalAddr(), time.Second))
	ev, _ := client.next()
	want[*cmid.AddrResolved](t, ev)
	client.must(id.ResolveRoute(time.Second))
	ev, _ = client.next()
	want[*cmid.RouteResolved](t, ev)
	qp, _ := client.qp(id)
	client.must(id.Connect([]byte("hi"), nil))

	ev, child := server.next(client)
	if r := want[*cmid.ConnectRequest](t, ev); string(r.PrivateData) != "hi" || r.Peer != id.LocalAddr() {
		t.Fatalf("request %+v", r)
	}
	_, mr := server.qp(child)
	server.must(child.Accept([]byte("ho"), nil))
	ev, _ = client.next(server)
	if e := want[*cmid.Established](t, ev); string(e.PrivateData) != "ho" {
		t.Fatalf("established %+v", e)
	}
	client.must(qp.PostSend(&verbs.SendWR{Inline: []byte("one message")}))
	ev, _ = server.next(client)
	want[*cmid.Established](t, ev)
	client.must(id.Disconnect())
	ev, _ = server.next(client)
	want[*cmid.Disconnected](t, ev)
	ev, _ = client.next(server)
	want[*cmid.Disconnected](t, ev)
	if id.State() != states.Timewait || child.State() != states.Timewait {
		t.Errorf("states %v and %v, want both %v", id.State(), child.State(), states.Timewait)
	}
	if len(server.wc) != 1 || string(mr.Bytes[:server.wc[0].Bytes]) != "one message" {
		t.Errorf("server received %+v %q", server.wc, mr.Bytes)
	}
	for _, i := range []*cmid.ID{id, child, lid} {
		client.must(i.Destroy())
	}
}
