package conformance

import (
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// attrScenarios test rdma_init_qp_attr(3): the values of the attributes. The oracle checks the
// masks and the errnos.
var attrScenarios = scenarios{
	"of a connection": func(w *world) {
		w.needAttr()
		_, id := w.Pair(tcp)
		var q *sides.Queues
		param := &cmid.ConnParam{QPNum: sides.FreshQPN(), ResponderResources: 3, InitiatorDepth: 5, RetryCount: 6, RNRRetryCount: 4}
		if w.IWARP {
			q = w.Queues(id, 0)
			param.QPNum = q.QP.Num()
		}
		w.Must(id.Connect(nil, param))
		child, _ := w.B.Request()
		init := w.initAttr(child, verbs.QPInit)
		if init.State != verbs.QPInit || init.Port == 0 || init.AccessFlags&remoteWrite == 0 || init.AccessFlags&remoteRead == 0 {
			w.Errorf("INIT: %+v, want the port, and what a peer may do", init)
		}
		if w.IWARP {
			return // the device does the rest
		}
		rtr := w.initAttr(child, verbs.QPRTR)
		if rtr.DestQPN != param.QPNum || rtr.MaxDestRDAtomic != 5 || rtr.PathMTU == 0 || !rtr.AH.Global {
			w.Errorf("RTR: %+v, want queue pair %d, 5 reads to serve, a path", rtr, param.QPNum)
		}
		if got, want := netip.AddrFrom16(rtr.AH.GRH.DGID).Unmap(), id.LocalAddr().Addr(); got != want {
			w.Errorf("RTR: the way leads to %v, want %v", got, want)
		}
		rts := w.initAttr(child, verbs.QPRTS)
		if rts.MaxRDAtomic != 3 || rts.RetryCount != 6 || rts.RNRRetry != 4 || rts.Timeout == 0 {
			w.Errorf("RTS: %+v, want 3 reads to ask, 6 and 4 retries, a timeout", rts)
		}
	},
	"of a datagram identifier": func(w *world) {
		w.needAttr()
		w.needDatagrams()
		attr := w.initAttr(w.B.Bound(udp, w.deviceAddr()), verbs.QPInit)
		if attr.QKey != globalQKey || attr.Port == 0 {
			w.Errorf("%+v, want the queue key %#x and a port", attr, globalQKey)
		}
	},
	"without a device": func(w *world) {
		_, _, err := w.B.Bound(tcp, sides.Any4(0)).InitQPAttr(verbs.QPInit)
		w.WantErr("init_qp_attr", err, unix.EINVAL)
	},
}

func (w *world) needAttr() {
	w.Helper()
	if w.hasDeviation(NoQPAttr) {
		_, _, err := w.B.Bound(tcp, w.deviceAddr()).InitQPAttr(verbs.QPInit)
		w.WantErr("init_qp_attr", err, unix.EOPNOTSUPP)
		w.Skip("the device drives queue pairs alone")
	}
}

func (w *world) initAttr(id *cmid.ID, s verbs.QPState) verbs.QPAttr {
	w.Helper()
	attr, _, err := id.InitQPAttr(s)
	w.Must(err)
	return attr
}

// eceScenarios test rdma_set_local_ece(3) and rdma_get_remote_ece(3).
var eceScenarios = scenarios{
	"both ways": func(w *world) {
		ours, theirs := cmid.ECE{VendorID: 0x2c9, AttrMod: 0x11}, cmid.ECE{VendorID: 0x2c9, AttrMod: 0x10}
		c, ev := w.Requested(0, nil, &cmid.ConnParam{ECE: ours})
		w.Queues(c.Passive, 0)
		w.Must(c.Passive.Accept(nil, &cmid.ConnParam{ECE: theirs}))
		est := sides.Next[*cmid.Established](w.A, c.Active)
		if w.IWARP { // its messages have no room for them
			ours, theirs = cmid.ECE{}, cmid.ECE{}
		}
		if ev.Param.ECE != ours {
			w.Errorf("the request has %+v, want %+v", ev.Param.ECE, ours)
		}
		if est.Param.ECE != theirs {
			w.Errorf("the reply has %+v, want %+v", est.Param.ECE, theirs)
		}
	},
	"rejected": func(w *world) {
		c, _ := w.Requested(0, nil, &cmid.ConnParam{ECE: cmid.ECE{VendorID: 1}})
		w.Must(doCommand(c.Passive, &cmid.Reject{VendorECE: true}))
		w.WantRejected(c.Active, cmid.RejectVendorOption)
	},
}

// pathScenarios test rdma_set_option(3) with RDMA_OPTION_IB_PATH, and the queries for paths and
// GIDs.
var pathScenarios = scenarios{
	"in place of resolve_route": func(w *world) {
		w.Listener(tcp, sides.Any4(0))
		paths := somePath()
		if !w.IWARP {
			paths = sides.Got(w.Resolved(tcp, w.Target()).QueryPath())(w)
			if len(paths) != cmid.PathLen || binary.NativeEndian.Uint32(paths) != pathUsable {
				w.Fatalf("path records %x, want one that can be used", paths)
			}
		}
		id := w.AddrResolved(tcp, w.Target())
		w.Must(id.SetIBPath(paths))
		sides.Next[*cmid.RouteResolved](w.A, id)
		w.WantState("then", id, states.RouteResolved)
		w.Queues(id, 0)
		w.Must(id.Connect(nil, nil))
		child, _ := w.B.Request()
		w.Accept(&sides.Link{Active: id, Passive: child}, 0)
	},
	"records that will not do": func(w *world) {
		id := w.AddrResolved(tcp, w.Target())
		for why, paths := range map[string][]byte{
			"none": nil, "half a record": somePath()[:cmid.PathLen-1], "none that can be used": make([]byte, 2*cmid.PathLen),
		} {
			w.WantErr(why, id.SetIBPath(paths), unix.EINVAL)
			w.WantState(why, id, states.AddrResolved)
		}
		w.Must(id.ResolveRoute(time.Second))
		sides.Next[*cmid.RouteResolved](w.A, id)
	},
	"no path before the route": func(w *world) {
		if paths, err := w.AddrResolved(tcp, w.Target()).QueryPath(); err != nil || len(paths) != 0 {
			w.Errorf("path records %x, %v, want none", paths, err)
		}
	},
	"gids": func(w *world) {
		w.skipIf(w.IWARP, "iWARP has no GIDs that mean anything")
		_, id := w.Pair(tcp)
		local, peer, err := id.QueryGID()
		w.Must(err)
		for _, a := range []struct {
			is, want cmid.Addr
		}{{local, id.LocalAddr()}, {peer, id.PeerAddr()}} {
			if a.is.IB == nil || netip.AddrFrom16(a.is.IB.GID).Unmap() != a.want.Addr() || a.is.Port() != a.want.Port() ||
				a.is.IB.SID>>16 != uint64(tcp) {
				w.Errorf("%+v, want %v in InfiniBand's terms", a.is.IB, a.want)
			}
		}
	},
}.where((*world).needPaths).and(scenarios{
	"no service can be resolved": func(w *world) { // only a subnet administrator knows services
		id := w.B.Bound(tcp, w.deviceAddr())
		w.WantErrIn("resolve_addrinfo", id, id.ResolveIBService(1, ""), unix.EOPNOTSUPP, states.Bound)
	},
})

func (w *world) needPaths() bool {
	w.Helper()
	if !w.hasDeviation(NoPath) {
		return true
	}
	id := w.AddrResolved(tcp, w.Target())
	w.WantErrIn("set_option", id, id.SetIBPath(somePath()), unix.EOPNOTSUPP, states.AddrResolved)
	w.WantErr("query path", sides.Err(id.QueryPath()), unix.EOPNOTSUPP)
	_, _, err := id.QueryGID()
	w.WantErr("query gid", err, unix.EOPNOTSUPP)
	w.Skip("no path records and no GIDs here")
	return false
}

// userEventScenarios test rdma_write_cm_event(3).
var userEventScenarios = scenarios{
	"in their order": func(w *world) {
		id := w.Resolved(tcp, w.Target())
		for _, arg := range []uint64{1, 1<<64 - 1} {
			w.Must(id.WriteCMEvent(arg))
		}
		for _, arg := range []uint64{1, 1<<64 - 1} {
			if ev := sides.Next[*cmid.User](w.A, id); ev.Arg != arg || ev.Status != 0 {
				w.Errorf("%+v, want %#x", ev, arg)
			}
		}
		w.WantState("nothing has changed", id, states.RouteResolved)
	},
	"answer nothing": func(w *world) {
		id := w.A.Create(tcp)
		w.Must(id.WriteCMEvent(7))
		w.Must(id.ResolveAddr(cmid.Addr{}, w.Target(), time.Second))
		if h := w.A.First(); h.Answers != nil || h.Event.Kind() != states.KindUser {
			w.Errorf("%v answers %v", h.Event.Kind(), h.Answers)
		}
		if h := w.A.First(); h.Answers == nil || h.Event.Kind() != states.KindAddrResolved {
			w.Errorf("%v answers %v, want AddrResolved and its command", h.Event.Kind(), h.Answers)
		}
	},
	"not of a destroyed identifier": func(w *world) {
		id := w.A.Create(tcp)
		w.Must(id.WriteCMEvent(7))
		w.Must(id.Destroy())
		w.WantQuiet("after destroy")
	},
}.where((*world).needUserEvents)

func (w *world) needUserEvents() bool {
	w.Helper()
	if w.lacksCall(states.OpWriteCMEvent) {
		id := w.A.Create(tcp)
		w.WantErr("write_cm_event", id.WriteCMEvent(1), unix.EOPNOTSUPP)
		w.Skip("no user events here")
	}
	return true
}
