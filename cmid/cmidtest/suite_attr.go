package cmidtest

import (
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// attrScenarios are rdma_init_qp_attr(3): what is in the attributes. The oracle has the masks and the errnos.
var attrScenarios = scenarios{
	"of a connection": func(w *world) {
		w.needAttr()
		w.listener(tcp, any4(0))
		id := w.resolved(tcp, w.target())
		var q *rings
		param := &cmid.ConnParam{QPNum: freshQPN(), ResponderResources: 3, InitiatorDepth: 5, RetryCount: 6, RNRRetryCount: 4}
		if w.iwarp {
			q = w.queues(id, 0)
			param.QPNum = q.qp.Num()
		}
		w.must(id.Connect(nil, param))
		child, _ := w.b.request()
		init := w.attr(child, verbs.QPInit)
		if init.State != verbs.QPInit || init.Port == 0 || init.AccessFlags&remoteWrite == 0 || init.AccessFlags&remoteRead == 0 {
			w.Errorf("INIT: %+v, want the port, and what a peer may do", init)
		}
		if w.iwarp {
			return // the device does the rest
		}
		rtr := w.attr(child, verbs.QPRTR)
		if rtr.DestQPN != param.QPNum || rtr.MaxDestRDAtomic != 5 || rtr.PathMTU == 0 || !rtr.AH.Global {
			w.Errorf("RTR: %+v, want queue pair %d, 5 reads to serve, a path", rtr, param.QPNum)
		}
		if got, want := netip.AddrFrom16(rtr.AH.GRH.DGID).Unmap(), id.LocalAddr().Addr(); got != want {
			w.Errorf("RTR: the way leads to %v, want %v", got, want)
		}
		rts := w.attr(child, verbs.QPRTS)
		if rts.MaxRDAtomic != 3 || rts.RetryCount != 6 || rts.RNRRetry != 4 || rts.Timeout == 0 {
			w.Errorf("RTS: %+v, want 3 reads to ask, 6 and 4 retries, a timeout", rts)
		}
	},
	"of a datagram identifier": func(w *world) {
		w.needAttr()
		w.needDatagrams()
		attr := w.attr(w.b.bound(udp, at(w.rig.Address, 0)), verbs.QPInit)
		if attr.QKey != globalQKey || attr.Port == 0 {
			w.Errorf("%+v, want the queue key %#x and a port", attr, globalQKey)
		}
	},
	"without a device": func(w *world) {
		_, _, err := w.b.bound(tcp, any4(0)).InitQPAttr(verbs.QPInit)
		w.wantErr("init_qp_attr", err, unix.EINVAL)
	},
}

func (w *world) needAttr() {
	w.Helper()
	if w.differs(NoQPAttr) {
		_, _, err := w.b.bound(tcp, at(w.rig.Address, 0)).InitQPAttr(verbs.QPInit)
		w.wantErr("init_qp_attr", err, unix.EOPNOTSUPP)
		w.Skip("the device drives queue pairs alone")
	}
}

func (w *world) attr(id *cmid.ID, s verbs.QPState) verbs.QPAttr {
	w.Helper()
	attr, _, err := id.InitQPAttr(s)
	w.must(err)
	return attr
}

// eceScenarios are rdma_set_local_ece(3) and rdma_get_remote_ece(3).
var eceScenarios = scenarios{
	"both ways": func(w *world) {
		ours, theirs := cmid.ECE{VendorID: 0x2c9, AttrMod: 0x11}, cmid.ECE{VendorID: 0x2c9, AttrMod: 0x10}
		c, ev := w.requested(0, nil, &cmid.ConnParam{ECE: ours})
		w.queues(c.passive, 0)
		w.must(c.passive.Accept(nil, &cmid.ConnParam{ECE: theirs}))
		est := next[*cmid.Established](w.a, c.active)
		if w.iwarp { // it has no place for them
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
		c, _ := w.requested(0, nil, &cmid.ConnParam{ECE: cmid.ECE{VendorID: 1}})
		w.must(failure(c.passive.Do(&cmid.Reject{VendorECE: true})))
		w.wantRejected(c.active, cmid.RejectVendorOption)
	},
}

// somePath is a path record that says nothing but that it is usable, which is all that rdma_cm looks at.
func somePath() []byte {
	b := make([]byte, cmid.PathLen)
	binary.NativeEndian.PutUint32(b, pathUsable)
	return b
}

// pathScenarios are rdma_set_option(3) with RDMA_OPTION_IB_PATH, and the queries for paths and GIDs.
var pathScenarios = scenarios{
	"in place of resolve_route": func(w *world) {
		w.needPaths()
		w.listener(tcp, any4(0))
		paths := somePath()
		if !w.iwarp {
			var err error
			paths, err = w.resolved(tcp, w.target()).QueryPath()
			w.must(err)
			if len(paths) != cmid.PathLen || binary.NativeEndian.Uint32(paths) != pathUsable {
				w.Fatalf("path records %x, want one that can be used", paths)
			}
		}
		id := w.addrResolved()
		w.must(id.SetIBPath(paths))
		next[*cmid.RouteResolved](w.a, id)
		w.wantState("then", id, states.RouteResolved)
		w.queues(id, 0)
		w.must(id.Connect(nil, nil))
		child, _ := w.b.request()
		w.queues(child, 0)
		w.must(child.Accept(nil, nil))
		next[*cmid.Established](w.a, id)
		next[*cmid.Established](w.b, child)
	},
	"records that will not do": func(w *world) {
		w.needPaths()
		w.listener(tcp, any4(0))
		id := w.addrResolved()
		for why, paths := range map[string][]byte{
			"none": nil, "half a record": somePath()[:cmid.PathLen-1], "none that can be used": make([]byte, 2*cmid.PathLen),
		} {
			w.wantErr(why, id.SetIBPath(paths), unix.EINVAL)
			w.wantState(why, id, states.AddrResolved)
		}
		w.must(id.ResolveRoute(time.Second))
		next[*cmid.RouteResolved](w.a, id)
	},
	"no path before the route": func(w *world) {
		w.needPaths()
		w.listener(tcp, any4(0))
		if paths, err := w.addrResolved().QueryPath(); err != nil || len(paths) != 0 {
			w.Errorf("path records %x, %v, want none", paths, err)
		}
	},
	"gids": func(w *world) {
		w.needPaths()
		if w.iwarp {
			w.Skip("iWARP has no GIDs that mean anything")
		}
		w.listener(tcp, any4(0))
		id := w.resolved(tcp, w.target())
		local, peer, err := id.QueryGID()
		w.must(err)
		for _, a := range []struct {
			is, want cmid.Addr
		}{{local, id.LocalAddr()}, {peer, id.PeerAddr()}} {
			if a.is.IB == nil || netip.AddrFrom16(a.is.IB.GID).Unmap() != a.want.Addr() || a.is.Port() != a.want.Port() ||
				a.is.IB.SID>>16 != uint64(tcp) {
				w.Errorf("%+v, want %v in InfiniBand's terms", a.is.IB, a.want)
			}
		}
	},
	"no service can be resolved": func(w *world) { // only a subnet administrator knows any
		id := w.b.bound(tcp, at(w.rig.Address, 0))
		w.wantErr("resolve_addrinfo", id.ResolveIBService(1, ""), unix.EOPNOTSUPP)
		w.wantState("afterwards", id, states.Bound)
	},
}

func (w *world) addrResolved() *cmid.ID {
	w.Helper()
	id := w.a.create(tcp)
	w.must(id.ResolveAddr(cmid.Addr{}, w.target(), time.Second))
	next[*cmid.AddrResolved](w.a, id)
	return id
}

func (w *world) needPaths() {
	w.Helper()
	if !w.differs(NoPath) {
		return
	}
	w.listener(tcp, any4(0))
	id := w.addrResolved()
	w.wantErr("set_option", id.SetIBPath(somePath()), unix.EOPNOTSUPP)
	w.wantState("afterwards", id, states.AddrResolved)
	_, err := id.QueryPath()
	w.wantErr("query path", err, unix.EOPNOTSUPP)
	_, _, err = id.QueryGID()
	w.wantErr("query gid", err, unix.EOPNOTSUPP)
	w.Skip("no path records and no GIDs here")
}

// userEventScenarios are rdma_write_cm_event(3).
var userEventScenarios = scenarios{
	"in their order": func(w *world) {
		w.needUserEvents()
		w.listener(tcp, any4(0))
		id := w.resolved(tcp, w.target())
		for _, arg := range []uint64{1, 1<<64 - 1} {
			w.must(id.WriteCMEvent(arg))
		}
		for _, arg := range []uint64{1, 1<<64 - 1} {
			if ev := next[*cmid.User](w.a, id); ev.Arg != arg || ev.Status != 0 {
				w.Errorf("%+v, want %#x", ev, arg)
			}
		}
		w.wantState("nothing has changed", id, states.RouteResolved)
	},
	"answer nothing": func(w *world) {
		w.needUserEvents()
		w.listener(tcp, any4(0))
		id := w.a.create(tcp)
		w.must(id.WriteCMEvent(7))
		w.must(id.ResolveAddr(cmid.Addr{}, w.target(), time.Second))
		if h := w.a.first(); h.answers != nil || h.ev.Kind() != states.KindUser {
			w.Errorf("%v answers %v", h.ev.Kind(), h.answers)
		}
		if h := w.a.first(); h.answers == nil || h.ev.Kind() != states.KindAddrResolved {
			w.Errorf("%v answers %v, want AddrResolved and its command", h.ev.Kind(), h.answers)
		}
	},
	"not of a destroyed identifier": func(w *world) {
		w.needUserEvents()
		id := w.a.create(tcp)
		w.must(id.WriteCMEvent(7))
		w.must(id.Destroy())
		w.quiet("after destroy")
	},
}

func (w *world) needUserEvents() {
	w.Helper()
	if w.lacks(states.OpWriteCMEvent) {
		id := w.a.create(tcp)
		w.wantErr("write_cm_event", id.WriteCMEvent(1), unix.EOPNOTSUPP)
		w.Skip("no user events here")
	}
}

// first waits for the next event, whatever it is.
func (e *end) first() heard {
	e.w.Helper()
	e.w.until("an event on the "+e.name+" side", func() bool { return len(e.heard) > 0 })
	h := e.heard[0]
	e.heard = e.heard[1:]
	return h
}
