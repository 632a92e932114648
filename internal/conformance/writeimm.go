package conformance

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// writeImmScenarios test Writes with immediate data.
var writeImmScenarios = func() scenarios {
	s := scenarios{
		"length and immediate":                  writeImmSpans,
		"no bytes need no key":                  writeImmEmpty,
		"in order with Writes, Reads and Sends": writeImmOrder,
		"inline, and solicited":                 writeImmSolicited,
		"a shared receive":                      writeImmShared,
		"no receive":                            writeImmWaits,
		"flushed":                               writeImmFlushed,
	}
	for why, change := range misuses {
		s[why] = func(w *world) { requireRefusal(w, verbs.WriteWithImm, change) }
	}
	return s.where((*world).canImmediate)
}()

// writeImm posts a Write of from to offset off of a peer's region, with immediate data.
func writeImm(q *sides.Queues, id int, imm uint32, from verbs.SGE, to *verbs.MR, off int) error {
	return q.Post(&verbs.SendWR{
		ID: uint64(id), Op: verbs.WriteWithImm, Flags: verbs.Signaled, SGL: []verbs.SGE{from}, RemoteAddr: to.Addr + uint64(off),
		RKey: to.RKey, Imm: imm,
	})
}

// requireWritten requires that receive i was used up by a Write of n bytes with immediate data.
func (w *world) requireWritten(q *sides.Queues, i, n int, imm uint32) {
	w.Helper()
	w.Until("the receive of a Write", func() bool { return len(q.Of(verbs.Recv)) > i })
	want := verbs.WC{ID: uint64(100 + i), Op: verbs.RecvWrite, Bytes: uint32(n), HasImm: true, Imm: imm, QP: q.QP}
	if wc := q.Of(verbs.Recv)[i]; wc != want {
		w.Errorf("receive %d completed as %+v, want %+v", i, wc, want)
	}
}

// writeImmSpans checks that the bytes are there when the receive completes. Most are more than it
// has room for, and nothing is put there.
func writeImmSpans(w *world) {
	c := w.Connected(len(spans))
	from, to := w.Memory(c.AQ, spanned, 0, 1), w.Memory(c.BQ, spanned, verbs.LocalWrite|verbs.RemoteWrite, 2)
	want, recvs := bytes.Clone(to.Bytes), bytes.Clone(c.BQ.MR.Bytes)
	for i, s := range spans {
		imm := 0x01020304 << i
		w.Must(writeImm(c.AQ, i, uint32(imm), sides.Part(from, s.off, s.n), to, s.off))
		w.requireWritten(c.BQ, i, s.n, uint32(imm))
		copy(want[s.off:], from.Bytes[s.off:s.off+s.n])
		w.Same("the bytes are there with the immediate data, and nothing beside them", to.Bytes, want)
	}
	w.Sent("with its own opcode", c.AQ)
	w.Same("nothing is put into the receive", c.BQ.MR.Bytes, recvs)
}

func writeImmEmpty(w *world) {
	c := w.Connected(2)
	w.Must(c.AQ.Post(&verbs.SendWR{ID: 1, Op: verbs.WriteWithImm, Flags: verbs.Signaled, RemoteAddr: 0xdead, RKey: 0xbeef, Imm: 7}))
	w.requireWritten(c.BQ, 0, 0, 7)
	w.Must(c.AQ.Post(&verbs.SendWR{ID: 2, Op: verbs.WriteWithImm, Flags: verbs.Signaled}))
	w.requireWritten(c.BQ, 1, 0, 0)
	w.Sent("an access of no bytes checks nothing", c.AQ)
}

func writeImmOrder(w *world) {
	c := w.Connected(4)
	near, far := w.Memory(c.AQ, spanned, verbs.LocalWrite, 1), w.Memory(c.BQ, spanned, sides.RemoteAll, 2)
	w.Must(c.AQ.PostSend(1, "before"))
	w.Must(c.AQ.Write(2, verbs.Signaled, sides.Part(near, 0, 100_000), far, 0))
	w.Must(writeImm(c.AQ, 3, 1, sides.Part(near, 100_000, spanned-100_000), far, 100_000))
	w.Must(c.AQ.Read(4, verbs.Signaled, sides.Part(near, 0, spanned), far, 0))
	w.Must(writeImm(c.AQ, 5, 2, sides.Part(near, 0, 1), far, 0))
	w.Must(c.AQ.PostSend(6, "behind"))
	w.requireWritten(c.BQ, 1, spanned-100_000, 1)
	w.Same("the Write before it is there, too", far.Bytes, near.Bytes)
	w.requireWritten(c.BQ, 2, 1, 2)
	w.Until("the Send behind", func() bool { return len(c.BQ.Of(verbs.Recv)) == 4 })
	for _, i := range []int{0, 3} {
		if wc := c.BQ.Of(verbs.Recv)[i]; wc.Op != verbs.Recv || wc.HasImm || wc.Bytes != 6 {
			w.Errorf("receive %d, of a Send, is %+v", i, wc)
		}
	}
	w.Sent("in posting order", c.AQ)
}

func writeImmSolicited(w *world) {
	c := w.Connected(2)
	far := w.Memory(c.BQ, 64, sides.RemoteAll, 1)
	want := bytes.Clone(far.Bytes)
	c.BQ.CQ.ReqNotify(true)
	text := []byte("inline")
	w.Must(c.AQ.PostSend(1, "quiet"))
	w.Must(c.AQ.Post(&verbs.SendWR{
		ID: 2, Op: verbs.WriteWithImm, Flags: verbs.Solicited, Inline: text, RemoteAddr: far.Addr + 3, RKey: far.RKey, Imm: 5,
	}))
	copy(want[3:], text)
	clear(text)
	w.requireWritten(c.BQ, 1, len(text), 5)
	w.Same("inline bytes", far.Bytes, want)
}

// writeImmShared uses up receives of a shared receive queue, one for each Write.
func writeImmShared(w *world) {
	s := w.newShared(verbs.SRQInitAttr{MaxWR: sides.Depth})
	far := w.Memory(s.BQ, 64, sides.RemoteAll, 1)
	for range 3 {
		s.postReceive()
	}
	for i := range 2 {
		w.Must(writeImm(s.AQ, i, uint32(i), sides.Part(s.AQ.MR, 0, 64), far, 0))
		w.requireWritten(s.BQ, i, 64, uint32(i))
	}
	w.Barrier(s.AQ, s.BQ)
	w.Sent("and the Send behind them", s.AQ)
}

// writeImmWaits checks that the Write waits for a receive as a Send does.
func writeImmWaits(w *world) {
	c := w.Connected(0)
	far := w.Memory(c.BQ, 64, sides.RemoteAll, 1)
	const flood = sides.Depth
	for i := range flood {
		w.Must(writeImm(c.AQ, i, uint32(i), sides.Part(c.AQ.MR, i*8, 8), far, i*8))
	}
	w.WantErr("more than the send queue has room for", writeImm(c.AQ, flood, 0, sides.Part(c.AQ.MR, 0, 8), far, 0), unix.ENOMEM)
	w.Settle()
	if len(c.AQ.Done)+len(c.BQ.Done) > 0 {
		w.Fatalf("completed as %+v and %+v before there was a receive", c.AQ.Done, c.BQ.Done)
	}
	for i := range flood {
		w.Must(c.BQ.PostRecv(i, 1))
		w.requireWritten(c.BQ, i, 8, uint32(i))
	}
	w.Sent("each with a receive of its own", c.AQ)
	w.WantState("and the connection lives", c.Active, states.Connected)
}

func writeImmFlushed(w *world) {
	c := w.Connected(0)
	far := w.Memory(c.BQ, 64, sides.RemoteAll, 1)
	w.Must(writeImm(c.AQ, 1, 1, sides.Part(c.AQ.MR, 0, 8), far, 0))
	w.Settle()
	w.Disconnect(c)
	w.Settle()
	w.Sent(fmt.Sprintf("a %v that has found no receive", verbs.WriteWithImm), c.AQ,
		verbs.WC{ID: 1, Op: verbs.WriteWithImm, Status: verbs.StatusFlushed})
}
