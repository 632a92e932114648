package conformance

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// qpAttr returns the attributes of a queue pair on q's completion queue.
func qpAttr(q *sides.Queues) verbs.QPInitAttr {
	attr := verbs.QPInitAttr{MaxSendWR: 1, MaxRecvWR: 1}
	if q != nil {
		attr.SendCQ, attr.RecvCQ = q.CQ, q.CQ
	}
	return attr
}

// dataScenarios test what queue pairs do over a connection.
var dataScenarios = scenarios{
	"order": func(w *world) {
		c := w.Connected(sides.Depth)
		for i := range sides.Depth {
			w.Must(c.AQ.PostSend(i, fmt.Sprintf("message %d", i)))
		}
		w.Until("all messages", func() bool { return len(c.BQ.Of(verbs.Recv)) == sides.Depth && len(c.AQ.Of(verbs.Send)) == sides.Depth })
		for i, wc := range c.BQ.Of(verbs.Recv) {
			want := fmt.Sprintf("message %d", i)
			if wc.ID != uint64(100+i) || wc.Status != verbs.StatusSuccess || string(c.BQ.Slot(i)[:wc.Bytes]) != want || wc.QP != c.BQ.QP {
				w.Errorf("receive %d is %+v with %q, want %q", i, wc, c.BQ.Slot(i)[:wc.Bytes], want)
			}
		}
		w.Sent("in order", c.AQ)
		w.Must(c.BQ.PostSend(0, "back"))
		w.Until("the answer", func() bool { return len(c.AQ.Of(verbs.Recv)) == 1 })
	},
	"before established": func(w *world) {
		c, _ := w.Requested(1, nil, nil)
		w.wantQPState("post_send while connecting", c.AQ.PostSend(0, "early"))
		c.BQ = w.Queues(c.Passive, 1)
		w.wantQPState("post_send before accept", c.BQ.PostSend(0, "early"))
	},
	"first message right behind the reply": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		c.BQ = w.Queues(c.Passive, 1)
		w.Must(c.Passive.Accept(nil, nil))
		sides.Next[*cmid.Established](w.A, c.Active)
		w.Must(c.AQ.PostSend(0, "first"))
		w.Until("the message", func() bool { return len(c.BQ.Of(verbs.Recv)) == 1 })
		sides.Next[*cmid.Established](w.B, c.Passive)
	},
	"completions before Disconnected": func(w *world) {
		c := w.Connected(sides.Depth)
		for i := range sides.Depth - 2 {
			w.Must(c.AQ.PostSend(i, "last words"))
		}
		w.Until("the Sends to complete", func() bool { return len(c.AQ.Of(verbs.Send)) == sides.Depth-2 })
		w.Must(c.Active.Disconnect())
		sides.Next[*cmid.Disconnected](w.B, c.Passive)
		if n := sides.Succeeded(c.BQ.Of(verbs.Recv)); n != sides.Depth-2 {
			w.Errorf("%d messages before Disconnected, want %d", n, sides.Depth-2)
		}
	},
	"flush": func(w *world) {
		c := w.Connected(3)
		w.Disconnect(c)
		w.Settle()
		for side, q := range map[string]*sides.Queues{"active": c.AQ, "passive": c.BQ} {
			w.wantFlushed(side, q, 3)
			w.wantQPState("post_send after the end", q.PostSend(0, "late"))
		}
		w.Must(c.AQ.QP.Destroy())
		w.Must(c.AQ.CQ.Close())
	},
	"queue full": func(w *world) {
		c := w.Connected(sides.Depth)
		w.WantErr("one receive too many", c.BQ.PostRecv(0, 1), unix.ENOMEM)
		for i := range sides.Depth {
			w.Must(c.AQ.PostSend(i, "x"))
		}
		w.WantErr("one send too many", c.AQ.PostSend(0, "x"), unix.ENOMEM)
		w.WantErr("destroy_cq in use", c.AQ.CQ.Close(), unix.EBUSY)
	},
	"no receive posted":               noReceive,
	"receive too short":               tooLong,
	"shared receives":                 sharedReceives,
	"receives come late":              lateReceives,
	"receives come after a Terminate": lateReceivesOfTerminated,
	"receives come after a reset":     lateReceivesOfReset,
	"paused":                          pausedReceiver,
	"empty message":                   emptyMessage,
	"from inside notify":              fromNotify,
}

// noReceive tests a message that finds no receive. InfiniBand waits as long as the receiver allows.
// iWARP ends the connection.
func noReceive(w *world) {
	c := w.Connected(0)
	w.Must(c.AQ.PostSend(0, "nobody expects it"))
	if w.IWARP {
		w.Disconnected(c)
		return
	}
	w.Settle()
	if len(c.AQ.Done) > 0 {
		w.Fatalf("completed as %+v before there was a receive", c.AQ.Done)
	}
	w.Must(c.BQ.PostRecv(0, sides.SlotSize))
	w.Until("the message", func() bool {
		return sides.Succeeded(c.BQ.Of(verbs.Recv)) == 1 && sides.Succeeded(c.AQ.Of(verbs.Send)) == 1
	})
}

func tooLong(w *world) {
	c := w.Connected(0)
	w.Must(c.BQ.PostRecv(0, 4))
	w.Must(c.AQ.PostSend(0, "far too long"))
	w.Until("the receiver's error", func() bool { return len(c.BQ.Of(verbs.Recv)) == 1 })
	if wc := c.BQ.Of(verbs.Recv)[0]; wc.Status == verbs.StatusSuccess {
		w.Errorf("a receive of 4 bytes succeeded with %d", wc.Bytes)
	}
	if w.IWARP {
		w.Disconnected(c)
		return
	}
	w.Until("the sender's error", func() bool { return len(c.AQ.Of(verbs.Send)) == 1 })
	want := verbs.StatusRemInvReq
	if w.hasDeviation(TooLongIsRemOp) {
		want = verbs.StatusRemOp
	}
	if wc := c.AQ.Of(verbs.Send)[0]; wc.Status != want {
		w.Errorf("the Send completed with %v, want %v", wc.Status, want)
	}
	w.WantState("InfiniBand leaves the disconnect to the owner", c.Active, states.Connected)
}

// sharedReceives tests a shared receive queue that runs low. If the device asks for receives, an
// empty queue asks its owner before the connection is given up. On other devices the owner posts in
// time, when the limit is reached.
func sharedReceives(w *world) {
	asks := w.asksForReceives()
	var s *shared
	s = w.newShared(verbs.SRQInitAttr{
		MaxWR: 2,
		OnEmpty: func(verbs.QP) {
			if !asks {
				w.Error("asked for receives by a device that says it does not (Attr.AsksForReceives)")
			}
			s.postReceive()
		},
		OnLimit: func() {
			s.postReceive()
			w.Must(s.srq.Arm(2))
		},
	})
	if !asks {
		s.postReceive()
		s.postReceive()
		w.Must(s.srq.Arm(2))
	}
	for i := range 3 {
		w.Must(s.AQ.PostSend(i, "shared"))
		if !asks {
			w.Until("the message, and the receive for the next but one", func() bool {
				return sides.Succeeded(s.BQ.Of(verbs.Recv)) == i+1 && s.posted == i+3
			})
		}
	}
	w.Until("the messages", func() bool { return sides.Succeeded(s.BQ.Of(verbs.Recv)) == 3 })
	if s.posted < 3 {
		w.Errorf("posted %d receives for 3 messages, one at a time", s.posted)
	}
	w.WantErr("destroy_srq in use", s.srq.Close(), unix.EBUSY)
	w.Must(s.BQ.QP.Destroy())
	w.Must(s.srq.Close())
}

// shared is a connection whose passive side uses a shared receive queue.
type shared struct {
	*sides.Link
	w      *world
	srq    verbs.SRQ
	posted int
}

func (w *world) newShared(attr verbs.SRQInitAttr) *shared {
	w.Helper()
	s := &shared{w: w}
	s.Link = w.ConnectedWith(sides.Setup{Passive: func(dev verbs.Device, qp *verbs.QPInitAttr) {
		s.srq = sides.Got(dev.CreateSRQ(attr))(w)
		qp.SRQ = s.srq
	}})
	return s
}

// postReceive posts a receive to the next slot.
func (s *shared) postReceive() {
	s.w.Helper()
	s.w.Must(s.srq.PostRecv(verbs.RecvWR{ID: uint64(100 + s.posted), SGE: sides.Part(s.BQ.MR, s.posted*sides.SlotSize, sides.SlotSize)}))
	s.posted++
}

// asksForReceives returns the device's Attr.AsksForReceives.
func (w *world) asksForReceives() bool {
	w.Helper()
	return sides.Probe(w.World, func(id *cmid.ID) bool { return id.Device().Attr().AsksForReceives })
}

// lateReceives tests a device that asks for receives. There messages wait until receives are
// posted, without a time limit. On iWARP the end of the connection comes behind these messages.
func lateReceives(w *world) {
	if !w.asksForReceives() {
		return
	}
	s := w.waitingMessages()
	if w.Clock != nil {
		w.Clock.Advance(sides.VirtualDeadline)
		w.WantQuiet("for a long time")
	}
	if w.IWARP {
		w.Must(s.Active.Disconnect())
	}
	s.receiveLate()
	if w.IWARP {
		w.Disconnected(s.Link)
	}
}

// lateReceivesOfTerminated: the peer's Terminate is part of its stream, and so comes behind the
// messages that wait.
func lateReceivesOfTerminated(w *world) {
	if !w.IWARP || !w.asksForReceives() {
		return
	}
	s := w.waitingMessages()
	w.Must(s.BQ.PostSend(0, "nobody expects it"))
	sides.Next[*cmid.Disconnected](w.A, s.Active)
	s.receiveLate()
	s.wantReset()
}

// lateReceivesOfReset: a reset takes nothing from the receiver that had arrived before.
func lateReceivesOfReset(w *world) {
	w.skipIf(w.rig.Reset == nil, "nobody resets connections here")
	s := w.waitingMessages()
	w.rig.Reset(s.Active)
	sides.Next[*cmid.Disconnected](w.A, s.Active)
	s.receiveLate()
	s.wantReset()
}

// waitingMessages makes a connection whose passive side has three messages, and has no receives.
func (w *world) waitingMessages() *shared {
	w.Helper()
	// Its owner posts nothing when it is asked.
	s := w.newShared(verbs.SRQInitAttr{MaxWR: sides.Depth, OnEmpty: func(verbs.QP) {}})
	for i := range 3 {
		w.Must(s.AQ.PostSend(i, fmt.Sprintf("message %d", i)))
	}
	w.WantQuiet("messages that find no receive")
	if w.IWARP {
		w.Until("the Sends to complete", func() bool { return len(s.AQ.Of(verbs.Send)) == 3 })
	}
	return s
}

// receiveLate posts receives for the waitingMessages, one at a time.
func (s *shared) receiveLate() {
	w := s.w
	w.Helper()
	for i := range 3 {
		w.Settle()
		if n := sides.Succeeded(s.BQ.Of(verbs.Recv)); n != i {
			w.Fatalf("%d messages in %d receives", n, i)
		}
		s.postReceive()
		w.Until("a message", func() bool { return sides.Succeeded(s.BQ.Of(verbs.Recv)) == i+1 })
		if got, want := string(s.BQ.Slot(i)[:s.BQ.Of(verbs.Recv)[i].Bytes]), fmt.Sprintf("message %d", i); got != want {
			w.Errorf("receive %d has %q, want %q", i, got, want)
		}
	}
}

// wantReset waits until the passive side is disconnected with ECONNRESET.
func (s *shared) wantReset() {
	s.w.Helper()
	ev := sides.Next[*cmid.Disconnected](s.w.B, s.Passive)
	s.w.WantErr("the end behind the messages", ev.Err, unix.ECONNRESET)
}

// pausedReceiver checks that the messages of a paused queue pair wait although there are receives.
func pausedReceiver(w *world) {
	if !w.asksForReceives() {
		return
	}
	// Its owner posts nothing when it is asked.
	s := w.newShared(verbs.SRQInitAttr{MaxWR: sides.Depth, OnEmpty: func(verbs.QP) {}})
	s.postReceive()
	s.postReceive()
	p, ok := s.BQ.QP.(verbs.Pauser)
	if !ok {
		w.Fatalf("%T of a device that asks for receives is no verbs.Pauser", s.BQ.QP)
	}
	p.Pause(true)
	w.Must(s.AQ.PostSend(0, "wait"))
	w.WantQuiet("a message for a paused queue pair")
	if n := len(s.BQ.Of(verbs.Recv)); n > 0 {
		w.Errorf("%d completions at a paused queue pair", n)
	}
	p.Pause(false)
	w.Until("the message", func() bool { return sides.Succeeded(s.BQ.Of(verbs.Recv)) == 1 })
}

func emptyMessage(w *world) {
	c := w.Connected(1)
	w.Must(c.AQ.PostSend(0, ""))
	w.Until("a message of no bytes", func() bool { return len(c.BQ.Of(verbs.Recv)) == 1 })
	if wc := c.BQ.Of(verbs.Recv)[0]; wc.Bytes != 0 || wc.Status != verbs.StatusSuccess {
		w.Errorf("%+v", wc)
	}
}

// fromNotify posts work requests inside the notification of a completion, as an application that
// echoes does.
func fromNotify(w *world) {
	c := w.Connected(2)
	const rounds = 50
	answers := func(q *sides.Queues, text string, most int) {
		n := 0
		q.Then = func() {
			for got := q.Of(verbs.Recv); n < len(got); n++ {
				w.Must(q.PostRecv(int(got[n].ID-100), sides.SlotSize))
				if n < most {
					w.Must(q.PostSend(n%sides.Depth, text))
				}
			}
		}
	}
	answers(c.BQ, "pong", rounds)
	answers(c.AQ, "ping", rounds-1)
	w.Must(c.AQ.PostSend(0, "ping"))
	w.Until("the last round", func() bool { return len(c.AQ.Of(verbs.Recv)) == rounds })
}
