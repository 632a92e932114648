package cmidtest

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// listenScenarios are rdma_listen(3).
var listenScenarios = scenarios{
	// manpages: listen-6
	"must be bound": func(w *world) {
		id := w.b.create(tcp)
		w.wantErr("listen", id.Listen(1), unix.EINVAL)
		w.wantState("afterwards", id, states.Idle)
	},
	// manpages: listen-8
	"on all devices": func(w *world) {
		w.listener(tcp, any4(0))
		for _, ip := range []netip.Addr{w.rig.Address, w.rig.Second, w.rig.Other} {
			if !ip.IsValid() {
				continue
			}
			if child := w.reaches(at(ip, w.port)); child.LocalAddr() != at(ip, w.port) || child.Device() == nil {
				w.Errorf("the request to %v came to %v of device %q", ip, child.LocalAddr(), child.Info().Device)
			}
		}
	},
	// manpages: listen-4, listen-7
	"on the bound address only": func(w *world) {
		w.listener(tcp, at(w.rig.Address, 0))
		w.reaches(at(w.rig.Address, w.port))
		other := w.rig.Second
		if !other.IsValid() { // every device has this one
			other = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		w.refuses(at(other, w.port), cmid.RejectConsumerDefined)
	},
	// manpages: listen-4
	"on loopback": func(w *world) {
		w.listener(tcp, cmid.MustAddr("127.0.0.1:0"))
		if !w.differs(LoopbackOnly) {
			w.reaches(at(w.rig.Address, w.port))
			return
		}
		if w.rig.Address.IsLoopback() && w.rig.Address == netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
			w.Fatal("the rig has no address that tells loopback apart")
		}
		w.refuses(at(w.rig.Address, w.port), cmid.RejectConsumerDefined)
	},
	"nobody listens": func(w *world) {
		id := w.listener(tcp, any4(0))
		w.must(id.Destroy())
		w.refuses(at(w.rig.Address, w.port), cmid.RejectInvalidServiceID)
	},
	"bound is not listening": func(w *world) {
		id := w.b.bound(tcp, any4(0))
		w.refuses(at(w.rig.Address, id.SrcPort()), cmid.RejectInvalidServiceID)
	},
	// manpages: bind_addr-1, listen-8
	"dual stack": func(w *world) {
		w.listener(tcp, cmid.MustAddr("[::]:0"))
		if w.differs(SeparateFamilies) {
			id := w.resolved(tcp, at(w.rig.Address, w.port))
			w.queues(id, 0)
			w.must(id.Connect(nil, nil))
			w.wantRejected(id, cmid.RejectConsumerDefined)
			return
		}
		child := w.reaches(at(w.rig.Address, w.port))
		if !child.LocalAddr().Addr().Is4() || !child.PeerAddr().Addr().Is4() {
			w.Errorf("%v <- %v: an IPv4 request has IPv4 addresses", child.LocalAddr(), child.PeerAddr())
		}
	},
	"backlog": func(w *world) {
		id := w.b.bound(tcp, any4(0))
		for _, c := range []struct{ ask, want int }{{5, 5}} {
			ev, ok := id.Do(&cmid.Listen{Backlog: c.ask}).(*cmid.Listening)
			if !ok || ev.Backlog != c.want {
				w.Errorf("backlog %d: %+v, want %d", c.ask, ev, c.want)
			}
		}
		id = w.b.bound(tcp, any4(0))
		if ev, ok := id.Do(&cmid.Listen{}).(*cmid.Listening); !ok || ev.Backlog != id.Limits().MaxBacklog {
			w.Errorf("backlog 0: %+v, want the device's maximum %d", ev, id.Limits().MaxBacklog)
		}
	},
	// manpages: listen-9
	"backlog of unread requests": backlogOfUnread,
	// manpages: listen-2
	"request": func(w *world) {
		l := w.listener(tcp, any4(0))
		c := w.resolved(tcp, at(w.rig.Address, w.port))
		w.queues(c, 0)
		w.must(c.Connect(nil, nil))
		child, ev := w.b.request()
		if ev.Listener != l.Handle() || child == l || child.State() != states.ConnectRequested {
			w.Errorf("%+v: want a new identifier of %d", ev, l.Handle())
		}
		if ev.Local != at(w.rig.Address, w.port) || ev.Peer != c.LocalAddr() {
			w.Errorf("%v <- %v, want %v <- %v", ev.Local, ev.Peer, at(w.rig.Address, w.port), c.LocalAddr())
		}
		if child.Device() == nil || l.State() != states.Listening {
			w.Error("the child has a device, and the listener goes on")
		}
	},
	"children outlive their listener": func(w *world) {
		c, _ := w.requested(0, nil, nil)
		w.must(c.listener.Destroy())
		w.queues(c.passive, 0)
		w.must(c.passive.Accept(nil, nil))
		next[*cmid.Established](w.a, c.active)
		next[*cmid.Established](w.b, c.passive)
	},
}

// backlogOfUnread: the backlog is of requests that the listener's loop has not fetched. While that
// stands still no more than these wait. Who finds no room is rejected on soft-iWARP; elsewhere what
// asks for it repeats that, and is told when the loop goes on.
func backlogOfUnread(w *world) {
	const backlog = 2
	clients := 5
	if w.differs(OverflowHarms) {
		clients = backlog
	}
	l := w.b.bound(tcp, any4(0))
	w.must(l.Listen(backlog))
	w.port = l.SrcPort()
	ids := make([]*cmid.ID, clients)
	for i := range ids {
		ids[i] = w.resolved(tcp, w.target())
		w.queues(ids[i], 0)
	}
	for _, id := range ids {
		w.must(id.Connect(nil, nil))
	}
	tcps := w.iwarp && w.differs(BacklogIsTCPs)
	turnedAway := 0
	if w.iwarp && !tcps {
		turnedAway = clients - backlog
	}
	room := backlog
	if tcps {
		room++
	}
	w.activeOnly()
	for deadline := time.Now().Add(w.realDeadline); len(w.a.heard) < turnedAway && time.Now().Before(deadline); {
		w.activeOnly()
		if w.rig.Clock != nil {
			w.rig.Clock.Advance(virtualStep)
		}
	}
	for range turnsPerStep {
		w.must(w.b.l.Turn())
	}
	if n := len(w.b.heard); n == 0 || n > room {
		w.Errorf("%d requests were waiting for the loop, want 1 to %d of %d", n, room, clients)
	}
	for range turnedAway {
		if ev := next[*cmid.Rejected](w.a, nil); ev.Status != -int32(unix.ECONNRESET) {
			w.Errorf("status %d of who finds no room, want %d", ev.Status, -int32(unix.ECONNRESET))
		}
	}
	for range clients - turnedAway {
		w.b.request()
	}
	w.quiet("each is told once")
}

// reaches connects to dst as far as the request.
func (w *world) reaches(dst cmid.Addr) *cmid.ID {
	w.Helper()
	id := w.resolved(tcp, dst)
	w.queues(id, 0)
	w.must(id.Connect(nil, nil))
	child, _ := w.b.request()
	return child
}

// refuses connects to dst, where nobody hears it. reason is InfiniBand's.
func (w *world) refuses(dst cmid.Addr, reason cmid.RejectReason) {
	w.Helper()
	id := w.resolved(tcp, dst)
	w.queues(id, 0)
	w.must(id.Connect(nil, nil))
	switch {
	case !w.iwarp:
	case w.differs(RefusedIsRejected):
		reason = cmid.RejectRefused
	default:
		w.wantErr("connect where nobody listens", next[*cmid.CommandFailed](w.a, id), unix.ECONNREFUSED)
		w.wantState("it may be tried again", id, states.RouteResolved)
		return
	}
	ev := next[*cmid.Rejected](w.a, id)
	if ev.Reason != reason {
		w.Errorf("reason %d, want %d", ev.Reason, reason)
	}
	w.wantErr("the event", ev, unix.ECONNREFUSED)
	w.wantState("afterwards", id, states.Failed)
	w.wantErr("connect again", id.Connect(nil, nil), unix.EINVAL)
}

// channel is rdma_create_event_channel(3) and rdma_get_cm_event(3).
func channel(t *testing.T, r *run) {
	t.Run("readable and EAGAIN", func(t *testing.T) {
		w := &world{T: t, r: r, rig: r.open(t)}
		ch, err := cmid.OpenChannel(w.rig.Passive)
		w.must(err)
		defer ch.Close()
		fd, err := ch.FD()
		w.must(err)
		drained := func() {
			t.Helper()
			if ev, _, err := ch.GetEvent(); err != unix.EAGAIN { //nolint:errorlint // exactly EAGAIN is promised
				t.Fatalf("GetEvent = %v, %v; want EAGAIN", ev, err)
			}
		}
		readable := func(timeout time.Duration) bool {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, int(timeout/time.Millisecond))
			for err == unix.EINTR { // Go's scheduler sends signals
				n, err = unix.Poll(fds, int(timeout/time.Millisecond))
			}
			w.must(err)
			return n > 0
		}
		drained()
		if readable(0) {
			t.Error("readable, and nothing has happened")
		}
		id, err := ch.CreateID(tcp)
		w.must(err)
		w.must(id.ResolveAddr(cmid.Addr{}, at(w.rig.Address, 1), time.Second))
		if !readable(10 * time.Second) {
			t.Fatal("not readable: the address was resolved")
		}
		ev, from, err := ch.GetEvent()
		w.must(err)
		if _, ok := ev.(*cmid.AddrResolved); !ok || from != id {
			t.Fatalf("got %T, want AddrResolved", ev)
		}
		drained()
		if readable(0) {
			t.Error("readable after the last event")
		}
	})
	r.each(t, scenarios{
		"create_id": func(w *world) {
			_, err := w.b.ch.CreateID(cmid.PortSpace(9))
			if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPROTONOSUPPORT) {
				w.Errorf("no such port space: %v", err)
			}
			if w.b.create(0).PortSpace() != cmid.PortSpaceTCP {
				w.Error("port space 0 is not TCP")
			}
		},
		"devices": func(w *world) {
			dev := w.b.bound(tcp, at(w.rig.Address, 0)).Device()
			for _, d := range w.b.ch.Devices() {
				if d.Name() == dev.Name() {
					return
				}
			}
			w.Errorf("%s is not among %d devices", dev.Name(), len(w.b.ch.Devices()))
		},
		"events in order": func(w *world) {
			w.listener(tcp, any4(0))
			var ids []*cmid.ID
			for range 3 {
				id := w.a.create(tcp)
				w.must(id.ResolveAddr(cmid.Addr{}, w.target(), time.Second))
				ids = append(ids, id)
			}
			for _, id := range ids {
				next[*cmid.AddrResolved](w.a, id)
			}
		},
	})
}
