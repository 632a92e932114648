package cmidtest

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// notifyScenarios are when an owner is called: completion queues told to be quiet, and shared receive queues that run low.
var notifyScenarios = scenarios{
	"solicited only": func(w *world) {
		c := w.connected(4)
		all := c.passive.Device().Attr().NotifiesAll
		c.bq.cq.ReqNotify(true)
		told := 0
		c.bq.then = func() { told++ }
		if w.differs(OneMoreNotification) {
			w.told(c.aq, c.bq)
			w.settle()
			c.aq.done, c.bq.done, told = nil, nil, 0
			w.must(c.bq.postRecv(0, slotSize))
		}
		w.must(c.aq.postSend(1, "one"))
		w.must(c.aq.postSend(2, "two"))
		w.must(c.bq.postSend(3, "its own"))
		w.until("them sent", func() bool { return len(c.aq.of(verbs.Send)) == 2 && len(c.aq.of(verbs.Recv)) == 1 })
		w.settle()
		if (told > 0) != all {
			w.Errorf("notified %d times, and Attr.NotifiesAll is %v: nobody has asked for a solicited event", told, all)
		}
		told = 0
		w.must(c.aq.qp.PostSend(&verbs.SendWR{ID: 4, Flags: verbs.Solicited, Inline: []byte("three")}))
		w.until("the notification that its sender asked for", func() bool { return told > 0 })
		recv := c.bq.of(verbs.Recv)
		if len(recv) != 3 || string(c.bq.slot(int(recv[2].ID - 100))[:5]) != "three" {
			w.Errorf("polled %+v: those that came before are there as well", recv)
		}
		if n := len(c.bq.of(verbs.Send)); n != 1 {
			w.Errorf("polled %d completed Sends, want 1", n)
		}

		c.bq.cq.ReqNotify(false)
		told = 0
		w.must(c.aq.postSend(5, "four"))
		w.until("every completion again", func() bool { return told > 0 })
	},
	"solicited with invalidate": func(w *world) {
		c := w.connected(2)
		if !w.canInvalidate(c) {
			return
		}
		c.bq.cq.ReqNotify(true)
		mr := w.memory(c.bq, 64, remoteAll, 1)
		w.must(c.aq.postSend(1, "quiet"))
		w.must(c.aq.qp.PostSend(&verbs.SendWR{
			ID: 2, Op: verbs.SendWithInvalidate, Flags: verbs.Solicited, Inline: []byte("loud"), RKey: mr.RKey,
		}))
		w.until("it", func() bool { return len(c.bq.done) == 2 })
		if wc := c.bq.done[1]; wc.InvalidatedRKey != mr.RKey {
			w.Errorf("%+v does not name the key", wc)
		}
	},
	"failures notify": func(w *world) {
		c := w.connected(2)
		c.aq.cq.ReqNotify(true)
		c.bq.cq.ReqNotify(true)
		w.must(c.active.Disconnect())
		next[*cmid.Disconnected](w.b, c.passive)
		if !w.iwarp {
			w.must(c.passive.Disconnect())
		}
		next[*cmid.Disconnected](w.a, c.active)
		w.settle()
		for side, q := range map[string]*rings{"active": c.aq, "passive": c.bq} {
			if n := len(q.of(verbs.Recv)); n != 2 {
				w.Errorf("the %s side was told of %d flushed receives, want 2: failures are always told", side, n)
			}
		}
	},
	"limit": limitScenario,
}

// limitScenario: a shared receive queue tells once per Arm that it runs low.
func limitScenario(w *world) {
	const depth = 6
	var srq verbs.SRQ
	told := 0
	c := w.connectedWith(setup{passive: func(dev verbs.Device, attr *verbs.QPInitAttr) {
		var err error
		srq, err = dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: depth, OnLimit: func() { told++ }})
		w.must(err)
		attr.SRQ = srq
	}})
	post := func() {
		w.must(srq.PostRecv(verbs.RecvWR{ID: 100, SGE: part(c.bq.mr, 0, slotSize)}))
	}
	for range depth {
		post()
	}
	want := func(n int, why string) {
		w.Helper()
		w.settle()
		if told != n {
			w.Errorf("%s: told %d times, want %d", why, told, n)
		}
	}
	w.told(c.aq, c.bq) // 5 left
	want(0, "a queue that is not armed")
	w.must(srq.Arm(4))
	w.told(c.aq, c.bq) // 4 left
	want(0, "as many as the limit are not fewer")
	w.told(c.aq, c.bq) // 3 left
	want(1, "fewer than the limit")
	w.told(c.aq, c.bq) // 2 left
	want(1, "once per Arm")
	w.must(srq.Arm(3))
	want(2, "Arm, with fewer posted already")
	w.must(srq.Arm(2))
	w.must(srq.Arm(0))
	w.told(c.aq, c.bq) // 1 left
	want(2, "0 disarms")
	post()
	w.must(srq.Arm(2))
	post()
	w.told(c.aq, c.bq) // 2 left
	want(2, "receives posted after Arm count")
	w.told(c.aq, c.bq) // 1 left
	want(3, "armed again")
	w.wantErr("a limit above MaxWR", srq.Arm(depth+1), unix.EINVAL)
	w.wantErr("a negative limit", srq.Arm(-1), unix.EINVAL)
	w.wantErr("receives for a queue pair with a shared queue", c.bq.postRecv(0, 1), unix.EINVAL)
}
