package conformance

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
)

// listenScenarios test rdma_listen(3).
var listenScenarios = scenarios{
	// manpages: listen-6
	"must be bound": func(w *world) {
		id := w.B.Create(tcp)
		w.WantErrIn("listen", id, id.Listen(1), unix.EINVAL, states.Idle)
	},
	// manpages: listen-8
	"on all devices": func(w *world) {
		w.Listener(tcp, sides.Any4(0))
		for _, ip := range []netip.Addr{w.rig.Address, w.rig.Second, w.rig.Other} {
			if !ip.IsValid() {
				continue
			}
			if child := w.Reaches(sides.At(ip, w.Port)); child.LocalAddr() != sides.At(ip, w.Port) || child.Device() == nil {
				w.Errorf("the request to %v came to %v of device %q", ip, child.LocalAddr(), child.Info().Device)
			}
		}
	},
	// manpages: listen-4, listen-7
	"on the bound address only": func(w *world) {
		w.Listener(tcp, w.deviceAddr())
		w.Reaches(w.Target())
		other := w.rig.Second
		if !other.IsValid() { // every device has this address
			other = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		w.requireReject(sides.At(other, w.Port), cmid.RejectConsumerDefined)
	},
	// manpages: listen-4
	"on loopback": func(w *world) {
		w.Listener(tcp, cmid.MustAddr("127.0.0.1:0"))
		if !w.hasDeviation(LoopbackOnly) {
			w.Reaches(w.Target())
			return
		}
		if w.rig.Address.IsLoopback() && w.rig.Address == netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
			w.Fatal("the rig has no address by which loopback can be distinguished")
		}
		w.requireReject(w.Target(), cmid.RejectConsumerDefined)
	},
	"nobody listens": func(w *world) {
		id := w.Listener(tcp, sides.Any4(0))
		w.Must(id.Destroy())
		w.requireReject(w.Target(), cmid.RejectInvalidServiceID)
	},
	"bound is not listening": func(w *world) {
		id := w.B.Bound(tcp, sides.Any4(0))
		w.requireReject(sides.At(w.rig.Address, id.SrcPort()), cmid.RejectInvalidServiceID)
	},
	// manpages: bind_addr-1, listen-8
	"dual stack": func(w *world) {
		w.Listener(tcp, cmid.MustAddr("[::]:0"))
		if w.hasDeviation(SeparateFamilies) {
			w.WantRejected(w.Connecting(w.Target()), cmid.RejectConsumerDefined)
			return
		}
		child := w.Reaches(w.Target())
		if !child.LocalAddr().Addr().Is4() || !child.PeerAddr().Addr().Is4() {
			w.Errorf("%v <- %v: an IPv4 request has IPv4 addresses", child.LocalAddr(), child.PeerAddr())
		}
	},
	"backlog": func(w *world) {
		id := w.B.Bound(tcp, sides.Any4(0))
		for ask, want := range map[int]int{5: 5, 0: id.Limits().MaxBacklog} {
			w.B.Bound(tcp, sides.Any4(0)).Do(&cmid.Listen{Backlog: ask}, func(ev cmid.Event) {
				if l, ok := ev.(*cmid.Listening); !ok || l.Backlog != want {
					w.Errorf("backlog %d: %+v, want %d (0 is the device's maximum)", ask, ev, want)
				}
			})
		}
	},
	// manpages: listen-9
	"backlog of unread requests": backlogOfUnread,
	// manpages: listen-2
	"request": func(w *world) {
		l := w.Listener(tcp, sides.Any4(0))
		c := w.Connecting(w.Target())
		child, ev := w.B.Request()
		if ev.Listener != l.Handle() || child == l || child.State() != states.ConnectRequested {
			w.Errorf("%+v: want a new identifier of %d", ev, l.Handle())
		}
		if ev.Local != w.Target() || ev.Peer != c.LocalAddr() {
			w.Errorf("%v <- %v, want %v <- %v", ev.Local, ev.Peer, w.Target(), c.LocalAddr())
		}
		if child.Device() == nil || l.State() != states.Listening {
			w.Error("the child has a device, and the listener goes on")
		}
	},
	"children outlive their listener": func(w *world) {
		c, _ := w.Requested(0, nil, nil)
		w.Must(c.Listener.Destroy())
		w.Accept(c, 0)
	},
}

// backlogOfUnread checks that the backlog bounds the requests that the listener's loop has not
// fetched. While the loop does not run, at most the backlog waits. On soft-iWARP a request that
// finds no room is rejected. On other devices it is repeated, and delivered when the loop goes on.
func backlogOfUnread(w *world) {
	const backlog = 2
	clients := 5
	if w.hasDeviation(OverflowHarms) {
		clients = backlog
	}
	l := w.B.Bound(tcp, sides.Any4(0))
	w.Must(l.Listen(backlog))
	w.Port = l.SrcPort()
	w.connectAll(clients)
	room, turnedAway := backlog, 0
	switch {
	case w.IWARP && w.hasDeviation(BacklogIsTCPs):
		room++
	case w.IWARP:
		turnedAway = clients - backlog
	}
	while := func(cond func() bool, turn func()) {
		for deadline := time.Now().Add(w.Patience); cond() && time.Now().Before(deadline); {
			turn()
			if w.Clock != nil {
				w.Clock.Advance(sides.VirtualStep)
			}
		}
	}
	w.ActiveOnly()
	while(func() bool { return len(w.A.Heard) < turnedAway }, w.ActiveOnly)
	// Each request that is read makes room for another one, which may arrive again. So this reads
	// only the necessary requests.
	while(func() bool { return len(w.B.Heard) == 0 }, func() { w.Must(w.B.Loop.Turn()) })
	if n := len(w.B.Heard); n == 0 || n > room {
		w.Errorf("%d requests were waiting for the loop, want 1 to %d of %d", n, room, clients)
	}
	for range turnedAway {
		if ev := sides.Next[*cmid.Rejected](w.A, nil); ev.Status != -int32(unix.ECONNRESET) {
			w.Errorf("status %d of who finds no room, want %d", ev.Status, -int32(unix.ECONNRESET))
		}
	}
	for range clients - turnedAway {
		w.B.Request()
	}
	w.WantQuiet("each is notified once")
}

// requireReject connects to dst, which has no listener. reason is that of InfiniBand's reject.
func (w *world) requireReject(dst cmid.Addr, reason cmid.RejectReason) {
	w.Helper()
	id := w.Connecting(dst)
	switch {
	case !w.IWARP:
	case w.hasDeviation(RefusedIsRejected):
		reason = cmid.RejectRefused
	default:
		w.WantErrIn("connect where nobody listens, which may be tried again", id, sides.Next[*cmid.CommandFailed](w.A, id), unix.ECONNREFUSED, states.RouteResolved)
		return
	}
	ev := sides.Next[*cmid.Rejected](w.A, id)
	if ev.Reason != reason {
		w.Errorf("reason %d, want %d", ev.Reason, reason)
	}
	w.WantErrIn("the event", id, ev, unix.ECONNREFUSED, states.Failed)
	w.WantErr("connect again", id.Connect(nil, nil), unix.EINVAL)
}

// testChannel tests rdma_create_event_channel(3) and rdma_get_cm_event(3).
func testChannel(t *testing.T, r *run) {
	t.Run("readable and EAGAIN", func(t *testing.T) { pollsChannel(t, r.open(t)) })
	channelScenarios.runAll(t, r)
}

// pollsChannel waits for a channel's events with poll(2). Its loop does not run.
func pollsChannel(t *testing.T, rig Rig) {
	ch := sides.Got(cmid.OpenChannel(rig.Passive))(t)
	defer ch.Close()
	fd := sides.Got(ch.FD())(t)
	drained := func() {
		t.Helper()
		if ev, _, err := ch.GetEvent(); err != unix.EAGAIN { //nolint:errorlint // exactly EAGAIN is promised
			t.Fatalf("GetEvent = %v, %v; want EAGAIN", ev, err)
		}
	}
	readable := func(timeout time.Duration) bool {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(timeout/time.Millisecond))
			if !errors.Is(err, unix.EINTR) { // Go's scheduler sends signals
				return sides.Got(n, err)(t) > 0
			}
		}
	}
	drained()
	if readable(0) {
		t.Error("readable, and nothing has happened")
	}
	id := sides.Got(ch.CreateID(tcp))(t)
	if err := id.ResolveAddr(cmid.Addr{}, sides.At(rig.Address, 1), time.Second); err != nil {
		t.Fatal(err)
	}
	if !readable(10 * time.Second) {
		t.Fatal("not readable: the address was resolved")
	}
	ev, from, err := ch.GetEvent()
	if _, ok := ev.(*cmid.AddrResolved); !ok || from != id || err != nil {
		t.Fatalf("got %T, %v, want AddrResolved", ev, err)
	}
	drained()
	if readable(0) {
		t.Error("readable after the last event")
	}
}

var channelScenarios = scenarios{
	"create_id": func(w *world) {
		_, err := w.B.Ch.CreateID(cmid.PortSpace(9))
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPROTONOSUPPORT) {
			w.Errorf("no such port space: %v", err)
		}
		if w.B.Create(0).PortSpace() != cmid.PortSpaceTCP {
			w.Error("port space 0 is not TCP")
		}
	},
	"devices": func(w *world) {
		dev := w.B.Bound(tcp, w.deviceAddr()).Device()
		for _, d := range w.B.Ch.Devices() {
			if d.Name() == dev.Name() {
				return
			}
		}
		w.Errorf("%s is not among %d devices", dev.Name(), len(w.B.Ch.Devices()))
	},
	"events in order": func(w *world) {
		w.Listener(tcp, sides.Any4(0))
		var ids []*cmid.ID
		for range 3 {
			id := w.Resolving(tcp, w.Target())
			ids = append(ids, id)
		}
		for _, id := range ids {
			sides.Next[*cmid.AddrResolved](w.A, id)
		}
	},
}
