package cmidtest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
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
