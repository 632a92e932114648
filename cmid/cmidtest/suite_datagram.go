package cmidtest

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

const udp = cmid.PortSpaceUDP

// datagramsScenarios are identifiers of RDMA_PS_UDP: service lookups and multicast.
var datagramsScenarios = scenarios{
	// manpages: listen-3
	"service lookup": func(w *world) {
		w.needDatagrams()
		l := w.listener(udp, any4(0))
		id := w.resolved(udp, w.target())
		w.must(id.Connect([]byte("who"), nil))
		child, ev := w.b.request()
		if ev.Listener != l.Handle() || string(ev.PrivateData[:3]) != "who" || len(ev.PrivateData) != udConnect {
			w.Errorf("%+v", ev)
		}
		w.must(child.Accept([]byte("me"), &cmid.ConnParam{QPNum: 42}))
		est := next[*cmid.Established](w.a, id)
		if est.Param.QPNum != 42 || est.Param.QKey == 0 || string(est.PrivateData[:2]) != "me" {
			w.Errorf("%+v: want queue pair 42 and its key", est)
		}
		w.wantState("resolved", id, states.Connected)
		w.wantState("accepted", child, states.Connected)
		w.quiet("the passive side is told nothing")
		w.wantErr("a datagram identifier has no connection", id.Disconnect(), unix.EINVAL)
	},
	"lookup rejected": func(w *world) {
		w.needDatagrams()
		w.listener(udp, any4(0))
		id := w.resolved(udp, w.target())
		w.must(id.Connect(nil, nil))
		child, _ := w.b.request()
		w.must(child.Reject(nil))
		if ev := next[*cmid.Unreachable](w.a, id); ev.Status != 2 {
			w.Errorf("status %d, want 2", ev.Status)
		}
	},
	"nobody listens": func(w *world) {
		w.needDatagrams()
		id := w.resolved(udp, at(w.rig.Address, 7471))
		w.must(id.Connect(nil, nil))
		if ev := next[*cmid.Unreachable](w.a, id); ev.Status != 1 {
			w.Errorf("status %d, want 1", ev.Status)
		}
		w.wantState("and is over", id, states.Failed)
	},
	"accept over the limit rejects": func(w *world) {
		w.needDatagrams()
		w.listener(udp, any4(0))
		id := w.resolved(udp, w.target())
		w.must(id.Connect(nil, nil))
		child, _ := w.b.request()
		w.wantErr("accept", child.Accept(make([]byte, 137), nil), unix.EINVAL)
		if ev := next[*cmid.Unreachable](w.a, id); ev.Status != 2 {
			w.Errorf("status %d, want 2", ev.Status)
		}
	},
	"port spaces are independent": func(w *world) {
		w.needDatagrams()
		id := w.b.bound(tcp, any4(0))
		w.must(w.b.create(udp).BindAddr(any4(id.SrcPort())))
	},
	"multicast": func(w *world) {
		w.needDatagrams()
		group := cmid.MustAddr("239.1.2.3:0")
		id := w.b.bound(udp, at(w.rig.Address, 0))
		w.must(id.JoinMulticast(group))
		if ev := next[*cmid.MulticastJoin](w.b, id); ev.Addr != group || ev.UD.QPN != 0xffffff || ev.UD.QKey == 0 {
			w.Errorf("%+v", ev)
		}
		w.must(id.LeaveMulticast(group))
		w.wantErr("leave again", id.LeaveMulticast(group), unix.EADDRNOTAVAIL)
		w.wantErr("join nothing", id.JoinMulticast(any4(0)), unix.EINVAL)
		w.wantErr("without a device", w.b.bound(udp, any4(0)).JoinMulticast(group), unix.EINVAL)
	},
	"queue key": func(w *world) {
		w.needDatagrams()
		w.listener(udp, any4(0))
		id := w.resolved(udp, w.target())
		w.must(id.Connect(nil, &cmid.ConnParam{QKey: 7})) // only AF_IB identifiers have keys of their own
		child, _ := w.b.request()
		w.must(child.Accept(nil, &cmid.ConnParam{QPNum: 1, QKey: 8}))
		if est := next[*cmid.Established](w.a, id); est.UD.QKey != globalQKey {
			w.Errorf("queue key %#x, want %#x", est.UD.QKey, globalQKey)
		}
	},
	"no answer": func(w *world) {
		w.needDatagrams()
		if w.rig.Clock == nil {
			w.Skip("takes as long as the device's clocks")
		}
		w.listener(udp, any4(0))
		id := w.resolved(udp, w.target())
		begin := w.a.l.Now()
		w.must(id.Connect(nil, nil))
		w.b.request()
		w.wantErr("connect", next[*cmid.Unreachable](w.a, id), unix.ETIMEDOUT)
		if d := w.a.l.Now().Sub(begin); d < 30*time.Second {
			w.Errorf("given up after %v", d)
		}
	},
}

func (w *world) needDatagrams() {
	w.Helper()
	if !w.rig.Datagrams || w.iwarp {
		w.Skip("no datagram identifiers here")
	}
}
