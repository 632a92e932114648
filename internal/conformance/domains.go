package conformance

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/verbs"
)

// domainScenarios test protection domains, and memory that a work request must not use.
var domainScenarios = scenarios{
	"connections in a domain of their own": func(w *world) {
		c := w.ConnectedWith(sides.Setup{Recvs: 1, Active: w.ownDomain, Passive: w.ownDomain})
		near, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 64, sides.RemoteAll, 2)
		if near.PD != c.AQ.PD || far.PD != c.BQ.PD || c.BQ.MR.PD == c.Passive.Device().PD() {
			w.Error("a region does not say in which domain it is registered")
		}
		want := bytes.Clone(near.Bytes)
		w.Must(c.AQ.Write(1, 0, sides.Part(near, 0, 64), far, 0))
		w.Must(c.AQ.Read(2, 0, sides.Part(near, 0, 64), far, 0))
		w.Must(c.AQ.PostSend(3, "done"))
		w.Sent("a domain's memory serves the domain's queue pairs", c.AQ)
		w.Same("Write", far.Bytes, want)
		w.Same("Read", near.Bytes, want)
		w.WantErr("dealloc_pd with a queue pair and memory", c.AQ.PD.Close(), unix.EBUSY)
	},
	"a domain in use is not closed": func(w *world) {
		c := w.Connected(0)
		dev := c.Active.Device()
		pd := sides.Got(dev.AllocPD())(w)
		mr := sides.Got(pd.Alloc(1, 0))(w)
		w.WantErr("dealloc_pd with memory", pd.Close(), unix.EBUSY)
		w.Must(dev.Free(mr))
		srq := sides.Got(dev.CreateSRQ(verbs.SRQInitAttr{PD: pd, MaxWR: 1}))(w)
		w.WantErr("dealloc_pd with a shared receive queue", pd.Close(), unix.EBUSY)
		w.Must(srq.Close())
		id := w.Resolved(tcp, w.Target())
		qp := sides.Got(id.CreateQP(verbs.QPInitAttr{PD: pd, SendCQ: c.AQ.CQ, RecvCQ: c.AQ.CQ}))(w)
		w.WantErr("dealloc_pd with a queue pair", pd.Close(), unix.EBUSY)
		w.Must(qp.Destroy())
		w.Must(pd.Close())

		w.WantErr("dealloc_pd twice", pd.Close(), unix.EINVAL)
		w.WantErr("reg_mr in a domain that is gone", sides.Err(pd.Alloc(1, 0)), unix.EINVAL)
		w.WantErr("create_srq in a domain that is gone", sides.Err(dev.CreateSRQ(verbs.SRQInitAttr{PD: pd, MaxWR: 1})), unix.EINVAL)
		w.WantErr("create_qp in a domain that is gone", sides.Err(id.CreateQP(verbs.QPInitAttr{PD: pd, SendCQ: c.AQ.CQ, RecvCQ: c.AQ.CQ})), unix.EINVAL)
		w.WantErr("the device's own domain lives as long as the device", dev.PD().Close(), unix.EINVAL)
	},
	"memory of another domain": func(w *world) {
		c := w.Connected(0)
		mr := w.foreignMemory(c.Active, 64, sides.RemoteAll)
		w.noneOf("a region of another domain than the queue pair's", c, mr)
	},
	"memory that the device shares": func(w *world) {
		c := w.ConnectedWith(sides.Setup{Active: w.ownDomain, Passive: w.ownDomain})
		dev := c.Active.Device()
		mr := sides.Got(dev.Alloc(64, sides.RemoteAll))(w)
		if !dev.Attr().SharesMemory {
			w.noneOf("a region of the device's domain", c, mr)
			return
		}
		copy(mr.Bytes, "shared")
		far := w.Memory(c.BQ, 64, sides.RemoteAll, 2)
		w.Must(c.BQ.PostRecv(0, sides.SlotSize))
		w.Must(c.AQ.Post(&verbs.SendWR{ID: 1, SGL: []verbs.SGE{sides.Part(mr, 0, 6)}}))
		w.Must(c.AQ.Write(2, 0, sides.Part(mr, 0, 6), far, 0))
		w.Must(c.AQ.Read(3, verbs.Signaled, sides.Part(mr, 6, 6), far, 0))
		w.Must(c.AQ.QP.PostRecv(verbs.RecvWR{ID: 100, SGE: sides.Part(mr, 12, 6)}))
		w.Must(c.BQ.PostSend(4, "answer"))
		w.Sent("memory of Device.PD is as good as the domain's own", c.AQ)
		w.Until("the answer", func() bool { return sides.Succeeded(c.AQ.Of(verbs.Recv)) == 1 })
		w.Same("Send", c.BQ.Slot(0)[:6], []byte("shared"))
		w.Same("Write, Read and receive", mr.Bytes[:18], []byte("sharedsharedanswer"))

		theirs := sides.Got(c.Passive.Device().Alloc(64, sides.RemoteAll))(w)
		w.Must(c.AQ.Write(5, verbs.Signaled, sides.Part(mr, 0, 8), theirs, 0))
		w.awaitEnd(c)
		w.Same("but not for the peer", theirs.Bytes, make([]byte, 64))
	},
	"freed memory": func(w *world) {
		c := w.Connected(0)
		mr := w.Memory(c.AQ, 64, sides.RemoteAll, 1)
		w.Must(c.Active.Device().Free(mr))
		if mr.PD != nil {
			w.Error("freed memory says that it is in a domain")
		}
		w.noneOf("a region that is freed", c, mr)
		w.WantErr("dereg_mr twice", c.Active.Device().Free(mr), unix.EINVAL)
	},
	"memory that may not be written": func(w *world) {
		c := w.Connected(0)
		mr, far := w.Memory(c.AQ, 64, verbs.RemoteRead, 1), w.Memory(c.BQ, 64, sides.RemoteAll, 2)
		w.WantErr("a receive into memory without local write",
			c.AQ.QP.PostRecv(verbs.RecvWR{SGE: sides.Part(mr, 0, 64)}), unix.EINVAL)
		w.WantErr("a Read into memory without local write", c.AQ.Read(1, 0, sides.Part(mr, 0, 64), far, 0), unix.EINVAL)
		w.WantErr("a peer may not write what its owner may not (ibv_reg_mr(3))", sides.Err(c.Active.Device().Alloc(64, verbs.RemoteWrite)), unix.EINVAL)
	},
	"bytes outside the memory": func(w *world) {
		c := w.ConnectedWith(sides.Setup{Active: func(_ verbs.Device, attr *verbs.QPInitAttr) { attr.MaxSGE = 2 }})
		mr, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 64, sides.RemoteAll, 2)
		for _, s := range []verbs.SGE{sides.Part(mr, 1, 64), sides.Part(mr, 65, 0), sides.Part(mr, 1<<32-8, 16), sides.Part(nil, 0, 1)} {
			w.WantErr("a Write from there", c.AQ.Write(1, 0, s, far, 0), unix.EINVAL)
			w.WantErr("a Read to there", c.AQ.Read(1, 0, s, far, 0), unix.EINVAL)
		}
		w.WantErr("a Read into two places", c.AQ.Post(&verbs.SendWR{
			Op: verbs.Read, SGL: []verbs.SGE{sides.Part(mr, 0, 1), sides.Part(mr, 1, 1)}, RemoteAddr: far.Addr, RKey: far.RKey,
		}), unix.EINVAL)
		three := []verbs.SGE{sides.Part(mr, 0, 1), sides.Part(mr, 1, 1), sides.Part(mr, 2, 1)}
		w.WantErr("a Send from more places than the queue pair was made for",
			c.AQ.Post(&verbs.SendWR{SGL: three}), unix.EINVAL)
		w.WantErr("an opcode of completions", c.AQ.Post(&verbs.SendWR{Op: verbs.Recv}), unix.EINVAL)
	},
	"a shared receive queue of another domain": func(w *world) {
		c := w.Connected(0)
		dev := c.Active.Device()
		pd := sides.Got(dev.AllocPD())(w)
		srq := sides.Got(dev.CreateSRQ(verbs.SRQInitAttr{PD: pd, MaxWR: 2}))(w)
		id := w.Resolved(tcp, w.Target())
		attr := verbs.QPInitAttr{SendCQ: c.AQ.CQ, RecvCQ: c.AQ.CQ, SRQ: srq}
		w.WantErr("create_qp: every receive would be memory that the queue pair may not touch", sides.Err(id.CreateQP(attr)), unix.EINVAL)
		attr.PD = pd
		qp := sides.Got(id.CreateQP(attr))(w)
		w.WantErr("destroy_srq in use", srq.Close(), unix.EBUSY)
		w.Must(qp.Destroy())
		w.Must(srq.Close())
		w.Must(pd.Close())
	},
	"memory of a shared receive queue": func(w *world) {
		c := w.Connected(0)
		dev := c.Passive.Device()
		pd := sides.Got(dev.AllocPD())(w)
		srq := sides.Got(dev.CreateSRQ(verbs.SRQInitAttr{PD: pd, MaxWR: 2}))(w)
		mr := sides.Got(pd.Alloc(64, verbs.LocalWrite))(w)
		w.Must(srq.PostRecv(verbs.RecvWR{SGE: sides.Part(mr, 0, 64)}))
		w.WantErr("a receive in memory of another domain than the shared queue's",
			srq.PostRecv(verbs.RecvWR{SGE: sides.Part(c.BQ.MR, 0, 64)}), unix.EINVAL)
		w.Must(srq.Close())
		w.WantErr("a receive for a queue that is gone", srq.PostRecv(verbs.RecvWR{SGE: sides.Part(mr, 0, 64)}), unix.EINVAL)
	},
}

// ownDomain gives a queue pair its own domain.
func (w *world) ownDomain(dev verbs.Device, attr *verbs.QPInitAttr) {
	attr.PD = sides.Got(dev.AllocPD())(w)
}

// noneOf requires that every work request of the active side that uses mr is refused, and that the
// connection goes on afterwards.
func (w *world) noneOf(what string, c *sides.Link, mr *verbs.MR) {
	w.Helper()
	far := w.Memory(c.BQ, 64, sides.RemoteAll, 2)
	s := verbs.SGE{MR: mr, Length: 1}
	w.WantErr("a Send of "+what, c.AQ.Post(&verbs.SendWR{SGL: []verbs.SGE{s}}), unix.EINVAL)
	w.WantErr("a Write of "+what, c.AQ.Write(1, 0, s, far, 0), unix.EINVAL)
	w.WantErr("a Read into "+what, c.AQ.Read(1, 0, s, far, 0), unix.EINVAL)
	w.WantErr("a receive in "+what, c.AQ.QP.PostRecv(verbs.RecvWR{SGE: s}), unix.EINVAL)
	w.Must(c.BQ.PostRecv(0, sides.SlotSize))
	w.Barrier(c.AQ, c.BQ)
}
