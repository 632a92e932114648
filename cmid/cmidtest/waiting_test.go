package cmidtest

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestWaitingMessages: on InfiniBand a message that finds no receive waits in order, without a
// limit if the receiver asks for that.
func TestWaitingMessages(t *testing.T) {
	t.Run("in order", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		c := w.Connected(0)
		w.Must(c.AQ.PostSend(1, "one"))
		w.Settle()
		w.Must(c.AQ.PostSend(2, "two"))
		w.Must(c.BQ.PostRecv(0, sides.SlotSize))
		w.Must(c.BQ.PostRecv(1, sides.SlotSize))
		w.Until("both", func() bool { return len(c.BQ.Done) == 2 && len(c.AQ.Done) == 2 })
		if string(c.BQ.Slot(0)[:3]) != "one" {
			t.Errorf("first %q", c.BQ.Slot(0)[:3])
		}
	})
	t.Run("long", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		c := w.Connected(0)
		w.Must(c.AQ.PostSend(1, "one"))
		w.Within(2*retryTimeout, 0, func() bool { return len(c.AQ.Done) > 0 })
		w.Must(c.BQ.PostRecv(0, sides.SlotSize))
		w.Until("it", func() bool { return sides.Succeeded(c.AQ.Done) == 1 })
	})
	t.Run("for a shared receive", func(t *testing.T) {
		w, _ := twinWorld(t, Config{})
		c, _ := w.Requested(0, nil, nil)
		q := &sides.Queues{}
		dev := c.Passive.Device()
		var err error
		q.MR, err = dev.Alloc(2*sides.SlotSize, verbs.LocalWrite)
		w.Must(err)
		q.CQ, err = dev.CreateCQ(8, q.Poll)
		w.Must(err)
		srq, err := dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 2})
		w.Must(err)
		_, err = c.Passive.CreateQP(verbs.QPInitAttr{SendCQ: q.CQ, RecvCQ: q.CQ, SRQ: srq})
		w.Must(err)
		w.Must(c.Passive.Accept(nil, nil))
		sides.Next[*cmid.Established](w.A, c.Active)
		for i := range 3 {
			w.Must(c.AQ.PostSend(i, "x"))
		}
		for i := range 3 {
			w.Settle()
			if len(q.Done) != i {
				t.Fatalf("%d messages in %d receives", len(q.Done), i)
			}
			w.Must(srq.PostRecv(verbs.RecvWR{ID: 100, SGE: verbs.SGE{MR: q.MR, Length: sides.SlotSize}}))
		}
		w.Until("all", func() bool { return sides.Succeeded(q.Done) == 3 })
		w.Forget()
	})
}

// TestLatenciesDiffer: messages from a near host do not wait for those from a far one.
func TestLatenciesDiffer(t *testing.T) {
	w, f := twinWorld(t, Config{})
	c := w.Connected(1)
	f.Delay(time.Second)
	f.LatencyFor(addrA, 3*time.Second)
	begin := w.A.Loop.Now()
	w.Must(c.AQ.PostSend(1, "from far"))
	near := w.B.Create(tcp)
	w.Must(near.ResolveAddr(cmid.Addr{}, w.Target(), 10*time.Second))
	sides.Next[*cmid.AddrResolved](w.B, near)
	f.Delay(time.Millisecond)
	w.Must(near.ResolveRoute(time.Second))
	sides.Next[*cmid.RouteResolved](w.B, near)
	w.Must(near.Connect(nil, nil))
	w.B.Request()
	if d := w.B.Loop.Now().Sub(begin); d > 2*time.Second {
		t.Errorf("the near request came after %v", d)
	}
	w.Until("the far message", func() bool { return len(c.BQ.Done) == 1 })
	if d := w.B.Loop.Now().Sub(begin); d < 4*time.Second {
		t.Errorf("the far message came after %v", d)
	}
}
