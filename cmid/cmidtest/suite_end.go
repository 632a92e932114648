package cmidtest

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// disconnectScenarios are rdma_disconnect(3).
var disconnectScenarios = scenarios{
	"active side":  func(w *world) { c := w.connected(2); w.disconnects(w.a, c.active, w.b, c.passive) },
	"passive side": func(w *world) { c := w.connected(2); w.disconnects(w.b, c.passive, w.a, c.active) },
	"both at once": func(w *world) {
		c := w.connected(0)
		w.must(c.active.Disconnect())
		w.must(c.passive.Disconnect())
		next[*cmid.Disconnected](w.a, c.active)
		next[*cmid.Disconnected](w.b, c.passive)
		w.wantState("then", c.active, states.Timewait)
		w.wantState("then", c.passive, states.Timewait)
	},
	"twice": func(w *world) {
		c := w.connected(0)
		w.must(c.active.Disconnect())
		w.must(c.active.Disconnect())
		next[*cmid.Disconnected](w.b, c.passive)
		if !w.iwarp {
			w.must(c.passive.Disconnect())
		}
		next[*cmid.Disconnected](w.a, c.active)
		w.must(c.active.Disconnect())
	},
	"before connected": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.wantErr("connecting", c.active.Disconnect(), unix.EINVAL)
		w.wantErr("requested", c.passive.Disconnect(), unix.EINVAL)
	},
	"peer never answers": func(w *world) {
		if w.iwarp || w.rig.Clock == nil {
			w.Skip("InfiniBand asks the peer, for 70 s and more")
		}
		c := w.connected(0)
		w.must(c.active.Disconnect())
		next[*cmid.Disconnected](w.b, c.passive)
		ev := next[*cmid.Disconnected](w.a, c.active)
		w.wantErr("in the end", ev.Err, unix.ETIMEDOUT)
		next[*cmid.TimewaitExit](w.a, c.active)
	},
}

// disconnects has one side disconnect, with the flavour's choreography.
func (w *world) disconnects(e *end, id *cmid.ID, other *end, peer *cmid.ID) {
	w.Helper()
	w.must(id.Disconnect())
	if ev := next[*cmid.Disconnected](other, peer); ev.Err != nil {
		w.Errorf("an orderly end has error %v", ev.Err)
	}
	if w.iwarp {
		next[*cmid.Disconnected](e, id)
		w.wantState("closed", id, states.Timewait)
		w.wantState("closed", peer, states.Timewait)
		w.quiet("iWARP has no timewait")
		return
	}
	w.wantState("owes the answer", peer, states.PeerDisconnected)
	w.settle()
	if len(e.heard) > 0 {
		w.Errorf("told %v before the peer has answered", e.told())
	}
	w.must(peer.Disconnect())
	w.wantState("answered", peer, states.Timewait)
	if ev := next[*cmid.Disconnected](e, id); ev.Err != nil {
		w.Errorf("an orderly end has error %v", ev.Err)
	}
	next[*cmid.TimewaitExit](e, id)
	next[*cmid.TimewaitExit](other, peer)
}

// destroyScenarios are rdma_destroy_id(3): legal in every state, final, and told to the peer as the kernel tells it.
var destroyScenarios = scenarios{
	"while connected": func(w *world) {
		c := w.connected(2)
		w.must(c.active.Destroy())
		next[*cmid.Disconnected](w.b, c.passive)
		if !w.iwarp {
			w.must(c.passive.Disconnect())
		}
		w.settle()
		if len(w.a.heard) > 0 {
			w.Errorf("a destroyed identifier was told %v", w.a.told())
		}
		if n := len(c.aq.of(verbs.Recv)); n > 2 {
			w.Errorf("%d completions of 2 receives", n)
		}
	},
	"owing the answer to a disconnect": func(w *world) {
		c := w.connected(0)
		w.must(c.active.Disconnect())
		next[*cmid.Disconnected](w.b, c.passive)
		begin := w.a.l.Now()
		w.must(c.passive.Destroy())
		next[*cmid.Disconnected](w.a, c.active)
		if d := w.a.l.Now().Sub(begin); d > time.Second {
			w.Errorf("the peer waited %v for the answer: destroy_id gives it", d)
		}
	},
	"while resolving": func(w *world) {
		w.listener(tcp, any4(0))
		id := w.a.create(tcp)
		w.must(id.ResolveAddr(cmid.Addr{}, w.target(), 0))
		w.must(id.Destroy())
		w.quiet("after destroy")
	},
	"while connecting": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.must(c.active.Destroy())
		w.quiet("after destroy")
	},
	"before the request arrives": func(w *world) {
		w.listener(tcp, any4(0))
		id := w.resolved(tcp, w.target())
		w.queues(id, 0)
		w.must(id.Connect(nil, nil))
		w.must(id.Destroy())
		w.settle()
		if len(w.a.heard) > 0 {
			w.Errorf("a destroyed identifier was told %v", w.a.told())
		}
	},
	"listener with an unanswered request": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.must(c.listener.Destroy())
		w.must(c.passive.Reject(nil))
		w.wantRejected(c.active, cmid.RejectConsumerDefined)
	},
	"twice": func(w *world) {
		id := w.a.create(tcp)
		w.must(id.Destroy())
		w.wantErr("again", id.Destroy(), unix.ENOENT)
		w.wantErr("anything", id.BindAddr(any4(0)), unix.ENOENT)
		if w.a.ch.ID(id.Handle()) != nil {
			w.Error("still there")
		}
	},
	"channel closed while connected": func(w *world) {
		c := w.connected(0)
		w.must(w.a.ch.Close())
		w.a.heard = nil
		next[*cmid.Disconnected](w.b, c.passive)
		if len(w.a.heard) > 0 {
			w.Errorf("a closed channel told %v", w.a.told())
		}
	},
}

// deviceRemoval is RDMA_CM_EVENT_DEVICE_REMOVAL.
func deviceRemoval(t *testing.T, r *run) {
	t.Run("removal", func(t *testing.T) {
		w := r.world(t)
		if w.rig.RemoveDevice == nil {
			t.Skip("this driver's device cannot go")
		}
		wild := w.listener(tcp, any4(0))
		port := w.port
		specific := w.listener(tcp, at(w.rig.Address, 0))
		idle := w.b.create(tcp)
		id := w.resolved(tcp, at(w.rig.Address, port))
		w.queues(id, 1)
		w.must(id.Connect(nil, nil))
		child, _ := w.b.request()
		bq := w.queues(child, 2)
		w.must(child.Accept(nil, nil))
		next[*cmid.Established](w.a, id)
		next[*cmid.Established](w.b, child)

		one := id.Info().Device == child.Info().Device
		w.rig.RemoveDevice()
		if one {
			w.bothRemoved(id, specific, child)
			w.wantErr("its address has no device", idle.BindAddr(at(w.rig.Address, 0)), unix.ENODEV)
			w.wantFlushed(bq)
			return
		}
		for _, gone := range []*cmid.ID{specific, child} {
			if ev := next[*cmid.DeviceRemoval](w.b, gone); ev.Device == "" {
				t.Error("the event names no device")
			}
			w.wantState("removed", gone, states.Removed)
			w.wantErr("disconnect", gone.Disconnect(), unix.ENXIO)
		}
		next[*cmid.Disconnected](w.a, id)
		w.wantState("a wildcard has no device to lose", wild, states.Listening)
		w.wantState("nor has a new identifier", idle, states.Idle)
		w.wantErr("its address is gone", idle.BindAddr(at(w.rig.Address, 0)), unix.EADDRNOTAVAIL)
		w.wantFlushed(bq)
		w.must(child.Destroy())
		w.must(id.Destroy())
	})
}

// bothRemoved waits until identifiers of both sides have heard that the device they share has gone, once each. Disconnected may come in
// between.
func (w *world) bothRemoved(ids ...*cmid.ID) {
	w.Helper()
	told := func(id *cmid.ID) (n int) {
		for _, h := range append(slices.Clone(w.a.heard), w.b.heard...) {
			if _, ok := h.ev.(*cmid.DeviceRemoval); ok && h.id == id {
				n++
			}
		}
		return n
	}
	for _, id := range ids {
		w.until("DeviceRemoval", func() bool { return told(id) > 0 })
	}
	w.settle()
	for _, id := range ids {
		if n := told(id); n != 1 {
			w.Errorf("%d was told %d times that its device has gone", id.Handle(), n)
		}
		w.wantState("removed", id, states.Removed)
		w.wantErr("disconnect", id.Disconnect(), unix.ENXIO)
		w.must(id.Destroy())
	}
	w.forget()
}

// wantFlushed holds that both receives that were posted have come back.
func (w *world) wantFlushed(q *rings) {
	w.Helper()
	if wc := q.of(verbs.Recv); len(wc) != 2 || wc[0].Status != verbs.StatusFlushed {
		w.Errorf("receives %+v, want both flushed", wc)
	}
}
