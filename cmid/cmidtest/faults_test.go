package cmidtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// twinWorld is the suite's world over a Fabric that the test can break.
func twinWorld(t *testing.T, cfg Config) (*world, *Fabric) {
	t.Helper()
	rig, f := twin(cfg)
	r := &run{open: func(*testing.T) Rig { return rig }, used: make(map[What]bool)}
	return r.world(t), f
}

func both(t *testing.T, fn func(w *world, f *Fabric)) {
	for name, flavor := range map[string]states.Flavor{"InfiniBand": 0, "iWARP": states.IWARP} {
		t.Run(name, func(t *testing.T) {
			w, f := twinWorld(t, Config{Flavor: flavor, Seed: 3})
			fn(w, f)
		})
	}
}

// TestDropIsRepaired: InfiniBand repeats what is not answered, so that one lost message costs time only.
func TestDropIsRepaired(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Message
	}{{"REQ", MsgREQ}, {"REP", MsgREP}, {"RTU", MsgRTU}, {"DREQ", MsgDREQ}, {"DREP", MsgDREP}} {
		t.Run(c.name, func(t *testing.T) {
			w, f := twinWorld(t, Config{})
			f.Drop(c.kind, 1)
			begin := w.a.l.Now()
			l := w.connected(0)
			w.must(l.active.Disconnect())
			next[*cmid.Disconnected](w.b, l.passive)
			w.must(l.passive.Disconnect())
			w.wantErr("the end", next[*cmid.Disconnected](w.a, l.active).Err, 0)
			if d := w.a.l.Now().Sub(begin); d < cmTimeout {
				t.Errorf("over after %v: nothing was lost", d)
			}
		})
	}
}

func TestDropOfReject(t *testing.T) {
	w, f := twinWorld(t, Config{})
	l, _ := w.requested(0, nil, nil)
	f.Drop(MsgREJ, 1)
	w.must(l.passive.Reject(nil))
	w.wantRejected(l.active, cmid.RejectConsumerDefined) // the request is repeated, and so is its answer
}

// TestBacklog fills a listener's backlog while its loop does not turn.
func TestBacklog(t *testing.T) {
	fill := func(w *world, ps cmid.PortSpace) (id *cmid.ID, clients []*cmid.ID) {
		id = w.b.bound(ps, any4(0))
		w.must(id.Listen(2))
		w.port = id.SrcPort()
		for range 3 {
			c := w.resolved(ps, w.target())
			if w.iwarp {
				w.queues(c, 0)
			}
			clients = append(clients, c)
		}
		for _, c := range clients {
			w.must(c.Connect(nil, &cmid.ConnParam{QPNum: 5}))
		}
		for range 4 {
			w.must(w.a.l.Turn())
		}
		return id, clients
	}
	t.Run("InfiniBand drops, and the repetition finds room", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		fill(w, tcp)
		begin := w.b.l.Now()
		for i := range 3 {
			w.b.request()
			if d := w.b.l.Now().Sub(begin); (d >= cmTimeout) != (i == 2) {
				t.Errorf("request %d after %v", i, d)
			}
		}
	})
	t.Run("a service lookup is refused", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		_, clients := fill(w, udp)
		if ev := next[*cmid.Unreachable](w.a, clients[2]); ev.Status != sidrReject {
			t.Errorf("status %d", ev.Status)
		}
	})
	t.Run("a repeated lookup is not a second one", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		_, clients := fill(w, udp)
		for range 4 { // its loop stands still all the time
			w.rig.Clock.Advance(cmTimeout)
			w.must(w.a.l.Turn())
		}
		if ev := next[*cmid.Unreachable](w.a, clients[2]); ev.Status != sidrReject || len(w.a.heard) > 0 {
			t.Errorf("status %d; then %v", ev.Status, w.a.told())
		}
		for _, c := range clients[:2] {
			w.b.request()
			w.wantState("still asking", c, states.Connecting)
		}
	})
	t.Run("iWARP resets", func(t *testing.T) {
		w, _ := twinWorld(t, Config{Flavor: states.IWARP})
		_, clients := fill(w, tcp)
		if ev := next[*cmid.Rejected](w.a, clients[2]); ev.Reason != cmid.RejectReset {
			t.Errorf("reason %d", ev.Reason)
		}
	})
	t.Run("destroying the listener rejects what is unread", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		l, clients := fill(w, tcp)
		w.must(l.Destroy())
		for range 3 { // the third was dropped, and finds nobody when it is repeated
			next[*cmid.Rejected](w.a, nil)
		}
		w.wantState("all", clients[2], states.Failed)
	})
}

func TestSilence(t *testing.T) {
	both(t, func(w *world, f *Fabric) {
		w.listener(tcp, any4(0))
		id := w.resolved(tcp, w.target())
		w.queues(id, 0)
		f.Silence(w.rig.Address.String())
		w.must(id.Connect(nil, nil))
		if w.iwarp {
			w.wantErr("connect", next[*cmid.CommandFailed](w.a, id), unix.ETIMEDOUT)
			w.wantState("it may be tried again", id, states.RouteResolved)
		} else {
			w.wantErr("connect", next[*cmid.Unreachable](w.a, id), unix.ETIMEDOUT)
		}
		next := w.a.create(tcp)
		w.must(next.ResolveAddr(cmid.Addr{}, w.target(), time.Second))
		w.until("the address error", func() bool { return next.State() == states.Bound })
		w.forget()
		f.Unsilence(w.rig.Address.String())
		w.reaches(w.target())
	})
}

// TestSilenceWhileConnected: InfiniBand's queue pair notices; TCP waits.
func TestSilenceWhileConnected(t *testing.T) {
	w, f := twinWorld(t, Config{})
	c := w.connected(1)
	f.Silence(w.rig.Address.String())
	w.must(c.aq.postSend(1, "into the void"))
	w.must(c.aq.postSend(2, "and another"))
	w.until("the error", func() bool { return len(c.aq.of(verbs.Send)) == 2 })
	if wc := c.aq.of(verbs.Send); wc[0].Status != verbs.StatusRetryExc || wc[1].Status != verbs.StatusFlushed {
		t.Errorf("%+v", wc)
	}
	w.must(c.active.Disconnect())
	w.wantErr("the disconnect", next[*cmid.Disconnected](w.a, c.active).Err, unix.ETIMEDOUT)
}

func TestReceiverNotReady(t *testing.T) {
	w, _ := twinWorld(t, Config{})
	w.listener(tcp, any4(0))
	id := w.resolved(tcp, w.target())
	aq := w.queues(id, 0)
	w.must(id.Connect(nil, nil))
	child, _ := w.b.request()
	bq := w.queues(child, 0)
	w.must(child.Accept(nil, &cmid.ConnParam{RNRRetryCount: 2}))
	next[*cmid.Established](w.a, id)
	next[*cmid.Established](w.b, child)
	begin := w.a.l.Now()
	w.must(aq.postSend(1, "nobody is ready"))
	w.until("the error", func() bool { return len(aq.done) == 1 })
	if d := w.a.l.Now().Sub(begin); aq.done[0].Status != verbs.StatusRNRRetryExc || d < 2*rnrTimer {
		t.Errorf("%+v after %v", aq.done[0], d)
	}
	if len(bq.done) != 0 {
		t.Errorf("the receiver was told %+v", bq.done)
	}
}

func TestDelay(t *testing.T) {
	both(t, func(w *world, f *Fabric) {
		c := w.connected(2)
		f.Delay(time.Second)
		begin := w.a.l.Now()
		w.must(c.aq.postSend(1, "slow"))
		f.Delay(0)
		w.must(c.aq.postSend(2, "fast, and yet behind it"))
		w.until("both", func() bool { return len(c.bq.of(verbs.Recv)) == 2 })
		if d := w.a.l.Now().Sub(begin); d < time.Second || string(c.bq.slot(0)[:4]) != "slow" {
			t.Errorf("after %v, first %q", d, c.bq.slot(0)[:4])
		}
		f.LatencyFor(w.rig.Address.String(), 3*time.Second)
		id := w.a.create(tcp)
		w.must(id.ResolveAddr(cmid.Addr{}, w.target(), 2*time.Second))
		w.wantErr("slower than the timeout", next[*cmid.AddrError](w.a, id), unix.ETIMEDOUT)
		w.must(id.ResolveAddr(cmid.Addr{}, w.target(), 4*time.Second))
		next[*cmid.AddrResolved](w.a, id)
		w.must(id.ResolveRoute(2 * time.Second))
		w.wantErr("slower than the timeout", next[*cmid.RouteError](w.a, id), unix.ETIMEDOUT)
		w.wantState("it may be tried again", id, states.AddrResolved)
	})
}

// trace connects, sends and disconnects, and says in which order the passive side was told.
func trace(t *testing.T, cfg Config, reorder bool) (order []string) {
	w, f := twinWorld(t, cfg)
	f.Reorder(reorder)
	l := w.listener(tcp, any4(0))
	id := w.resolved(tcp, w.target())
	aq := w.queues(id, 0)
	w.must(id.Connect(nil, nil))
	child, _ := w.b.request()
	bq := w.queues(child, 3)
	n := 0
	bq.then = func() {
		for ; n < len(bq.done); n++ {
			order = append(order, fmt.Sprintf("%v %d", bq.done[n].Status, bq.done[n].ID))
		}
	}
	w.b.then = func(h heard) { order = append(order, h.ev.Kind().String()) }
	w.a.then = func(h heard) {
		if h.ev.Kind() == states.KindEstablished {
			w.must(aq.postSend(1, "a"))
			w.must(aq.postSend(2, "b"))
			w.must(id.Disconnect())
		}
	}
	w.must(child.Accept(nil, nil))
	next[*cmid.Established](w.a, id)
	w.until("the end", func() bool {
		return slices.Contains(order, "Disconnected") && n >= 2
	})
	w.must(l.Destroy())
	return append(order, fmt.Sprint(id.SrcPort()))
}

func TestReorder(t *testing.T) {
	at := func(order []string, what string) int { return slices.Index(order, what) }
	early, late := false, false
	for seed := range uint64(200) {
		o := trace(t, Config{Seed: seed}, true)
		if at(o, "success 100") > at(o, "success 101") || at(o, "Established") > at(o, "Disconnected") {
			t.Fatalf("seed %d: %v: events and completions keep their own order", seed, o)
		}
		early = early || at(o, "success 100") < at(o, "Established")
		late = late || at(o, "success 101") > at(o, "Disconnected")
	}
	if !early || !late {
		t.Errorf("completions before Established: %v, after Disconnected: %v; want both", early, late)
	}
	o := trace(t, Config{}, false)
	if at(o, "Established") > at(o, "success 100") || at(o, "success 101") > at(o, "Disconnected") {
		t.Errorf("without Reorder: %v", o)
	}
}

func TestSeedDecides(t *testing.T) {
	different := false
	for seed := range uint64(20) {
		one, two := trace(t, Config{Seed: seed}, true), trace(t, Config{Seed: seed}, true)
		if !slices.Equal(one, two) {
			t.Fatalf("seed %d: %v, then %v", seed, one, two)
		}
		different = different || !slices.Equal(one, trace(t, Config{Seed: seed + 1}, true))
	}
	if !different {
		t.Error("every seed plays the same")
	}
}

func TestDisconnectByTheNetwork(t *testing.T) {
	both(t, func(w *world, f *Fabric) {
		c := w.connected(1)
		f.Disconnect(c.active.Handle())
		for _, ev := range []*cmid.Disconnected{next[*cmid.Disconnected](w.a, c.active), next[*cmid.Disconnected](w.b, c.passive)} {
			if w.iwarp && !errors.Is(ev.Err, unix.ECONNRESET) {
				t.Errorf("%v, want ECONNRESET", ev.Err)
			}
		}
		if w.iwarp {
			return
		}
		w.must(c.active.Disconnect())
		w.must(c.passive.Disconnect())
		w.wantState("both have answered", c.active, states.Timewait)
	})
}

func TestRunOut(t *testing.T) {
	both(t, func(w *world, f *Fabric) {
		w.listener(tcp, any4(0))
		id := w.resolved(tcp, w.target())
		f.RunOut(unix.EMFILE)
		_, err := w.a.ch.CreateID(tcp)
		w.wantErr("create_id", err, unix.EMFILE)
		dev := id.Device()
		cq, err := dev.CreateCQ(4, nil)
		w.must(err)
		attr := verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq}
		_, err = id.CreateQP(attr)
		w.wantErr("create_qp", err, unix.EMFILE)
		f.RunOut(0)
		_, err = id.CreateQP(attr)
		w.must(err)
		w.a.create(tcp)
	})
}

// TestDeviceComesBack: a wildcard listener hears devices that come after it.
func TestDeviceComesBack(t *testing.T) {
	both(t, func(w *world, f *Fabric) {
		l := w.listener(tcp, any4(0))
		f.RemoveDevice("mem1")
		id := w.a.create(tcp)
		w.must(id.ResolveAddr(cmid.Addr{}, w.target(), time.Second))
		w.wantErr("while it is gone", next[*cmid.AddrError](w.a, id), unix.ETIMEDOUT)
		f.Host("b").AddDevice("mem1", w.rig.Address.String())
		w.reaches(w.target())
		w.wantState("all the time", l, states.Listening)
	})
}

// TestOverrun: where completion queues do not grow one that is too short loses completions, and
// takes its queue pair along.
func TestOverrun(t *testing.T) {
	for _, flavor := range []states.Flavor{states.IWARP, 0} {
		w, _ := twinWorld(t, Config{Flavor: flavor, Reserved: true})
		c := w.connected(3)
		dev := c.active.Device()
		w.must(c.aq.qp.Destroy())
		cq, err := dev.CreateCQ(1, nil)
		w.must(err)
		qp, err := c.active.CreateQP(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4})
		w.must(err)
		for range 2 {
			w.must(qp.PostSend(&verbs.SendWR{Flags: verbs.Signaled, Inline: []byte("x")}))
		}
		w.settle()
		w.wantErr("after the overrun", qp.PostSend(&verbs.SendWR{}), unix.EINVAL)
	}
}

func TestMalformedRequests(t *testing.T) {
	w, _ := twinWorld(t, Config{})
	c := w.connected(0)
	mr := c.aq.mr
	for why, wr := range map[string]*verbs.SendWR{
		"beyond the memory":   {SGL: []verbs.SGE{{MR: mr, Offset: 1 << 31, Length: 1 << 31}}},
		"too many elements":   {SGL: []verbs.SGE{{MR: mr}, {MR: mr}}},
		"too much inline":     {Inline: make([]byte, maxInline+1)},
		"bytes of no memory":  {SGL: []verbs.SGE{{Length: 1}}},
		"one byte beyond end": {SGL: []verbs.SGE{{MR: mr, Offset: uint32(len(mr.Bytes)), Length: 1}}},
	} {
		w.wantErr(why, c.aq.qp.PostSend(wr), unix.EINVAL)
	}
	w.wantErr("an opcode of completions", c.aq.qp.PostSend(&verbs.SendWR{Op: verbs.Recv}), unix.EINVAL)
	dev := c.active.Device()
	w.must(dev.Free(mr))
	w.wantErr("freed memory", c.aq.postRecv(0, 1), unix.EINVAL)
	_, err := dev.Alloc(0, 0)
	w.wantErr("no bytes", err, unix.EINVAL)
	_, err = dev.CreateCQ(0, nil)
	w.wantErr("no entries", err, unix.EINVAL)
	_, err = dev.CreateSRQ(verbs.SRQInitAttr{})
	w.wantErr("no receives", err, unix.EINVAL)
	foreign, err := w.b.ch.Devices()[0].CreateCQ(1, nil)
	w.must(err)
	id := w.resolved(tcp, w.target())
	_, err = id.CreateQP(verbs.QPInitAttr{SendCQ: foreign, RecvCQ: foreign})
	w.wantErr("another loop's queue", err, unix.EINVAL)
}

// TestNoAllocations: a message in steady state allocates nothing, on either side.
func TestNoAllocations(t *testing.T) {
	both(t, func(w *world, _ *Fabric) {
		c := w.connected(1)
		recv := verbs.RecvWR{SGE: verbs.SGE{MR: c.bq.mr, Length: slotSize}}
		send := &verbs.SendWR{Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: c.aq.mr, Length: 100}}}
		n := testing.AllocsPerRun(100, func() {
			if c.aq.qp.PostSend(send) != nil {
				t.Fatal("post_send")
			}
			for range 3 {
				_ = w.a.l.Turn()
				_ = w.b.l.Turn()
			}
			c.aq.done, c.bq.done = c.aq.done[:0], c.bq.done[:0]
			if c.bq.qp.PostRecv(recv) != nil {
				t.Fatal("post_recv: the message did not arrive")
			}
		})
		if n > 0 {
			t.Errorf("%v allocations per message", n)
		}
	})
}

func TestAddDeviceTwice(t *testing.T) {
	f := NewFabric(Config{})
	f.AddDevice("mem0", "10.0.0.1", "fd00::1/48")
	for why, fn := range map[string]func(){
		"a name that is taken":     func() { f.AddDevice("mem0") },
		"an address that is taken": func() { f.Host("b").AddDevice("mem1", "fd00::1") },
		"not an address":           func() { f.AddDevice("mem2", "here") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", why)
				}
			}()
			fn()
		}()
	}
}

// TestListenerGoesWithItsRequests: what was not told yet when a listener is destroyed is rejected, also when Reorder holds it back.
func TestListenerGoesWithItsRequests(t *testing.T) {
	for seed := range uint64(20) {
		w, f := twinWorld(t, Config{Seed: seed})
		l := w.listener(tcp, any4(0))
		one, two := w.resolved(tcp, w.target()), w.resolved(tcp, w.target())
		w.b.then = func(heard) {
			w.b.then = nil
			w.must(l.Destroy())
		}
		f.Reorder(true)
		w.must(one.Connect(nil, nil))
		w.must(two.Connect(nil, nil))
		w.b.request()
		w.wantRejected(two, cmid.RejectConsumerDefined)
		w.wantState("told in time", one, states.Connecting)
	}
}
