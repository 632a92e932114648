package cmidtest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// embedded makes a world whose device differs from soft-iWARP as package iwarp does
// (docs/iwarp.md).
func embedded(t *testing.T) (*sides.World, *Fabric) {
	return twinWorld(t, Config{Flavor: states.IWARP, Embedded: true})
}

// TestEmbeddedConnectDoesNotWait: an event reports the outcome of TCP's connect. After a failure
// the identifier cannot be used again.
func TestEmbeddedConnectDoesNotWait(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		w, f := embedded(t)
		f.Delay(time.Second)
		id := w.Resolved(tcp, sides.At(w.Address, 7471))
		w.Queues(id, 0)
		begin := w.A.Loop.Now()
		w.Must(id.Connect(nil, nil))
		w.WantState("meanwhile", id, states.Connecting)
		ev := sides.Next[*cmid.Rejected](w.A, id)
		if ev.Reason != cmid.RejectRefused || ev.Status != -111 {
			t.Errorf("reason %d, status %d, want -111", ev.Reason, ev.Status)
		}
		if d := w.A.Loop.Now().Sub(begin); d != 2*time.Second {
			t.Errorf("after %v, want SYN's way there and the reset's way back", d)
		}
		w.WantState("afterwards", id, states.Failed)
	})
	for name, hide := range map[string]func(*sides.World, *Fabric){
		"silent":   func(w *sides.World, f *Fabric) { f.Silence(w.Address.String()) },
		"too slow": func(_ *sides.World, f *Fabric) { f.Delay(replyTimeout) },
	} {
		t.Run(name, func(t *testing.T) {
			w, f := embedded(t)
			w.Listener(tcp, sides.Any4(0))
			id := w.Resolved(tcp, w.Target())
			w.Queues(id, 0)
			hide(w, f)
			begin := w.A.Loop.Now()
			w.Must(id.Connect(nil, nil))
			ev := sides.Next[*cmid.Unreachable](w.A, id)
			w.WantErr("connect", ev, unix.ETIMEDOUT)
			if d := w.A.Loop.Now().Sub(begin); d != replyTimeout {
				t.Errorf("after %v, want %v", d, replyTimeout)
			}
			w.WantState("afterwards", id, states.Failed)
		})
	}
	t.Run("destroyed meanwhile", func(t *testing.T) {
		w, f := embedded(t)
		f.Delay(time.Second)
		id := w.Resolved(tcp, sides.At(w.Address, 7471))
		w.Queues(id, 0)
		w.Must(id.Connect(nil, nil))
		w.Must(id.Destroy())
		w.WantQuiet("after destroy")
	})
}

func TestEmbeddedLimits(t *testing.T) {
	w, _ := embedded(t)
	l := w.Limits()
	if l.ConnectData != 248 || l.AcceptData != 248 || l.RejectData != 248 || l.Padded {
		t.Errorf("limits %+v, want 248 bytes as they are", l)
	}
	for _, ps := range []cmid.PortSpace{cmid.PortSpaceUDP, cmid.PortSpaceIPOIB, cmid.PortSpaceIB} {
		_, err := w.A.Ch.CreateID(ps)
		w.WantErr("create_id", err, unix.EPROTONOSUPPORT)
	}
}

// TestEmbeddedDepths: an event reports to each side how many Reads it serves and how many it may
// request.
func TestEmbeddedDepths(t *testing.T) {
	w, _ := embedded(t)
	c, ev := w.Requested(0, nil, &cmid.ConnParam{ResponderResources: 7, InitiatorDepth: 255})
	if want := (cmid.ConnParam{ResponderResources: 128, InitiatorDepth: 7}); ev.Param != want {
		t.Errorf("the request has %+v, want %+v", ev.Param, want)
	}
	w.Queues(c.Passive, 0)
	w.Must(c.Passive.Accept(nil, &cmid.ConnParam{ResponderResources: 3, InitiatorDepth: 9}))
	if got, want := sides.Next[*cmid.Established](w.A, c.Active).Param, (cmid.ConnParam{ResponderResources: 7, InitiatorDepth: 3}); got != want {
		t.Errorf("active side %+v, want %+v", got, want)
	}
	if got, want := sides.Next[*cmid.Established](w.B, c.Passive).Param, (cmid.ConnParam{ResponderResources: 3, InitiatorDepth: 7}); got != want {
		t.Errorf("passive side %+v, want %+v: 9 is more than the peer serves", got, want)
	}
	id := w.Resolved(tcp, w.Target())
	w.Queues(id, 0)
	w.WantErr("connect", id.Connect(nil, &cmid.ConnParam{ResponderResources: 129}), unix.EINVAL)
	w.Must(id.Connect(nil, nil))
	child, _ := w.B.Request()
	w.Queues(child, 0)
	w.WantErr("accept", child.Accept(nil, &cmid.ConnParam{InitiatorDepth: 200}), unix.EINVAL)
	w.WantRejected(id, cmid.RejectConsumerDefined)
}

// TestEmbeddedDestroySaysFIN: the peer of a destroyed identifier sees an orderly end.
func TestEmbeddedDestroySaysFIN(t *testing.T) {
	w, _ := embedded(t)
	c := w.Connected(1)
	w.Must(c.Active.Destroy())
	if ev := sides.Next[*cmid.Disconnected](w.B, c.Passive); ev.Err != nil || ev.Status != 0 {
		t.Errorf("%v, status %d, want no error", ev.Err, ev.Status)
	}
}

// TestEmbeddedBacklog: TCP repeats a SYN that finds no room, so that no request is refused.
func TestEmbeddedBacklog(t *testing.T) {
	w, _ := embedded(t)
	id := w.B.Bound(tcp, sides.Any4(0))
	w.Must(id.Listen(1))
	var clients []*cmid.ID
	for range 3 {
		c := w.Resolved(tcp, sides.At(w.Address, id.SrcPort()))
		w.Queues(c, 0)
		clients = append(clients, c)
	}
	for _, c := range clients {
		w.Must(c.Connect(nil, nil))
	}
	for range 4 { // the listener's loop stands still
		w.Must(w.A.Loop.Turn())
	}
	for range 3 {
		w.B.Request()
	}
}

// TestEmbeddedLoss: messages that had arrived before a connection was lost wait for receives as
// long as those of package iwarp do. Package conformance tests that they come before its end.
func TestEmbeddedLoss(t *testing.T) {
	connected := func(t *testing.T) *losing {
		l := &losing{}
		l.World, l.f = embedded(t)
		l.Link = l.ConnectedWith(sides.Setup{Passive: func(dev verbs.Device, qp *verbs.QPInitAttr) {
			var err error
			l.srq, err = dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 2, OnEmpty: func(verbs.QP) {}})
			l.Must(err)
			qp.SRQ = l.srq
		}})
		l.Must(l.AQ.PostSend(0, "one"))
		l.Settle()
		return l
	}
	lost := func(t *testing.T) *losing {
		l := connected(t)
		l.Must(l.AQ.PostSend(1, "two"))
		l.Settle()
		l.f.Disconnect(l.Active.Handle())
		sides.Next[*cmid.Disconnected](l.A, l.Active)
		l.WantQuiet("messages wait")
		return l
	}
	t.Run("nobody receives them", func(t *testing.T) {
		l := lost(t)
		begin := l.B.Loop.Now()
		l.end(unix.ECONNRESET, 0)
		if d := l.B.Loop.Now().Sub(begin); d != embeddedGiveUp {
			t.Errorf("after %v, want %v", d, embeddedGiveUp)
		}
	})
	t.Run("one is received late", func(t *testing.T) {
		l := lost(t)
		l.Clock.Advance(embeddedGiveUp - time.Second)
		l.post()
		l.Settle()
		l.Clock.Advance(embeddedGiveUp - time.Second)
		l.WantQuiet("the time begins anew")
		l.end(unix.ECONNRESET, 1)
	})
	t.Run("its owner sends", func(t *testing.T) {
		l := lost(t)
		l.Must(l.BQ.PostSend(0, "too late"))
		l.Settle()
		if n := len(l.BQ.Of(verbs.Send)); n != 0 {
			t.Errorf("%d Sends have ended before the connection", n)
		}
		l.post()
		l.post()
		l.end(unix.ECONNRESET, 2)
		if wc := l.BQ.Of(verbs.Send); len(wc) != 1 || wc[0].Status != verbs.StatusFlushed {
			t.Errorf("got %+v, want the Send flushed", wc)
		}
	})
	for name, end := range map[string]func(*losing) error{
		"its owner disconnects":             func(l *losing) error { return l.Passive.Disconnect() },
		"its owner destroys the queue pair": func(l *losing) error { return l.BQ.QP.Destroy() },
	} {
		t.Run(name, func(t *testing.T) {
			l := lost(t)
			begin := l.B.Loop.Now()
			l.Must(end(l))
			l.end(unix.ECONNRESET, 0)
			if d := l.B.Loop.Now().Sub(begin); d != 0 {
				t.Errorf("after %v", d)
			}
			l.Clock.Advance(2 * embeddedGiveUp)
			l.WantQuiet("which is all")
		})
	}
	t.Run("nothing was acknowledged", func(t *testing.T) {
		l := connected(t)
		a, b := l.f.Host("a"), l.f.Host("b")
		l.f.Cut(a, b)
		l.Must(l.BQ.PostSend(0, "does not arrive"))
		l.Settle()
		l.Clock.Advance(embeddedGiveUp - time.Second)
		l.Must(l.AQ.PostSend(1, "arrives after the loss"))
		l.Settle()
		l.Clock.Advance(2 * time.Second)
		l.WantQuiet("a message waits")
		l.f.Heal(a, b)
		sides.Next[*cmid.Disconnected](l.A, l.Active)
		l.WantQuiet("a message still waits")
		l.post()
		l.post()
		l.end(unix.ETIMEDOUT, 1)
	})
}

// losing is a connection of the embedded device whose passive side has a shared receive queue.
type losing struct {
	*sides.World
	*sides.Link
	f   *Fabric
	srq verbs.SRQ
}

func (l *losing) post() {
	l.Helper()
	l.Must(l.srq.PostRecv(verbs.RecvWR{ID: 100, SGE: verbs.SGE{MR: l.BQ.MR, Length: sides.SlotSize}}))
}

// end waits for the end on the passive side, behind n messages.
func (l *losing) end(want unix.Errno, n int) {
	l.Helper()
	l.WantErr("the end", sides.Next[*cmid.Disconnected](l.World.B, l.Passive).Err, want)
	if got := sides.Succeeded(l.BQ.Of(verbs.Recv)); got != n {
		l.Errorf("%d messages received, want %d", got, n)
	}
}
