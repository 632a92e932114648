package iwarp

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// twoLoops opens one device on two loops.
func twoLoops(t *testing.T, opts ...option) (one, two *node) {
	d := newDriver(opts)
	one, two = newNodeOf(t, d), newNodeOf(t, d)
	two.next = 1000 // handles are process-wide
	return one, two
}

func (n *node) detach(h cmid.Handle) cmid.DetachedInstance {
	n.t.Helper()
	d, err := n.in.ids[h].Detach()
	if err != nil {
		n.t.Fatal(err)
	}
	return d
}

func (n *node) attach(d cmid.DetachedInstance) {
	n.t.Helper()
	if err := d.Attach(n.inst); err != nil {
		n.t.Fatal(err)
	}
}

// TestMigrateListener: connections whose Request has partly arrived move with the listener and keep
// their deadline. So does a connection that was not reported yet.
func TestMigrateListener(t *testing.T) {
	one, two := twoLoops(t, func(c *Config) { c.RequestTimeout = 200 * time.Millisecond })
	lh, at := one.listen("127.0.0.1:0")
	slow, silent := rawDial(t, at), rawDial(t, at)
	req := request("slow")
	slow.write(req[:7])
	turns(t, "two set-ups", func() bool { return one.in.setups.n == 2 }, one)
	slow.write(req[7:])
	late := rawDial(t, at) // in the kernel's queue
	late.write(request("late"))
	two.attach(one.detach(lh))
	if one.in.conns != 0 || one.in.setups.n != 0 || one.in.ids[lh] != nil || two.in.setups.n != 2 || two.in.conns != 2 {
		t.Errorf("%d sockets and %d set-ups left behind, %d and %d here", one.in.conns, one.in.setups.n, two.in.conns, two.in.setups.n)
	}
	turns(t, "the requests, and the end of who asked nothing", func() bool { return len(two.events) == 2 && silent.ended() }, one, two)
	var asked []string
	for _, ev := range two.events {
		asked = append(asked, ev.private)
		if ev.h != lh || ev.kind != states.KindConnectRequest {
			t.Errorf("got %v", ev)
		}
		two.do(ev.child, &cmid.Reject{PrivateData: []byte("no " + ev.private)})
	}
	slices.Sort(asked)
	if !slices.Equal(asked, []string{"late", "slow"}) || len(one.events) != 0 {
		t.Errorf("asked by %v; the old loop got %v", asked, one.events)
	}
	if f := slow.frame(one, two); f.Flags&wire.FlagReject == 0 || string(f.Private) != "no slow" {
		t.Errorf("the answer is %+v", f)
	}
}

// TestMigrateUndeliveredRequest: a request that was read but not delivered is delivered on the
// listener's new loop.
func TestMigrateUndeliveredRequest(t *testing.T) {
	one, two := twoLoops(t)
	lh, at := one.listen("127.0.0.1:0")
	first, second := rawDial(t, at), rawDial(t, at)
	first.write(request("first"))
	second.write(request("second"))
	one.react = func(ev delivered) {
		one.react = nil
		two.attach(one.detach(lh)) // with the other one, which came in the same turn
	}
	turns(t, "both requests", func() bool { return len(one.events) == 1 && len(two.events) == 1 }, one, two)
	child := two.events[0].child
	if two.events[0].h != lh || two.in.ids[child] == nil || one.in.ids[child] != nil {
		t.Errorf("got %v; its identifier is here: %v, there: %v", two.events[0], two.in.ids[child] != nil, one.in.ids[child] != nil)
	}
	two.do(child, &cmid.Reject{})
	one.do(one.events[0].child, &cmid.Reject{})
	first.frame(one, two)
	second.frame(one, two)
}

// TestMigrateToAFullLoop: a full loop does not take the connection. The loop from which it came
// always takes it back.
func TestMigrateToAFullLoop(t *testing.T) {
	one, two := twoLoops(t, func(c *Config) { c.MaxConns = 1 })
	_, elsewhere := two.listen("127.0.0.1:0")
	rawDial(t, elsewhere).write(request("fills it"))
	_, at := one.listen("127.0.0.1:0")
	r := rawDial(t, at)
	r.write(request("moves"))
	turns(t, "both requests", func() bool { return len(one.events) == 1 && len(two.events) == 1 }, one, two)
	child := one.events[0].child
	d := one.detach(child)
	if err := d.Attach(two.inst); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("attached to a full loop: %v, want ENOMEM", err)
	}
	if err := d.Attach(newNode(t).inst); !errors.Is(err, unix.EINVAL) {
		t.Errorf("attached to another device: %v, want EINVAL", err)
	}
	rawDial(t, at).write(request("takes its place"))
	turns(t, "a request in its place", func() bool { return len(one.events) == 2 }, one)
	one.attach(d)
	one.do(child, &cmid.Reject{PrivateData: []byte("here")})
	if f := r.frame(one, two); string(f.Private) != "here" {
		t.Errorf("the answer is %+v", f)
	}
}

// TestMigrateToClosed: a closed channel takes no identifier.
func TestMigrateToClosed(t *testing.T) {
	one, two := twoLoops(t)
	h := one.id()
	d := one.detach(h)
	if one.in.ids[h] != nil {
		t.Error("what is on its way is still here")
	}
	if err := two.inst.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Attach(two.inst); !errors.Is(err, unix.EINVAL) {
		t.Errorf("attached to a closed channel: %v, want EINVAL", err)
	}
	one.attach(d)
	one.do(h, &cmid.Listen{})
}

// TestDestroyBetweenLoops: destroying a detached identifier leaves no descriptor and no port, and
// rejects peers that wait for an answer.
func TestDestroyBetweenLoops(t *testing.T) {
	one, _ := twoLoops(t)
	before := fds(t)
	lh, at := one.listen("127.0.0.1:0")
	asks, waits := rawDial(t, at), rawDial(t, at)
	asks.write(request("asks"))
	turns(t, "a request and a set-up", func() bool { return len(one.events) == 1 && one.in.setups.n == 1 }, one)
	bound := one.id()
	one.do(bound, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
	port := one.in.ids[bound].Info().Local
	for _, h := range []cmid.Handle{one.events[0].child, lh, bound} {
		one.detach(h).Destroy()
	}
	if f := asks.frame(one); f.Flags&wire.FlagReject == 0 {
		t.Errorf("the answer is %+v", f)
	}
	turns(t, "the ends", func() bool { return asks.ended() && waits.ended() }, one)
	asks.close()
	waits.close()
	if after := fds(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	again := one.id()
	one.do(again, &cmid.BindAddr{Addr: port})
}

// TestMigrateConnection: a connection with a queue pair stays. Its identifier's events come from
// the new channel, after the completions that the old channel reports.
func TestMigrateConnection(t *testing.T) {
	client := newNode(t)
	one, two := twoLoops(t)
	p := connect(t, client, one, 4)
	two.attach(one.detach(p.sh))
	if two.in.ids[p.sh].Device() != one.inst.Devices()[0] {
		t.Error("its device is not the one whose memory the queue pair can use")
	}
	p.cq.send(1, "hello")
	turns(t, "the message", func() bool { return len(one.wcs) == 1 }, client, one, two)
	p.sq.send(2, "never arrives")
	if err := p.sq.Destroy(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	two.react = func(delivered) { seen = len(one.wcs) }
	turns(t, "the end", func() bool { return two.found(p.sh, states.KindDisconnected) != nil }, two)
	if flushed := func(wc verbs.WC) bool { return wc.ID == 2 && wc.Status == verbs.StatusFlushed }; !slices.ContainsFunc(one.wcs[:seen], flushed) {
		t.Errorf("Disconnected was delivered when only %v had completed", one.wcs[:seen])
	}
	if len(one.events) != 2 { // the request and Established
		t.Errorf("the old channel got %v", one.events)
	}
}

// TestQueuePairAfterMigration: when the queue pair that stayed behind is gone, an identifier is
// completely on its new loop.
func TestQueuePairAfterMigration(t *testing.T) {
	server := newNode(t)
	_, at := server.listen("127.0.0.1:0")
	one, two := twoLoops(t)
	h := one.resolve(at)
	first := one.qp(h, 1)
	two.attach(one.detach(h))
	if err := first.Destroy(); err != nil {
		t.Fatal(err)
	}
	two.qp(h, 1)
	two.do(h, &cmid.Connect{})
	if one.in.conns != 0 || two.in.conns != 1 {
		t.Errorf("%d sockets on the old loop, %d on the new one", one.in.conns, two.in.conns)
	}
	turns(t, "the request", func() bool { return len(server.events) == 1 }, server, two)
	server.do(server.events[0].child, &cmid.Reject{})
	two.wait(h, states.KindRejected, server)
}

// TestCloseWithMigratedConnection: an instance also closes the queue pairs and connections on its
// loop whose identifiers were migrated.
func TestCloseWithMigratedConnection(t *testing.T) {
	client := newNode(t)
	one, two := twoLoops(t)
	p := connect(t, client, one, 1)
	two.attach(one.detach(p.sh))
	if err := one.inst.Close(); err != nil {
		t.Error(err)
	}
	client.wait(p.ch, states.KindDisconnected)
	two.do(p.sh, &cmid.DestroyID{})
}
