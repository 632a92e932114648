package cmidtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// twinWorld returns the suite's world over a Fabric that the test can break.
func twinWorld(t *testing.T, cfg Config) (*sides.World, *Fabric) {
	t.Helper()
	rig, f := twin(cfg)
	return sides.New(t, sides.Config{Active: rig.Active, Passive: rig.Passive, Clock: rig.Clock, Address: rig.Address, Flavor: &cfg.Flavor}), f
}

func both(t *testing.T, fn func(w *sides.World, f *Fabric)) {
	for name, flavor := range map[string]states.Flavor{"InfiniBand": 0, "iWARP": states.IWARP} {
		t.Run(name, func(t *testing.T) {
			w, f := twinWorld(t, Config{Flavor: flavor, Seed: 3})
			fn(w, f)
		})
	}
}

// TestDropIsRepaired: InfiniBand repeats messages that are not answered, so a lost message only
// costs time.
func TestDropIsRepaired(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Message
	}{{"REQ", MsgREQ}, {"REP", MsgREP}, {"RTU", MsgRTU}, {"DREQ", MsgDREQ}, {"DREP", MsgDREP}} {
		t.Run(c.name, func(t *testing.T) {
			w, f := twinWorld(t, Config{})
			f.Drop(c.kind, 1)
			begin := w.A.Loop.Now()
			l := w.Connected(0)
			w.Must(l.Active.Disconnect())
			sides.Next[*cmid.Disconnected](w.B, l.Passive)
			w.Must(l.Passive.Disconnect())
			w.WantErr("the end", sides.Next[*cmid.Disconnected](w.A, l.Active).Err, 0)
			if d := w.A.Loop.Now().Sub(begin); d < cmTimeout {
				t.Errorf("over after %v: nothing was lost", d)
			}
		})
	}
}

func TestDropOfReject(t *testing.T) {
	w, f := twinWorld(t, Config{})
	l, _ := w.Requested(0, nil, nil)
	f.Drop(MsgREJ, 1)
	w.Must(l.Passive.Reject(nil))
	// the request is repeated, and so is its answer
	w.WantRejected(l.Active, cmid.RejectConsumerDefined)
}

// TestListenerGoesBeforeTheReply: a request that is repeated is one that the peer knows, although
// its listener has gone: the answer is repeated, and there is no reject.
func TestListenerGoesBeforeTheReply(t *testing.T) {
	w, f := twinWorld(t, Config{})
	l, _ := w.Requested(0, nil, nil)
	f.Drop(MsgREP, 3) // so that it is the request that is repeated next, whatever repeats first
	w.Must(l.Passive.Accept(nil, nil))
	w.Must(l.Listener.Destroy())
	w.Established(l)
}

// TestPeerGoesBeforeTheRTU: the peer gives up a connection whose RTU it has not got. To this side,
// which has sent it, the connection is over.
func TestPeerGoesBeforeTheRTU(t *testing.T) {
	w, f := twinWorld(t, Config{})
	half := func() *sides.Link {
		f.Drop(MsgRTU, 1)
		l, _ := w.Requested(0, nil, nil)
		w.Must(l.Passive.Accept(nil, nil))
		sides.Next[*cmid.Established](w.A, l.Active)
		return l
	}
	l := half()
	w.Must(l.Passive.Destroy())
	w.WantErr("the end", sides.Next[*cmid.Disconnected](w.A, l.Active).Err, unix.ECONNRESET)
	w.Must(l.Active.Disconnect())
	w.WantState("over", l.Active, states.Timewait)

	l = half()
	w.Must(l.Active.Disconnect())
	w.Must(l.Passive.Destroy()) // the DREQ and the REJ cross
	sides.Next[*cmid.Disconnected](w.A, l.Active)
	w.WantState("over", l.Active, states.Timewait)
	w.Settle()
	w.WantQuiet("it has ended once")
}

// TestBacklog fills a listener's backlog while its loop does not turn.
func TestBacklog(t *testing.T) {
	fill := func(w *sides.World, ps cmid.PortSpace) (id *cmid.ID, clients []*cmid.ID) {
		id = w.B.Bound(ps, sides.Any4(0))
		w.Must(id.Listen(2))
		w.Port = id.SrcPort()
		for range 3 {
			c := w.Resolved(ps, w.Target())
			if w.IWARP {
				w.Queues(c, 0)
			}
			clients = append(clients, c)
		}
		for _, c := range clients {
			w.Must(c.Connect(nil, &cmid.ConnParam{QPNum: 5}))
		}
		for range 4 {
			w.Must(w.A.Loop.Turn())
		}
		return id, clients
	}
	t.Run("InfiniBand drops, and the repetition finds room", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		fill(w, tcp)
		begin := w.B.Loop.Now()
		for i := range 3 {
			w.B.Request()
			if d := w.B.Loop.Now().Sub(begin); (d >= cmTimeout) != (i == 2) {
				t.Errorf("request %d after %v", i, d)
			}
		}
	})
	t.Run("a service lookup is refused", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		_, clients := fill(w, udp)
		if ev := sides.Next[*cmid.Unreachable](w.A, clients[2]); ev.Status != sidrReject {
			t.Errorf("status %d", ev.Status)
		}
	})
	t.Run("a repeated lookup is not a second one", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		_, clients := fill(w, udp)
		for range 4 { // its loop stands still all the time
			w.Clock.Advance(cmTimeout)
			w.Must(w.A.Loop.Turn())
		}
		if ev := sides.Next[*cmid.Unreachable](w.A, clients[2]); ev.Status != sidrReject || len(w.A.Heard) > 0 {
			t.Errorf("status %d; then %v", ev.Status, w.A.Pending())
		}
		for _, c := range clients[:2] {
			w.B.Request()
			w.WantState("still asking", c, states.Connecting)
		}
	})
	t.Run("iWARP resets", func(t *testing.T) {
		w, _ := twinWorld(t, Config{Flavor: states.IWARP})
		_, clients := fill(w, tcp)
		if ev := sides.Next[*cmid.Rejected](w.A, clients[2]); ev.Reason != cmid.RejectReset {
			t.Errorf("reason %d", ev.Reason)
		}
	})
	t.Run("destroying the listener rejects what is unread", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		l, clients := fill(w, tcp)
		w.Must(l.Destroy())
		for range 3 { // the third was dropped, and finds no listener when it is repeated
			sides.Next[*cmid.Rejected](w.A, nil)
		}
		w.WantState("all", clients[2], states.Failed)
	})
}

func TestSilence(t *testing.T) {
	both(t, func(w *sides.World, f *Fabric) {
		w.Listener(tcp, sides.Any4(0))
		id := w.Resolved(tcp, w.Target())
		w.Queues(id, 0)
		f.Silence(w.Address.String())
		w.Must(id.Connect(nil, nil))
		if w.IWARP {
			w.WantErr("connect", sides.Next[*cmid.CommandFailed](w.A, id), unix.ETIMEDOUT)
			w.WantState("it may be tried again", id, states.RouteResolved)
		} else {
			w.WantErr("connect", sides.Next[*cmid.Unreachable](w.A, id), unix.ETIMEDOUT)
		}
		next := w.A.Create(tcp)
		w.Must(next.ResolveAddr(cmid.Addr{}, w.Target(), time.Second))
		w.Until("the address error", func() bool { return next.State() == states.Bound })
		w.Forget()
		f.Unsilence(w.Address.String())
		w.Reaches(w.Target())
	})
}

// TestSilenceWhileConnected: InfiniBand's queue pair notices that the peer is silent. TCP waits.
func TestSilenceWhileConnected(t *testing.T) {
	w, f := twinWorld(t, Config{})
	c := w.Connected(1)
	f.Silence(w.Address.String())
	w.Must(c.AQ.PostSend(1, "into the void"))
	w.Must(c.AQ.PostSend(2, "and another"))
	w.Until("the error", func() bool { return len(c.AQ.Of(verbs.Send)) == 2 })
	if wc := c.AQ.Of(verbs.Send); wc[0].Status != verbs.StatusRetryExc || wc[1].Status != verbs.StatusFlushed {
		t.Errorf("%+v", wc)
	}
	w.Must(c.Active.Disconnect())
	w.WantErr("the disconnect", sides.Next[*cmid.Disconnected](w.A, c.Active).Err, unix.ETIMEDOUT)
}

func TestReceiverNotReady(t *testing.T) {
	w, _ := twinWorld(t, Config{})
	w.Listener(tcp, sides.Any4(0))
	id := w.Resolved(tcp, w.Target())
	aq := w.Queues(id, 0)
	w.Must(id.Connect(nil, nil))
	child, _ := w.B.Request()
	bq := w.Queues(child, 0)
	w.Must(child.Accept(nil, &cmid.ConnParam{RNRRetryCount: 2}))
	sides.Next[*cmid.Established](w.A, id)
	sides.Next[*cmid.Established](w.B, child)
	begin := w.A.Loop.Now()
	w.Must(aq.PostSend(1, "nobody is ready"))
	w.Until("the error", func() bool { return len(aq.Done) == 1 })
	if d := w.A.Loop.Now().Sub(begin); aq.Done[0].Status != verbs.StatusRNRRetryExc || d < 2*rnrTimer {
		t.Errorf("%+v after %v", aq.Done[0], d)
	}
	if len(bq.Done) != 0 {
		t.Errorf("completions of the receiver: %+v", bq.Done)
	}
}

func TestDelay(t *testing.T) {
	both(t, func(w *sides.World, f *Fabric) {
		c := w.Connected(2)
		f.Delay(time.Second)
		begin := w.A.Loop.Now()
		w.Must(c.AQ.PostSend(1, "slow"))
		f.Delay(0)
		w.Must(c.AQ.PostSend(2, "fast, and yet behind it"))
		w.Until("both", func() bool { return len(c.BQ.Of(verbs.Recv)) == 2 })
		if d := w.A.Loop.Now().Sub(begin); d < time.Second || string(c.BQ.Slot(0)[:4]) != "slow" {
			t.Errorf("after %v, first %q", d, c.BQ.Slot(0)[:4])
		}
		f.LatencyFor(w.Address.String(), 3*time.Second)
		id := w.A.Create(tcp)
		w.Must(id.ResolveAddr(cmid.Addr{}, w.Target(), 2*time.Second))
		w.WantErr("slower than the timeout", sides.Next[*cmid.AddrError](w.A, id), unix.ETIMEDOUT)
		w.Must(id.ResolveAddr(cmid.Addr{}, w.Target(), 4*time.Second))
		sides.Next[*cmid.AddrResolved](w.A, id)
		w.Must(id.ResolveRoute(2 * time.Second))
		w.WantErr("slower than the timeout", sides.Next[*cmid.RouteError](w.A, id), unix.ETIMEDOUT)
		w.WantState("it may be tried again", id, states.AddrResolved)
	})
}

// trace connects, sends and disconnects, and returns in which order the passive side was notified.
func trace(t *testing.T, cfg Config, reorder bool) (order []string) {
	w, f := twinWorld(t, cfg)
	f.Reorder(reorder)
	l := w.Listener(tcp, sides.Any4(0))
	id := w.Resolved(tcp, w.Target())
	aq := w.Queues(id, 0)
	w.Must(id.Connect(nil, nil))
	child, _ := w.B.Request()
	bq := w.Queues(child, 3)
	n := 0
	bq.Then = func() {
		for ; n < len(bq.Done); n++ {
			order = append(order, fmt.Sprintf("%v %d", bq.Done[n].Status, bq.Done[n].ID))
		}
	}
	w.B.Then = func(h sides.Heard) { order = append(order, h.Event.Kind().String()) }
	w.A.Then = func(h sides.Heard) {
		if h.Event.Kind() == states.KindEstablished {
			w.Must(aq.PostSend(1, "a"))
			w.Must(aq.PostSend(2, "b"))
			w.Must(id.Disconnect())
		}
	}
	w.Must(child.Accept(nil, nil))
	sides.Next[*cmid.Established](w.A, id)
	w.Until("the end", func() bool {
		return slices.Contains(order, "Disconnected") && n >= 2
	})
	w.Must(l.Destroy())
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
	both(t, func(w *sides.World, f *Fabric) {
		c := w.Connected(1)
		f.Disconnect(c.Active.Handle())
		for _, ev := range []*cmid.Disconnected{sides.Next[*cmid.Disconnected](w.A, c.Active), sides.Next[*cmid.Disconnected](w.B, c.Passive)} {
			if w.IWARP && !errors.Is(ev.Err, unix.ECONNRESET) {
				t.Errorf("%v, want ECONNRESET", ev.Err)
			}
		}
		if w.IWARP {
			return
		}
		w.Must(c.Active.Disconnect())
		w.Must(c.Passive.Disconnect())
		w.WantState("both have answered", c.Active, states.Timewait)
	})
}

func TestMalformedRequests(t *testing.T) {
	w, _ := twinWorld(t, Config{})
	c := w.Connected(0)
	mr := c.AQ.MR
	for why, wr := range map[string]*verbs.SendWR{
		"beyond the memory":   {SGL: []verbs.SGE{{MR: mr, Offset: 1 << 31, Length: 1 << 31}}},
		"too many elements":   {SGL: []verbs.SGE{{MR: mr}, {MR: mr}}},
		"too much inline":     {Inline: make([]byte, maxInline+1)},
		"bytes of no memory":  {SGL: []verbs.SGE{{Length: 1}}},
		"one byte beyond end": {SGL: []verbs.SGE{{MR: mr, Offset: uint32(len(mr.Bytes)), Length: 1}}},
	} {
		w.WantErr(why, c.AQ.QP.PostSend(wr), unix.EINVAL)
	}
	w.WantErr("an opcode of completions", c.AQ.QP.PostSend(&verbs.SendWR{Op: verbs.Recv}), unix.EINVAL)
	dev := c.Active.Device()
	w.Must(dev.Free(mr))
	w.WantErr("freed memory", c.AQ.PostRecv(0, 1), unix.EINVAL)
	_, err := dev.Alloc(0, 0)
	w.WantErr("no bytes", err, unix.EINVAL)
	_, err = dev.CreateCQ(0, nil)
	w.WantErr("no entries", err, unix.EINVAL)
	_, err = dev.CreateSRQ(verbs.SRQInitAttr{})
	w.WantErr("no receives", err, unix.EINVAL)
	foreign, err := w.B.Ch.Devices()[0].CreateCQ(1, nil)
	w.Must(err)
	id := w.Resolved(tcp, w.Target())
	_, err = id.CreateQP(verbs.QPInitAttr{SendCQ: foreign, RecvCQ: foreign})
	w.WantErr("another loop's queue", err, unix.EINVAL)
}

// TestNoAllocations: a message in steady state allocates nothing, on either side.
func TestNoAllocations(t *testing.T) {
	both(t, func(w *sides.World, _ *Fabric) {
		c := w.Connected(1)
		recv := verbs.RecvWR{SGE: verbs.SGE{MR: c.BQ.MR, Length: sides.SlotSize}}
		send := &verbs.SendWR{Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: c.AQ.MR, Length: 100}}}
		n := testing.AllocsPerRun(100, func() {
			if c.AQ.QP.PostSend(send) != nil {
				t.Fatal("post_send")
			}
			for range 3 {
				_ = w.A.Loop.Turn()
				_ = w.B.Loop.Turn()
			}
			c.AQ.Done, c.BQ.Done = c.AQ.Done[:0], c.BQ.Done[:0]
			if c.BQ.QP.PostRecv(recv) != nil {
				t.Fatal("post_recv: the message did not arrive")
			}
		})
		if n > 0 {
			t.Errorf("%v allocations per message", n)
		}
	})
}

// TestListenerGoesWithItsRequests: when a listener is destroyed, its undelivered requests are
// rejected, even those that Reorder delays.
func TestListenerGoesWithItsRequests(t *testing.T) {
	for seed := range uint64(20) {
		w, f := twinWorld(t, Config{Seed: seed})
		l := w.Listener(tcp, sides.Any4(0))
		one, two := w.Resolved(tcp, w.Target()), w.Resolved(tcp, w.Target())
		w.B.Then = func(sides.Heard) {
			w.B.Then = nil
			w.Must(l.Destroy())
		}
		f.Reorder(true)
		w.Must(one.Connect(nil, nil))
		w.Must(two.Connect(nil, nil))
		w.B.Request()
		w.WantRejected(two, cmid.RejectConsumerDefined)
		w.WantState("rejected in time", one, states.Connecting)
	}
}

// TestOverlook: the accepting side notices an overlooked message when more comes, be it the end.
func TestOverlook(t *testing.T) {
	for what, more := range map[string]func(c *sides.Link) error{
		"a message": func(c *sides.Link) error { return c.AQ.PostSend(2, "two") },
		"the end":   func(c *sides.Link) error { return c.Active.Disconnect() },
	} {
		t.Run(what, func(t *testing.T) {
			w, f := twinWorld(t, Config{Flavor: states.IWARP})
			f.Overlook(1)
			c := w.Connected(2)
			w.Must(c.AQ.PostSend(1, "one"))
			w.Until("the sender's completion", func() bool { return len(c.AQ.Done) == 1 })
			w.Must(c.BQ.PostRecv(2, sides.SlotSize))
			if w.Within(sides.VirtualDeadline, 0, func() bool { return len(c.BQ.Done) > 0 }) {
				t.Fatalf("it has noticed %+v", c.BQ.Done)
			}
			w.Must(more(c))
			w.Until("the message", func() bool { return sides.Succeeded(c.BQ.Of(verbs.Recv)) > 0 })
			w.Same("the message", c.BQ.Slot(0)[:3], []byte("one"))
			if m := f.Missed(); len(m) != 0 {
				t.Error(m)
			}
		})
	}
	// messages of the responder are not overlooked, nor are the next connection's
	w, f := twinWorld(t, Config{Flavor: states.IWARP})
	f.Overlook(1)
	c := w.Connected(2)
	w.Must(c.BQ.PostSend(1, "x"))
	w.Until("the responder's message", func() bool { return len(c.AQ.Of(verbs.Recv)) == 1 })
	w.Must(c.AQ.PostSend(1, "overlooked"))
	w.Settle()
	next := w.Connected(2)
	w.Must(next.AQ.PostSend(1, "y"))
	w.Until("the next one's message", func() bool { return len(next.BQ.Of(verbs.Recv)) == 1 })
	if len(c.BQ.Of(verbs.Recv)) != 0 {
		t.Error("the first one's message was noticed")
	}
}

// TestNobodyElseOverlooks: only soft-iWARP does.
func TestNobodyElseOverlooks(t *testing.T) {
	for _, cfg := range []Config{{}, {Flavor: states.IWARP, Embedded: true}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v: Overlook does not panic", cfg)
				}
			}()
			NewFabric(cfg).Overlook(1)
		}()
	}
}
