package cmidtest

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestWaitingMessages: on InfiniBand a message that finds no receive waits, for ever if the receiver says so, and in its place.
func TestWaitingMessages(t *testing.T) {
	t.Run("in order", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		c := w.connected(0)
		w.must(c.aq.postSend(1, "one"))
		w.settle()
		w.must(c.aq.postSend(2, "two"))
		w.must(c.bq.postRecv(0, slotSize))
		w.must(c.bq.postRecv(1, slotSize))
		w.until("both", func() bool { return len(c.bq.done) == 2 && len(c.aq.done) == 2 })
		if string(c.bq.slot(0)[:3]) != "one" {
			t.Errorf("first %q", c.bq.slot(0)[:3])
		}
	})
	t.Run("long", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		c := w.connected(0)
		w.must(c.aq.postSend(1, "one"))
		w.within(2*retryTimeout, 0, func() bool { return len(c.aq.done) > 0 })
		w.must(c.bq.postRecv(0, slotSize))
		w.until("it", func() bool { return succeeded(c.aq.done) == 1 })
	})
	t.Run("for a shared receive", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		c, _ := w.requested(0, nil, nil)
		q := &rings{}
		dev := c.passive.Device()
		var err error
		q.mr, err = dev.Alloc(2*slotSize, verbs.LocalWrite)
		w.must(err)
		q.cq, err = dev.CreateCQ(8, q.poll)
		w.must(err)
		srq, err := dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 2})
		w.must(err)
		_, err = c.passive.CreateQP(verbs.QPInitAttr{SendCQ: q.cq, RecvCQ: q.cq, SRQ: srq})
		w.must(err)
		w.must(c.passive.Accept(nil, nil))
		next[*cmid.Established](w.a, c.active)
		for i := range 3 {
			w.must(c.aq.postSend(i, "x"))
		}
		for i := range 3 {
			w.settle()
			if len(q.done) != i {
				t.Fatalf("%d messages in %d receives", len(q.done), i)
			}
			w.must(srq.PostRecv(verbs.RecvWR{ID: 100, SGE: verbs.SGE{MR: q.mr, Length: slotSize}}))
		}
		w.until("all", func() bool { return succeeded(q.done) == 3 })
		w.forget()
	})
}

// TestLatenciesDiffer: what comes from near does not wait for what comes from far.
func TestLatenciesDiffer(t *testing.T) {
	w, f := twinWorld(t, Config{})
	c := w.connected(1)
	f.Delay(time.Second)
	f.LatencyFor(w.rig.Local.String(), 3*time.Second)
	begin := w.a.l.Now()
	w.must(c.aq.postSend(1, "from far"))
	near := w.b.create(tcp)
	w.must(near.ResolveAddr(cmid.Addr{}, w.target(), 10*time.Second))
	next[*cmid.AddrResolved](w.b, near)
	f.Delay(time.Millisecond)
	w.must(near.ResolveRoute(time.Second))
	next[*cmid.RouteResolved](w.b, near)
	w.must(near.Connect(nil, nil))
	w.b.request()
	if d := w.b.l.Now().Sub(begin); d > 2*time.Second {
		t.Errorf("the near request came after %v", d)
	}
	w.until("the far message", func() bool { return len(c.bq.done) == 1 })
	if d := w.b.l.Now().Sub(begin); d < 4*time.Second {
		t.Errorf("the far message came after %v", d)
	}
}
