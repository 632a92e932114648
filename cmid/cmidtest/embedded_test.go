package cmidtest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// embedded is a world whose device departs from soft-iWARP as package iwarp does (docs/iwarp.md).
func embedded(t *testing.T) (*world, *Fabric) {
	return twinWorld(t, Config{Flavor: states.IWARP, Embedded: true})
}

// TestEmbeddedConnectDoesNotWait: what TCP finds is told by an event, and the identifier is used up.
func TestEmbeddedConnectDoesNotWait(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		w, f := embedded(t)
		f.Delay(time.Second)
		id := w.resolved(tcp, at(w.rig.Address, 7471))
		w.queues(id, 0)
		begin := w.a.l.Now()
		w.must(id.Connect(nil, nil))
		w.wantState("meanwhile", id, states.Connecting)
		ev := next[*cmid.Rejected](w.a, id)
		if ev.Reason != cmid.RejectRefused || ev.Status != -111 {
			t.Errorf("reason %d, status %d, want -111", ev.Reason, ev.Status)
		}
		if d := w.a.l.Now().Sub(begin); d != 2*time.Second {
			t.Errorf("after %v, want SYN's way there and the reset's way back", d)
		}
		w.wantState("afterwards", id, states.Failed)
	})
	for name, hide := range map[string]func(*world, *Fabric){
		"silent":   func(w *world, f *Fabric) { f.Silence(w.rig.Address.String()) },
		"too slow": func(_ *world, f *Fabric) { f.Delay(replyTimeout) },
	} {
		t.Run(name, func(t *testing.T) {
			w, f := embedded(t)
			w.listener(tcp, any4(0))
			id := w.resolved(tcp, w.target())
			w.queues(id, 0)
			hide(w, f)
			begin := w.a.l.Now()
			w.must(id.Connect(nil, nil))
			ev := next[*cmid.Unreachable](w.a, id)
			w.wantErr("connect", ev, unix.ETIMEDOUT)
			if d := w.a.l.Now().Sub(begin); d != replyTimeout {
				t.Errorf("after %v, want %v", d, replyTimeout)
			}
			w.wantState("afterwards", id, states.Failed)
		})
	}
	t.Run("destroyed meanwhile", func(t *testing.T) {
		w, f := embedded(t)
		f.Delay(time.Second)
		id := w.resolved(tcp, at(w.rig.Address, 7471))
		w.queues(id, 0)
		w.must(id.Connect(nil, nil))
		w.must(id.Destroy())
		w.quiet("after destroy")
	})
}

func TestEmbeddedLimits(t *testing.T) {
	w, _ := embedded(t)
	l := w.limits()
	if l.ConnectData != 248 || l.AcceptData != 248 || l.RejectData != 248 || l.Padded {
		t.Errorf("limits %+v, want 248 bytes as they are", l)
	}
	for _, ps := range []cmid.PortSpace{cmid.PortSpaceUDP, cmid.PortSpaceIPOIB, cmid.PortSpaceIB} {
		_, err := w.a.ch.CreateID(ps)
		w.wantErr("create_id", err, unix.EPROTONOSUPPORT)
	}
}

// TestEmbeddedDepths: both sides are told what they serve and what they may ask.
func TestEmbeddedDepths(t *testing.T) {
	w, _ := embedded(t)
	c, ev := w.requested(0, nil, &cmid.ConnParam{ResponderResources: 7, InitiatorDepth: 255})
	if want := (cmid.ConnParam{ResponderResources: 128, InitiatorDepth: 7}); ev.Param != want {
		t.Errorf("the request has %+v, want %+v", ev.Param, want)
	}
	w.queues(c.passive, 0)
	w.must(c.passive.Accept(nil, &cmid.ConnParam{ResponderResources: 3, InitiatorDepth: 9}))
	if got, want := next[*cmid.Established](w.a, c.active).Param, (cmid.ConnParam{ResponderResources: 7, InitiatorDepth: 3}); got != want {
		t.Errorf("active side %+v, want %+v", got, want)
	}
	if got, want := next[*cmid.Established](w.b, c.passive).Param, (cmid.ConnParam{ResponderResources: 3, InitiatorDepth: 7}); got != want {
		t.Errorf("passive side %+v, want %+v: 9 is more than the peer serves", got, want)
	}
	id := w.resolved(tcp, w.target())
	w.queues(id, 0)
	w.wantErr("connect", id.Connect(nil, &cmid.ConnParam{ResponderResources: 129}), unix.EINVAL)
	w.must(id.Connect(nil, nil))
	child, _ := w.b.request()
	w.queues(child, 0)
	w.wantErr("accept", child.Accept(nil, &cmid.ConnParam{InitiatorDepth: 200}), unix.EINVAL)
	w.wantRejected(id, cmid.RejectConsumerDefined)
}

// TestEmbeddedDestroySaysFIN: to the peer of a destroyed identifier the end looks orderly.
func TestEmbeddedDestroySaysFIN(t *testing.T) {
	w, _ := embedded(t)
	c := w.connected(1)
	w.must(c.active.Destroy())
	if ev := next[*cmid.Disconnected](w.b, c.passive); ev.Err != nil || ev.Status != 0 {
		t.Errorf("%v, status %d, want no error", ev.Err, ev.Status)
	}
}

// TestEmbeddedBacklog: TCP repeats a SYN that finds no room, so nobody is turned away.
func TestEmbeddedBacklog(t *testing.T) {
	w, _ := embedded(t)
	id := w.b.bound(tcp, any4(0))
	w.must(id.Listen(1))
	var clients []*cmid.ID
	for range 3 {
		c := w.resolved(tcp, at(w.rig.Address, id.SrcPort()))
		w.queues(c, 0)
		clients = append(clients, c)
	}
	for _, c := range clients {
		w.must(c.Connect(nil, nil))
	}
	for range 4 { // the listener's loop stands still
		w.must(w.a.l.Turn())
	}
	for range 3 {
		w.b.request()
	}
}
