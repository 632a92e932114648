package conformance

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/verbs"
)

// notifyScenarios test when an owner is notified: by completion queues that notify only of
// solicited completions, and by shared receive queues that run low.
var notifyScenarios = scenarios{
	"solicited only": func(w *world) {
		c := w.Connected(4)
		all := c.Passive.Device().Attr().NotifiesAll
		c.BQ.CQ.ReqNotify(true)
		notified := 0
		c.BQ.Then = func() { notified++ }
		if w.hasDeviation(OneMoreNotification) {
			w.Barrier(c.AQ, c.BQ)
			w.Settle()
			c.AQ.Forget()
			c.BQ.Forget()
			notified = 0
			w.Must(c.BQ.PostRecv(0, sides.SlotSize))
		}
		w.Must(c.AQ.PostSend(1, "one"))
		w.Must(c.AQ.PostSend(2, "two"))
		w.Must(c.BQ.PostSend(3, "its own"))
		w.Until("the Sends to complete", func() bool { return len(c.AQ.Of(verbs.Send)) == 2 && len(c.AQ.Of(verbs.Recv)) == 1 })
		w.Settle()
		if (notified > 0) != all {
			w.Errorf("notified %d times, and Attr.NotifiesAll is %v: nobody has asked for a solicited event", notified, all)
		}
		notified = 0
		w.Must(c.AQ.Post(&verbs.SendWR{ID: 4, Flags: verbs.Solicited, Inline: []byte("three")}))
		w.Until("the notification that its sender asked for", func() bool { return notified > 0 })
		recv := c.BQ.Of(verbs.Recv)
		if len(recv) != 3 || string(c.BQ.Slot(int(recv[2].ID - 100))[:5]) != "three" {
			w.Errorf("polled %+v: those that came before are there as well", recv)
		}
		if n := len(c.BQ.Of(verbs.Send)); n != 1 {
			w.Errorf("polled %d completed Sends, want 1", n)
		}

		c.BQ.CQ.ReqNotify(false)
		notified = 0
		w.Must(c.AQ.PostSend(5, "four"))
		w.Until("every completion again", func() bool { return notified > 0 })
	},
	"solicited with invalidate": func(w *world) {
		if !w.canInvalidate() {
			return
		}
		c := w.Connected(2)
		c.BQ.CQ.ReqNotify(true)
		mr := w.Memory(c.BQ, 64, sides.RemoteAll, 1)
		w.Must(c.AQ.PostSend(1, "quiet"))
		w.Must(c.AQ.Post(&verbs.SendWR{
			ID: 2, Op: verbs.SendWithInvalidate, Flags: verbs.Solicited, Inline: []byte("loud"), RKey: mr.RKey,
		}))
		w.Until("the message", func() bool { return len(c.BQ.Done) == 2 })
		if wc := c.BQ.Done[1]; wc.InvalidatedRKey != mr.RKey {
			w.Errorf("%+v does not name the key", wc)
		}
	},
	"failures notify": func(w *world) {
		c := w.Connected(2)
		c.AQ.CQ.ReqNotify(true)
		c.BQ.CQ.ReqNotify(true)
		w.Disconnect(c)
		w.Settle()
		for side, q := range map[string]*sides.Queues{"active": c.AQ, "passive": c.BQ} {
			if n := len(q.Of(verbs.Recv)); n != 2 {
				w.Errorf("the %s side was notified of %d flushed receives, want 2: failures always notify", side, n)
			}
		}
	},
	"limit": limitScenario,
}

// limitScenario checks that a shared receive queue notifies once per Arm when it runs low.
func limitScenario(w *world) {
	const depth = 6
	notified := 0
	s := w.newShared(verbs.SRQInitAttr{MaxWR: depth, OnLimit: func() { notified++ }})
	for range depth {
		s.postReceive()
	}
	want := func(n int, why string) {
		w.Helper()
		w.Settle()
		if notified != n {
			w.Errorf("%s: notified %d times, want %d", why, notified, n)
		}
	}
	w.Barrier(s.AQ, s.BQ) // 5 left
	want(0, "a queue that is not armed")
	w.Must(s.srq.Arm(4))
	w.Barrier(s.AQ, s.BQ) // 4 left
	want(0, "as many as the limit are not fewer")
	w.Barrier(s.AQ, s.BQ) // 3 left
	want(1, "fewer than the limit")
	w.Barrier(s.AQ, s.BQ) // 2 left
	want(1, "once per Arm")
	w.Must(s.srq.Arm(3))
	want(2, "Arm, with fewer posted already")
	w.Must(s.srq.Arm(2))
	w.Must(s.srq.Arm(0))
	w.Barrier(s.AQ, s.BQ) // 1 left
	want(2, "0 disarms")
	s.postReceive()
	w.Must(s.srq.Arm(2))
	s.postReceive()
	w.Barrier(s.AQ, s.BQ) // 2 left
	want(2, "receives posted after Arm count")
	w.Barrier(s.AQ, s.BQ) // 1 left
	want(3, "armed again")
	w.WantErr("a limit above MaxWR", s.srq.Arm(depth+1), unix.EINVAL)
	w.WantErr("a negative limit", s.srq.Arm(-1), unix.EINVAL)
	w.WantErr("receives for a queue pair with a shared queue", s.BQ.PostRecv(0, 1), unix.EINVAL)
}
