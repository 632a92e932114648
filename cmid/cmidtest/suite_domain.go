package cmidtest

import (
	"bytes"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// domainScenarios are protection domains, and memory that a work request may not name.
var domainScenarios = scenarios{
	"connections in a domain of their own": func(w *world) {
		own := func(dev verbs.Device, attr *verbs.QPInitAttr) {
			pd, err := dev.AllocPD()
			w.must(err)
			attr.PD = pd
		}
		c := w.connectedWith(setup{recvs: 1, active: own, passive: own})
		near, far := w.memory(c.aq, 64, verbs.LocalWrite, 1), w.memory(c.bq, 64, remoteAll, 2)
		if near.PD != c.aq.pd || far.PD != c.bq.pd || c.bq.mr.PD == c.passive.Device().PD() {
			w.Error("a region does not say in which domain it is registered")
		}
		want := bytes.Clone(near.Bytes)
		w.must(c.aq.write(1, 0, part(near, 0, 64), far, 0))
		w.must(c.aq.read(2, 0, part(near, 0, 64), far, 0))
		w.must(c.aq.postSend(3, "done"))
		w.sent("a domain's memory serves the domain's queue pairs", c.aq, verbs.WC{ID: 3, Op: verbs.Send, Bytes: 4})
		w.same("Write", far.Bytes, want)
		w.same("Read", near.Bytes, want)
		w.wantErr("dealloc_pd with a queue pair and memory", c.aq.pd.Close(), unix.EBUSY)
	},
	"a domain in use is not closed": func(w *world) {
		c := w.connected(0)
		dev := c.active.Device()
		pd, err := dev.AllocPD()
		w.must(err)
		mr, err := pd.Alloc(1, 0)
		w.must(err)
		w.wantErr("dealloc_pd with memory", pd.Close(), unix.EBUSY)
		w.must(dev.Free(mr))
		srq, err := dev.CreateSRQ(verbs.SRQInitAttr{PD: pd, MaxWR: 1})
		w.must(err)
		w.wantErr("dealloc_pd with a shared receive queue", pd.Close(), unix.EBUSY)
		w.must(srq.Close())
		id := w.resolved(tcp, w.target())
		qp, err := id.CreateQP(verbs.QPInitAttr{PD: pd, SendCQ: c.aq.cq, RecvCQ: c.aq.cq})
		w.must(err)
		w.wantErr("dealloc_pd with a queue pair", pd.Close(), unix.EBUSY)
		w.must(qp.Destroy())
		w.must(pd.Close())

		w.wantErr("dealloc_pd twice", pd.Close(), unix.EINVAL)
		_, err = pd.Alloc(1, 0)
		w.wantErr("reg_mr in a domain that is gone", err, unix.EINVAL)
		_, err = dev.CreateSRQ(verbs.SRQInitAttr{PD: pd, MaxWR: 1})
		w.wantErr("create_srq in a domain that is gone", err, unix.EINVAL)
		_, err = id.CreateQP(verbs.QPInitAttr{PD: pd, SendCQ: c.aq.cq, RecvCQ: c.aq.cq})
		w.wantErr("create_qp in a domain that is gone", err, unix.EINVAL)
		w.wantErr("the device's own domain lives as long as the device", dev.PD().Close(), unix.EINVAL)
	},
	"memory of another domain": func(w *world) {
		c := w.connected(0)
		pd, err := c.active.Device().AllocPD()
		w.must(err)
		mr, err := pd.Alloc(64, remoteAll)
		w.must(err)
		w.noneOf("a region of another domain than the queue pair's", c, mr)
	},
	"memory that the device shares": func(w *world) {
		own := func(dev verbs.Device, attr *verbs.QPInitAttr) {
			pd, err := dev.AllocPD()
			w.must(err)
			attr.PD = pd
		}
		c := w.connectedWith(setup{active: own, passive: own})
		dev := c.active.Device()
		mr, err := dev.Alloc(64, remoteAll)
		w.must(err)
		if !dev.Attr().SharesMemory {
			w.noneOf("a region of the device's domain", c, mr)
			return
		}
		copy(mr.Bytes, "shared")
		far := w.memory(c.bq, 64, remoteAll, 2)
		w.must(c.bq.postRecv(0, slotSize))
		w.must(c.aq.qp.PostSend(&verbs.SendWR{ID: 1, SGL: []verbs.SGE{part(mr, 0, 6)}}))
		w.must(c.aq.write(2, 0, part(mr, 0, 6), far, 0))
		w.must(c.aq.read(3, verbs.Signaled, part(mr, 6, 6), far, 0))
		w.must(c.aq.qp.PostRecv(verbs.RecvWR{ID: 100, SGE: part(mr, 12, 6)}))
		w.must(c.bq.postSend(4, "answer"))
		w.sent("memory of Device.PD is as good as the domain's own", c.aq, verbs.WC{ID: 3, Op: verbs.Read, Bytes: 6})
		w.until("the answer", func() bool { return succeeded(c.aq.of(verbs.Recv)) == 1 })
		w.same("Send", c.bq.slot(0)[:6], []byte("shared"))
		w.same("Write, Read and receive", mr.Bytes[:18], []byte("sharedsharedanswer"))

		theirs, err := c.passive.Device().Alloc(64, remoteAll)
		w.must(err)
		w.must(c.aq.write(5, verbs.Signaled, part(mr, 0, 8), theirs, 0))
		w.ended(c)
		w.same("but not for the peer", theirs.Bytes, make([]byte, 64))
	},
	"freed memory": func(w *world) {
		c := w.connected(0)
		mr := w.memory(c.aq, 64, remoteAll, 1)
		w.must(c.active.Device().Free(mr))
		if mr.PD != nil {
			w.Error("freed memory says that it is in a domain")
		}
		w.noneOf("a region that is freed", c, mr)
		w.wantErr("dereg_mr twice", c.active.Device().Free(mr), unix.EINVAL)
	},
	"memory that may not be written": func(w *world) {
		c := w.connected(0)
		mr, far := w.memory(c.aq, 64, verbs.RemoteRead, 1), w.memory(c.bq, 64, remoteAll, 2)
		w.wantErr("a receive into memory without local write",
			c.aq.qp.PostRecv(verbs.RecvWR{SGE: part(mr, 0, 64)}), unix.EINVAL)
		w.wantErr("a Read into memory without local write", c.aq.read(1, 0, part(mr, 0, 64), far, 0), unix.EINVAL)
		_, err := c.active.Device().Alloc(64, verbs.RemoteWrite)
		w.wantErr("a peer may not write what its owner may not (ibv_reg_mr(3))", err, unix.EINVAL)
	},
	"bytes outside the memory": func(w *world) {
		c := w.connectedWith(setup{active: func(_ verbs.Device, attr *verbs.QPInitAttr) { attr.MaxSGE = 2 }})
		mr, far := w.memory(c.aq, 64, verbs.LocalWrite, 1), w.memory(c.bq, 64, remoteAll, 2)
		for _, s := range []verbs.SGE{part(mr, 1, 64), part(mr, 65, 0), part(mr, 1<<32-8, 16), part(nil, 0, 1)} {
			w.wantErr("a Write from there", c.aq.write(1, 0, s, far, 0), unix.EINVAL)
			w.wantErr("a Read to there", c.aq.read(1, 0, s, far, 0), unix.EINVAL)
		}
		w.wantErr("a Read into two places", c.aq.qp.PostSend(&verbs.SendWR{
			Op: verbs.Read, SGL: []verbs.SGE{part(mr, 0, 1), part(mr, 1, 1)}, RemoteAddr: far.Addr, RKey: far.RKey,
		}), unix.EINVAL)
		three := []verbs.SGE{part(mr, 0, 1), part(mr, 1, 1), part(mr, 2, 1)}
		w.wantErr("a Send from more places than the queue pair was made for",
			c.aq.qp.PostSend(&verbs.SendWR{SGL: three}), unix.EINVAL)
		w.wantErr("an opcode of completions", c.aq.qp.PostSend(&verbs.SendWR{Op: verbs.Recv}), unix.EINVAL)
	},
	"a shared receive queue of another domain": func(w *world) {
		c := w.connected(0)
		dev := c.active.Device()
		pd, err := dev.AllocPD()
		w.must(err)
		srq, err := dev.CreateSRQ(verbs.SRQInitAttr{PD: pd, MaxWR: 2})
		w.must(err)
		id := w.resolved(tcp, w.target())
		attr := verbs.QPInitAttr{SendCQ: c.aq.cq, RecvCQ: c.aq.cq, SRQ: srq}
		_, err = id.CreateQP(attr)
		w.wantErr("create_qp: every receive would be memory that the queue pair may not touch", err, unix.EINVAL)
		attr.PD = pd
		qp, err := id.CreateQP(attr)
		w.must(err)
		w.wantErr("destroy_srq in use", srq.Close(), unix.EBUSY)
		w.must(qp.Destroy())
		w.must(srq.Close())
		w.must(pd.Close())
	},
	"memory of a shared receive queue": func(w *world) {
		c := w.connected(0)
		dev := c.passive.Device()
		pd, err := dev.AllocPD()
		w.must(err)
		srq, err := dev.CreateSRQ(verbs.SRQInitAttr{PD: pd, MaxWR: 2})
		w.must(err)
		mr, err := pd.Alloc(64, verbs.LocalWrite)
		w.must(err)
		w.must(srq.PostRecv(verbs.RecvWR{SGE: part(mr, 0, 64)}))
		w.wantErr("a receive in memory of another domain than the shared queue's",
			srq.PostRecv(verbs.RecvWR{SGE: part(c.bq.mr, 0, 64)}), unix.EINVAL)
		w.must(srq.Close())
		w.wantErr("a receive for a queue that is gone", srq.PostRecv(verbs.RecvWR{SGE: part(mr, 0, 64)}), unix.EINVAL)
	},
}

// noneOf holds that no work request of the active side's may name mr, and that refusing them costs nothing.
func (w *world) noneOf(what string, c *link, mr *verbs.MR) {
	w.Helper()
	far := w.memory(c.bq, 64, remoteAll, 2)
	s := verbs.SGE{MR: mr, Length: 1}
	w.wantErr("a Send of "+what, c.aq.qp.PostSend(&verbs.SendWR{SGL: []verbs.SGE{s}}), unix.EINVAL)
	w.wantErr("a Write of "+what, c.aq.write(1, 0, s, far, 0), unix.EINVAL)
	w.wantErr("a Read into "+what, c.aq.read(1, 0, s, far, 0), unix.EINVAL)
	w.wantErr("a receive in "+what, c.aq.qp.PostRecv(verbs.RecvWR{SGE: s}), unix.EINVAL)
	w.must(c.bq.postRecv(0, slotSize))
	w.told(c.aq, c.bq)
}
