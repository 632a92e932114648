package conformance

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
)

// datagramsScenarios test identifiers of RDMA_PS_UDP: service lookups and multicast.
var datagramsScenarios = scenarios{
	// manpages: listen-3
	"service lookup": func(w *world) {
		l, id, child, ev := w.lookUpService([]byte("who"), nil)
		if ev.Listener != l.Handle() || string(ev.PrivateData[:3]) != "who" || len(ev.PrivateData) != udConnect {
			w.Errorf("%+v", ev)
		}
		w.Must(child.Accept([]byte("me"), &cmid.ConnParam{QPNum: 42}))
		est := sides.Next[*cmid.Established](w.A, id)
		if est.Param.QPNum != 42 || est.Param.QKey == 0 || string(est.PrivateData[:2]) != "me" {
			w.Errorf("%+v: want queue pair 42 and its key", est)
		}
		w.WantState("resolved", id, states.Connected)
		w.WantState("accepted", child, states.Connected)
		w.WantQuiet("the passive side has no event")
		w.WantErr("a datagram identifier has no connection", id.Disconnect(), unix.EINVAL)
	},
	"lookup rejected": func(w *world) {
		_, id, child, _ := w.lookUpService(nil, nil)
		w.Must(child.Reject(nil))
		w.wantUnreachable(id, 2)
	},
	"nobody listens": func(w *world) {
		id := w.Resolved(udp, sides.At(w.rig.Address, 7471))
		w.Must(id.Connect(nil, nil))
		w.wantUnreachable(id, 1)
	},
	"accept over the limit rejects": func(w *world) {
		_, id, child, _ := w.lookUpService(nil, nil)
		w.WantErr("accept", child.Accept(make([]byte, 137), nil), unix.EINVAL)
		w.wantUnreachable(id, 2)
	},
	"port spaces are independent": func(w *world) {
		id := w.B.Bound(tcp, sides.Any4(0))
		w.Must(w.B.Create(udp).BindAddr(sides.Any4(id.SrcPort())))
	},
	"multicast": func(w *world) {
		group := cmid.MustAddr("239.1.2.3:0")
		id := w.B.Bound(udp, w.deviceAddr())
		w.Must(id.JoinMulticast(group))
		if ev := sides.Next[*cmid.MulticastJoin](w.B, id); ev.Addr != group || ev.UD.QPN != 0xffffff || ev.UD.QKey == 0 {
			w.Errorf("%+v", ev)
		}
		w.Must(id.LeaveMulticast(group))
		w.WantErr("leave again", id.LeaveMulticast(group), unix.EADDRNOTAVAIL)
		w.WantErr("join nothing", id.JoinMulticast(sides.Any4(0)), unix.EINVAL)
		w.WantErr("without a device", w.B.Bound(udp, sides.Any4(0)).JoinMulticast(group), unix.EINVAL)
	},
	"queue key": func(w *world) {
		// Only AF_IB identifiers have private keys.
		_, id, child, _ := w.lookUpService(nil, &cmid.ConnParam{QKey: 7})
		w.Must(child.Accept(nil, &cmid.ConnParam{QPNum: 1, QKey: 8}))
		if est := sides.Next[*cmid.Established](w.A, id); est.UD.QKey != globalQKey {
			w.Errorf("queue key %#x, want %#x", est.UD.QKey, globalQKey)
		}
	},
	"no answer": func(w *world) {
		w.skipIf(w.Clock == nil, "takes as long as the device's clocks")
		_, id, _, _ := w.lookUpService(nil, nil)
		begin := w.A.Loop.Now()
		w.WantErr("connect", sides.Next[*cmid.Unreachable](w.A, id), unix.ETIMEDOUT)
		if d := w.A.Loop.Now().Sub(begin); d < 30*time.Second {
			w.Errorf("given up after %v", d)
		}
	},
}.where((*world).needDatagrams)

func (w *world) needDatagrams() bool {
	w.Helper()
	w.skipIf(!w.rig.Datagrams || w.IWARP, "no datagram identifiers here")
	return true
}

// lookUpService looks up a service, and returns when the request has arrived.
func (w *world) lookUpService(private []byte, param *cmid.ConnParam) (l, id, child *cmid.ID, ev *cmid.ConnectRequest) {
	w.Helper()
	l, id = w.Pair(udp)
	w.Must(id.Connect(private, param))
	child, ev = w.B.Request()
	return l, id, child, ev
}

// wantUnreachable waits for the end of a lookup, with InfiniBand's SIDR status.
func (w *world) wantUnreachable(id *cmid.ID, status int32) {
	w.Helper()
	if ev := sides.Next[*cmid.Unreachable](w.A, id); ev.Status != status {
		w.Errorf("status %d, want %d", ev.Status, status)
	}
	w.WantState("and is over", id, states.Failed)
}
