package conformance

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/verbs"
)

// datagrams is a pair of datagram identifiers with queue pairs. The active one knows the way to
// the other.
type datagrams struct {
	active, passive *cmid.ID
	aq, bq          *sides.Queues
	to              *cmid.UDParam
	ah              verbs.AH
}

// looksUp makes a pair with recvs receives on each side.
func (w *world) looksUp(recvs int) *datagrams {
	w.Helper()
	w.needDatagramData()
	c := &datagrams{}
	_, c.active = w.Pair(udp)
	c.aq = w.Queues(c.active, recvs)
	w.Must(c.active.Connect(nil, nil))
	c.passive, _ = w.B.Request()
	c.bq = w.Queues(c.passive, recvs)
	w.Must(c.passive.Accept(nil, nil))
	c.to = sides.Next[*cmid.Established](w.A, c.active).UD
	if c.to == nil || c.to.QPN != c.bq.QP.Num() {
		w.Fatalf("looked up %+v, want queue pair %d", c.to, c.bq.QP.Num())
	}
	c.ah = w.newAddrHandle(c.active, c.to.AH)
	return c
}

// needDatagramData skips the scenario if datagram identifiers have no queue pairs.
func (w *world) needDatagramData() {
	w.Helper()
	w.needDatagrams()
	if dev := w.B.Bound(udp, w.deviceAddr()).Device(); dev == nil || dev.Attr().MaxDatagram == 0 {
		w.Skip("the device has no datagrams (Attr.MaxDatagram): only services are looked up")
	}
}

// newAddrHandle makes an address handle.
func (w *world) newAddrHandle(id *cmid.ID, attr verbs.AHAttr) verbs.AH {
	w.Helper()
	ah := sides.Got(id.Device().CreateAH(nil, &attr))(w)
	return ah
}

// sendText sends text from the active side.
func (c *datagrams) sendText(i int, text string) error {
	return c.aq.PostTo(i, text, c.ah, c.to.QPN, c.to.QKey)
}

// postToPassive posts a work request of the active side's to the passive side.
func (c *datagrams) postToPassive(wr verbs.SendWR) error {
	wr.AH, wr.RemoteQPN, wr.RemoteQKey = c.ah, c.to.QPN, c.to.QKey
	return c.aq.Post(&wr)
}

// wantDatagrams waits until exactly these datagrams have arrived, in this order, and returns their
// completions.
func (w *world) wantDatagrams(q *sides.Queues, texts ...string) []verbs.WC {
	w.Helper()
	w.Until("the datagrams", func() bool { return sides.Succeeded(q.Of(verbs.Recv)) >= len(texts) })
	w.Settle()
	var good []verbs.WC
	for _, wc := range q.Of(verbs.Recv) {
		if wc.Status == verbs.StatusSuccess {
			good = append(good, wc)
		}
	}
	if len(good) != len(texts) {
		w.Fatalf("%d datagrams, want %d", len(good), len(texts))
	}
	for i, wc := range good {
		slot := q.Slot(int(wc.ID - 100))
		if n := int(wc.Bytes); n != verbs.GRHLen+len(texts[i]) || string(slot[verbs.GRHLen:n]) != texts[i] {
			w.Errorf("datagram %d is %d bytes %q, want %d in front of %q", i, n, slot[verbs.GRHLen:max(n, verbs.GRHLen)], verbs.GRHLen, texts[i])
		}
	}
	return good
}

// answerDatagram sends text to the sender of a datagram, whose address is in the completion and the
// header.
func (w *world) answerDatagram(id *cmid.ID, q *sides.Queues, wc verbs.WC, text string) {
	w.Helper()
	attr := sides.Got(id.Device().InitAHFromWC(&wc, q.Slot(int(wc.ID - 100))[:verbs.GRHLen]))(w)
	ah := w.newAddrHandle(id, attr)
	w.Must(q.PostTo(0, text, ah, wc.SrcQPN, globalQKey))
}

// datagramDataScenarios test what queue pairs do for datagram identifiers.
var datagramDataScenarios = scenarios{
	"there and back": func(w *world) {
		c := w.looksUp(2)
		w.Must(c.sendText(1, "to whom it may concern"))
		wc := w.wantDatagrams(c.bq, "to whom it may concern")[0]
		if wc.SrcQPN != c.aq.QP.Num() || wc.HasImm || wc.QP != c.bq.QP {
			w.Errorf("%+v, want queue pair %d as the sender", wc, c.aq.QP.Num())
		}
		w.answerDatagram(c.passive, c.bq, wc, "back")
		if wc := w.wantDatagrams(c.aq, "back")[0]; wc.SrcQPN != c.bq.QP.Num() {
			w.Errorf("the answer comes from %d, want %d", wc.SrcQPN, c.bq.QP.Num())
		}
		if sent := c.aq.Of(verbs.Send); len(sent) != 1 || sent[0].Status != verbs.StatusSuccess || sent[0].ID != 1 {
			w.Errorf("the Send completed as %+v", sent)
		}
	},
	"immediate data": func(w *world) {
		c := w.looksUp(1)
		w.skipIf(!c.active.Device().Attr().Immediate, "the device has no immediate data (Attr.Immediate)")
		w.Must(c.postToPassive(verbs.SendWR{Op: verbs.SendWithImm, Imm: 0x01020304, Inline: []byte("x")}))
		if wc := w.wantDatagrams(c.bq, "x")[0]; !wc.HasImm || wc.Imm != 0x01020304 {
			w.Errorf("%+v, want 0x01020304", wc)
		}
	},
	"empty": func(w *world) {
		c := w.looksUp(1)
		w.Must(c.sendText(1, ""))
		w.wantDatagrams(c.bq, "")
	},
	"before connect": func(w *world) {
		w.needDatagramData()
		id := w.A.Bound(udp, sides.At(w.rig.Local, 0))
		q := w.Queues(id, 1)
		c := w.looksUp(1) // a sender does not have to look up a service
		w.Must(q.PostTo(1, "by hand", w.newAddrHandle(id, c.to.AH), c.to.QPN, c.to.QKey))
		w.wantDatagrams(c.bq, "by hand")
	},
	"no receive posted": func(w *world) {
		c := w.looksUp(0)
		w.Must(c.sendText(1, "lost"))
		w.Until("the Send to complete", func() bool { return sides.Succeeded(c.aq.Of(verbs.Send)) == 1 })
		w.Settle()
		w.Must(c.bq.PostRecv(0, sides.SlotSize))
		w.Must(c.sendText(2, "found"))
		w.wantDatagrams(c.bq, "found")
	},
	"receive too short": func(w *world) {
		c := w.looksUp(0)
		w.Must(c.bq.PostRecv(0, verbs.GRHLen+4))
		w.Must(c.bq.PostRecv(1, verbs.GRHLen+4))
		w.Must(c.sendText(1, "too long"))
		w.Must(c.sendText(2, "fits"))
		if w.hasDeviation(TooLongEnds) {
			w.Until("the end of its queue pair", func() bool { return len(c.bq.Of(verbs.Recv)) == 2 })
			w.wantDatagrams(c.bq)
			return
		}
		w.wantDatagrams(c.bq, "fits")
	},
	"longer than the path": func(w *world) {
		c := w.looksUp(0)
		limit := c.active.Device().Attr().MaxDatagram
		near, far := w.Memory(c.aq, limit+1, verbs.LocalWrite, 5), w.Memory(c.bq, verbs.GRHLen+limit+1, verbs.LocalWrite, 0)
		for id := range uint64(2) {
			w.Must(c.bq.QP.PostRecv(verbs.RecvWR{ID: 100 + id, SGE: sides.Part(far, 0, verbs.GRHLen+limit+1)}))
		}
		// A device may also accept it and drop it.
		if err := c.postToPassive(verbs.SendWR{ID: 1, Flags: verbs.Signaled, SGL: []verbs.SGE{sides.Part(near, 0, limit+1)}}); err != nil {
			w.WantErr("a byte too many", err, unix.EINVAL)
		}
		w.Must(c.sendText(2, "behind it"))
		w.Until("what is behind it", func() bool { return len(c.bq.Of(verbs.Recv)) > 0 })
		w.Settle()
		if wc := c.bq.Of(verbs.Recv); len(wc) != 1 || wc[0].Bytes != verbs.GRHLen+9 || string(far.Bytes[verbs.GRHLen:][:9]) != "behind it" {
			w.Errorf("received %+v with %q, want what is behind it", wc, far.Bytes[verbs.GRHLen:][:9])
		}
	},
	"as long as the path": func(w *world) {
		c := w.looksUp(0)
		limit := c.active.Device().Attr().MaxDatagram
		near, far := w.Memory(c.aq, limit, verbs.LocalWrite, 5), w.Memory(c.bq, verbs.GRHLen+limit, verbs.LocalWrite, 0)
		w.Must(c.bq.QP.PostRecv(verbs.RecvWR{ID: 100, SGE: sides.Part(far, 0, verbs.GRHLen+limit)}))
		w.Must(c.postToPassive(verbs.SendWR{SGL: []verbs.SGE{sides.Part(near, 0, limit)}}))
		w.Until("the datagram", func() bool { return sides.Succeeded(c.bq.Of(verbs.Recv)) == 1 })
		w.Same("every byte", far.Bytes[verbs.GRHLen:], near.Bytes)
	},
	"to nobody": func(w *world) {
		c := w.looksUp(1)
		w.Must(c.aq.PostTo(1, "another key", c.ah, c.to.QPN, c.to.QKey+1))
		w.Must(c.aq.PostTo(2, "another number", c.ah, c.to.QPN^0x400000, c.to.QKey))
		w.Must(c.sendText(3, "to you"))
		w.wantDatagrams(c.bq, "to you")
		w.Until("all Sends to complete", func() bool { return sides.Succeeded(c.aq.Of(verbs.Send)) == 3 })
	},
	"what cannot be sent": func(w *world) {
		c := w.looksUp(1)
		for _, op := range []verbs.Opcode{verbs.Write, verbs.WriteWithImm, verbs.Read, verbs.SendWithInvalidate} {
			w.WantErr(op.String(), c.postToPassive(verbs.SendWR{Op: op}), unix.EINVAL)
		}
		w.WantErr("without an address", c.aq.Post(&verbs.SendWR{RemoteQPN: c.to.QPN, RemoteQKey: c.to.QKey}), unix.EINVAL)
		w.WantErr("an address to nowhere", sides.Err(c.active.Device().CreateAH(nil, &verbs.AHAttr{})), unix.EINVAL)
		w.WantErr("the way back without a header", sides.Err(c.active.Device().InitAHFromWC(&verbs.WC{}, make([]byte, verbs.GRHLen))), unix.EINVAL)
	},
	"flush": func(w *world) {
		c := w.looksUp(3)
		w.Must(c.bq.QP.Destroy())
		w.Settle()
		w.wantFlushed("the passive side", c.bq, 3)
		w.Must(c.sendText(1, "too late"))
		w.Until("the Send to complete", func() bool { return sides.Succeeded(c.aq.Of(verbs.Send)) == 1 })
		w.Must(c.ah.Close())
	},
	"order": func(w *world) {
		c := w.looksUp(sides.Depth)
		var texts []string
		for i := range sides.Depth {
			texts = append(texts, strings.Repeat("x", i))
			w.Must(c.sendText(i, texts[i]))
		}
		w.wantDatagrams(c.bq, texts...)
	},
}

// multicastScenarios test datagrams to groups.
var multicastScenarios = scenarios{
	"members hear": func(w *world) {
		from, one, other := w.joinGroup(w.A, true), w.joinGroup(w.B, false), w.joinGroup(w.B, false)
		from.toGroup("to all")
		wc := w.wantDatagrams(one.q, "to all")[0]
		w.wantDatagrams(other.q, "to all")
		if wc.SrcQPN != from.q.QP.Num() {
			w.Errorf("%+v, want queue pair %d as the sender", wc, from.q.QP.Num())
		}
		w.Must(one.id.LeaveMulticast(sides.At(w.rig.Group, 0)))
		from.toGroup("to who is left")
		w.wantDatagrams(other.q, "to all", "to who is left")
		w.wantDatagrams(one.q, "to all")
		w.Must(other.id.Destroy())
	},
	"senders only do not": func(w *world) {
		from, quiet, other := w.joinGroup(w.A, false), w.joinGroup(w.B, true), w.joinGroup(w.B, false)
		from.toGroup("not to everybody")
		w.wantDatagrams(other.q, "not to everybody")
		w.wantDatagrams(quiet.q)
	},
	"nor does who has not joined": func(w *world) {
		from, other := w.joinGroup(w.A, true), w.joinGroup(w.B, false)
		q := w.Queues(w.B.Bound(udp, w.deviceAddr()), 1)
		from.toGroup("to members")
		w.wantDatagrams(other.q, "to members")
		w.wantDatagrams(q)
	},
}.where((*world).needGroup)

func (w *world) needGroup() bool {
	w.Helper()
	w.needDatagramData()
	w.skipIf(!w.rig.Group.IsValid(), "both sides are one port, which does not hear what it sends to a group (Rig.Group)")
	return true
}

// member is an identifier with a queue pair that has joined the group, and knows the way to it.
type member struct {
	w  *world
	id *cmid.ID
	q  *sides.Queues
	to cmid.UDParam
	ah verbs.AH
}

func (w *world) joinGroup(e *sides.Side, sendOnly bool) *member {
	w.Helper()
	at, group := w.deviceAddr(), sides.At(w.rig.Group, 0)
	if e == w.A {
		at = sides.At(w.rig.Local, 0)
	}
	id := e.Bound(udp, at)
	q := w.Queues(id, 4)
	if sendOnly {
		w.Must(id.JoinMulticastSendOnly(group))
	} else {
		w.Must(id.JoinMulticast(group))
	}
	to := sides.Next[*cmid.MulticastJoin](e, id).UD
	return &member{w, id, q, to, w.newAddrHandle(id, to.AH)}
}

// toGroup sends text to the group.
func (m *member) toGroup(text string) {
	m.w.Helper()
	m.w.Must(m.q.PostTo(1, text, m.ah, m.to.QPN, m.to.QKey))
}
