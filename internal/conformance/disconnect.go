package conformance

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// disconnectScenarios test rdma_disconnect(3).
var disconnectScenarios = scenarios{
	"active side":  func(w *world) { c := w.Connected(2); w.checkDisconnect(w.A, c.Active, w.B, c.Passive) },
	"passive side": func(w *world) { c := w.Connected(2); w.checkDisconnect(w.B, c.Passive, w.A, c.Active) },
	"both at once": func(w *world) {
		c := w.Connected(0)
		w.Must(c.Active.Disconnect())
		w.Must(c.Passive.Disconnect())
		sides.Next[*cmid.Disconnected](w.A, c.Active)
		sides.Next[*cmid.Disconnected](w.B, c.Passive)
		w.WantState("then", c.Active, states.Timewait)
		w.WantState("then", c.Passive, states.Timewait)
	},
	"twice": func(w *world) {
		c := w.Connected(0)
		w.Must(c.Active.Disconnect())
		w.Disconnect(c)
		w.Must(c.Active.Disconnect())
	},
	"before connected": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.WantErr("connecting", c.Active.Disconnect(), unix.EINVAL)
		w.WantErr("requested", c.Passive.Disconnect(), unix.EINVAL)
	},
	"peer never answers": func(w *world) {
		w.skipIf(w.IWARP || w.Clock == nil, "InfiniBand asks the peer, for 70 s and more")
		c := w.Connected(0)
		w.Must(c.Active.Disconnect())
		sides.Next[*cmid.Disconnected](w.B, c.Passive)
		ev := sides.Next[*cmid.Disconnected](w.A, c.Active)
		w.WantErr("in the end", ev.Err, unix.ETIMEDOUT)
		sides.Next[*cmid.TimewaitExit](w.A, c.Active)
	},
}

// checkDisconnect makes one side disconnect, and checks the flavor's steps.
func (w *world) checkDisconnect(e *sides.Side, id *cmid.ID, other *sides.Side, peer *cmid.ID) {
	w.Helper()
	w.Must(id.Disconnect())
	if ev := sides.Next[*cmid.Disconnected](other, peer); ev.Err != nil {
		w.Errorf("an orderly end has error %v", ev.Err)
	}
	if w.IWARP {
		sides.Next[*cmid.Disconnected](e, id)
		w.WantState("closed", id, states.Timewait)
		w.WantState("closed", peer, states.Timewait)
		w.WantQuiet("iWARP has no timewait")
		return
	}
	w.WantState("owes the answer", peer, states.PeerDisconnected)
	w.Settle()
	w.wantNone("before the peer has answered,", e)
	w.Must(peer.Disconnect())
	w.WantState("answered", peer, states.Timewait)
	if ev := sides.Next[*cmid.Disconnected](e, id); ev.Err != nil {
		w.Errorf("an orderly end has error %v", ev.Err)
	}
	sides.Next[*cmid.TimewaitExit](e, id)
	sides.Next[*cmid.TimewaitExit](other, peer)
}

// destroyScenarios test rdma_destroy_id(3). It is legal in every state, and final. The peer is
// notified as by the kernel.
var destroyScenarios = scenarios{
	"while connected": func(w *world) {
		c := w.Connected(2)
		w.Must(c.Active.Destroy())
		sides.Next[*cmid.Disconnected](w.B, c.Passive)
		w.Answer(c.Passive)
		w.Settle()
		w.wantNone("a destroyed identifier", w.A)
		if n := len(c.AQ.Of(verbs.Recv)); n > 2 {
			w.Errorf("%d completions of 2 receives", n)
		}
	},
	"owing the answer to a disconnect": func(w *world) {
		c := w.Connected(0)
		w.Must(c.Active.Disconnect())
		sides.Next[*cmid.Disconnected](w.B, c.Passive)
		begin := w.A.Loop.Now()
		w.Must(c.Passive.Destroy())
		sides.Next[*cmid.Disconnected](w.A, c.Active)
		if d := w.A.Loop.Now().Sub(begin); d > time.Second {
			w.Errorf("the peer waited %v for the answer: destroy_id gives it", d)
		}
	},
	"while resolving": func(w *world) {
		id := w.A.Create(tcp)
		w.Must(id.ResolveAddr(cmid.Addr{}, w.Target(), 0))
		w.Must(id.Destroy())
		w.WantQuiet("after destroy")
	},
	"while connecting": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Must(c.Active.Destroy())
		w.WantQuiet("after destroy")
	},
	"before the request arrives": func(w *world) {
		w.Listener(tcp, sides.Any4(0))
		w.Must(w.Connecting(w.Target()).Destroy())
		w.Settle()
		w.wantNone("a destroyed identifier", w.A)
	},
	"listener with an unanswered request": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Must(c.Listener.Destroy())
		w.Must(c.Passive.Reject(nil))
		w.WantRejected(c.Active, cmid.RejectConsumerDefined)
	},
	"twice": func(w *world) {
		id := w.A.Create(tcp)
		w.Must(id.Destroy())
		w.WantErr("again", id.Destroy(), unix.ENOENT)
		w.WantErr("anything", id.BindAddr(sides.Any4(0)), unix.ENOENT)
		if w.A.Ch.ID(id.Handle()) != nil {
			w.Error("still there")
		}
	},
	"channel closed while connected": func(w *world) {
		c := w.Connected(0)
		w.Must(w.A.Ch.Close())
		w.A.Heard = nil
		sides.Next[*cmid.Disconnected](w.B, c.Passive)
		w.wantNone("a closed channel", w.A)
	},
}

// deviceRemoval tests RDMA_CM_EVENT_DEVICE_REMOVAL.
func deviceRemoval(t *testing.T, r *run) {
	t.Run("removal", func(t *testing.T) {
		w := r.newWorld(t)
		if w.rig.RemoveDevice == nil {
			t.Skip("this driver's device cannot go")
		}
		c := w.Connected(2)
		specific := w.Listener(tcp, w.deviceAddr())
		idle := w.B.Create(tcp)

		one := c.Active.Info().Device == c.Passive.Info().Device
		w.rig.RemoveDevice()
		if one {
			w.bothRemoved(c.Active, specific, c.Passive)
			w.WantErr("its address has no device", idle.BindAddr(w.deviceAddr()), unix.ENODEV)
			w.wantFlushed("the passive side", c.BQ, 2)
			return
		}
		for _, gone := range []*cmid.ID{c.Passive, specific} {
			if ev := sides.Next[*cmid.DeviceRemoval](w.B, gone); ev.Device == "" {
				t.Error("the event names no device")
			}
			w.WantState("removed", gone, states.Removed)
			w.WantErr("disconnect", gone.Disconnect(), unix.ENXIO)
		}
		sides.Next[*cmid.Disconnected](w.A, c.Active)
		w.WantState("a wildcard has no device to lose", c.Listener, states.Listening)
		w.WantState("nor has a new identifier", idle, states.Idle)
		w.WantErr("its address is gone", idle.BindAddr(w.deviceAddr()), unix.EADDRNOTAVAIL)
		w.wantFlushed("the passive side", c.BQ, 2)
		w.Must(c.Passive.Destroy())
		w.Must(c.Active.Destroy())
	})
}

// bothRemoved waits until each identifier of both sides has one DeviceRemoval, because they share
// the device. Disconnected may come in between.
func (w *world) bothRemoved(ids ...*cmid.ID) {
	w.Helper()
	removals := func(id *cmid.ID) (n int) {
		for _, h := range append(slices.Clone(w.A.Heard), w.B.Heard...) {
			if _, ok := h.Event.(*cmid.DeviceRemoval); ok && h.ID == id {
				n++
			}
		}
		return n
	}
	for _, id := range ids {
		w.Until("DeviceRemoval", func() bool { return removals(id) > 0 })
	}
	w.Settle()
	for _, id := range ids {
		if n := removals(id); n != 1 {
			w.Errorf("%d has DeviceRemoval %d times, want once", id.Handle(), n)
		}
		w.WantState("removed", id, states.Removed)
		w.WantErr("disconnect", id.Disconnect(), unix.ENXIO)
		w.Must(id.Destroy())
	}
	w.Forget()
}
