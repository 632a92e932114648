package sides

import (
	"bytes"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// Queues is a queue pair with a completion queue that is polled whenever it notifies.
type Queues struct {
	QP   verbs.QP
	CQ   verbs.CQ
	PD   verbs.PD
	MR   *verbs.MR  // slots of SlotSize: Depth for receives, then Depth for Sends
	Done []verbs.WC // completions so far
	want []verbs.WC // of the signaled work requests, if all succeed
	Then func()     // called after completions, when set
	wc   [3]verbs.WC
}

// How many work requests a queue takes, and the size of a slot of its memory, in bytes.
const (
	Depth    = 8
	SlotSize = 256
)

// Queues makes a queue pair with n receives of SlotSize posted.
func (w *World) Queues(id *cmid.ID, n int) *Queues {
	w.Helper()
	return w.queuesWith(id, n, nil)
}

// queuesWith makes Queues with attributes that change has changed.
func (w *World) queuesWith(id *cmid.ID, n int, change func(verbs.Device, *verbs.QPInitAttr)) *Queues {
	w.Helper()
	q := &Queues{}
	dev := id.Device()
	if dev == nil {
		w.Fatalf("no device in state %v", id.State())
	}
	q.CQ = Got(dev.CreateCQ(4*Depth, q.Poll))(w)
	attr := verbs.QPInitAttr{
		SendCQ: q.CQ, RecvCQ: q.CQ, MaxSendWR: Depth, MaxRecvWR: Depth, Context: q,
	}
	if change != nil {
		change(dev, &attr)
	}
	q.PD = attr.PD
	if q.PD == nil {
		q.PD = dev.PD()
	}
	q.MR = Got(q.PD.Alloc(2*Depth*SlotSize, verbs.LocalWrite))(w)
	q.QP = Got(id.CreateQP(attr))(w)
	for i := range n {
		w.Must(q.PostRecv(i, SlotSize))
	}
	return q
}

// Poll moves the completions to Done. The completion queue calls it.
func (q *Queues) Poll() {
	for n := q.CQ.Poll(q.wc[:]); n > 0; n = q.CQ.Poll(q.wc[:]) {
		q.Done = append(q.Done, q.wc[:n]...)
	}
	if q.Then != nil {
		q.Then()
	}
}

// PostRecv posts slot i as a receive of up to n bytes. The ID of its work request is 100+i.
func (q *Queues) PostRecv(i, n int) error {
	return q.QP.PostRecv(verbs.RecvWR{ID: uint64(100 + i), SGE: verbs.SGE{MR: q.MR, Offset: uint32(i * SlotSize), Length: uint32(n)}})
}

// Slot returns the memory of receive i.
func (q *Queues) Slot(i int) []byte { return q.MR.Bytes[i*SlotSize : (i+1)*SlotSize] }

// Post posts a work request of the send queue. See [World.Sent].
func (q *Queues) Post(wr *verbs.SendWR) error {
	err := q.QP.PostSend(wr)
	if err == nil && wr.Flags&verbs.Signaled != 0 {
		wc := verbs.WC{ID: wr.ID, Op: wr.Op, Bytes: uint32(len(wr.Inline)), QP: q.QP}
		for _, s := range wr.SGL {
			wc.Bytes += s.Length
		}
		q.want = append(q.want, wc)
	}
	return err
}

// Forget drops the completions so far, and those that World.Sent expects.
func (q *Queues) Forget() { q.Done, q.want = nil, nil }

// fillSlot puts a message into send slot i, in the memory's second half.
func (q *Queues) fillSlot(i int, text string) []verbs.SGE {
	off := (Depth + i%Depth) * SlotSize
	n := copy(q.MR.Bytes[off:off+SlotSize], text)
	return []verbs.SGE{Part(q.MR, off, n)}
}

// PostSend posts a Send of text from send slot i.
func (q *Queues) PostSend(i int, text string) error {
	return q.Post(&verbs.SendWR{ID: uint64(i), Flags: verbs.Signaled, SGL: q.fillSlot(i, text)})
}

// Of returns the completions of receives if op is verbs.Recv, and those of the send queue
// otherwise.
func (q *Queues) Of(op verbs.Opcode) (wc []verbs.WC) {
	for _, c := range q.Done {
		if (c.ID >= 100) == (op == verbs.Recv) {
			wc = append(wc, c)
		}
	}
	return wc
}

// Succeeded counts the completions without an error.
func Succeeded(wc []verbs.WC) (n int) {
	for _, c := range wc {
		if c.Status == verbs.StatusSuccess {
			n++
		}
	}
	return n
}

// RemoteAll is the access to memory that peers may write and read.
const RemoteAll = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead

// Memory makes a region of n bytes in q's domain. Neighbouring bytes differ, and so do regions with
// different seeds.
func (w *World) Memory(q *Queues, n int, access verbs.Access, seed byte) *verbs.MR {
	w.Helper()
	mr := Got(q.PD.Alloc(n, access))(w)
	for i := range mr.Bytes {
		mr.Bytes[i] = byte(i) ^ byte(i>>8) ^ seed
	}
	return mr
}

// Part returns n bytes of a region, from off on.
func Part(mr *verbs.MR, off, n int) verbs.SGE {
	return verbs.SGE{MR: mr, Offset: uint32(off), Length: uint32(n)}
}

// Write posts a Write of from to offset off of a peer's region.
func (q *Queues) Write(id int, flags verbs.SendFlags, from verbs.SGE, to *verbs.MR, off int) error {
	return q.Post(&verbs.SendWR{
		ID: uint64(id), Op: verbs.Write, Flags: flags, SGL: []verbs.SGE{from}, RemoteAddr: to.Addr + uint64(off), RKey: to.RKey,
	})
}

// Read posts a Read into the memory into, from offset off of a peer's region.
func (q *Queues) Read(id int, flags verbs.SendFlags, into verbs.SGE, from *verbs.MR, off int) error {
	return q.Post(&verbs.SendWR{
		ID: uint64(id), Op: verbs.Read, Flags: flags, SGL: []verbs.SGE{into}, RemoteAddr: from.Addr + uint64(off), RKey: from.RKey,
	})
}

// Sent waits for these completions of q's send queue, oldest first, and requires that there are no
// others. Without a list it expects that all signaled work requests succeed.
func (w *World) Sent(why string, q *Queues, want ...verbs.WC) {
	w.Helper()
	if want == nil {
		want = q.want
	}
	w.Until(why, func() bool { return len(q.Of(verbs.Send)) >= len(want) })
	got := q.Of(verbs.Send)
	for i := range want {
		want[i].QP = q.QP
		if got[i] != want[i] {
			w.Errorf("%s: completion %d is %+v, want %+v", why, i, got[i], want[i])
		}
	}
	if len(got) > len(want) {
		w.Errorf("%s: %d completions more than were asked for: %+v", why, len(got)-len(want), got[len(want):])
	}
}

// Barrier posts a Send and waits for its receive. By then the receiver has handled everything that
// the sender posted before.
func (w *World) Barrier(from, to *Queues) {
	w.Helper()
	n := len(to.Of(verbs.Recv))
	w.Must(from.PostSend(99, "last"))
	w.Until("the Send behind", func() bool { return len(to.Of(verbs.Recv)) > n })
	if wc := to.Of(verbs.Recv)[n]; wc.Status != verbs.StatusSuccess {
		w.Errorf("a Send on a connection that works was received as %+v", wc)
	}
}

// Same requires that memory has the expected bytes.
func (w *World) Same(why string, got, want []byte) {
	w.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := range want {
		if got[i] != want[i] {
			w.Errorf("%s: byte %d of %d is %#x, want %#x", why, i, len(want), got[i], want[i])
			return
		}
	}
}

// FetchAdd posts an addition to integer 0 of the region to. The old value goes to integer id of the
// region into.
func (q *Queues) FetchAdd(id int, flags verbs.SendFlags, into, to *verbs.MR, add uint64) error {
	return q.Post(&verbs.SendWR{
		ID: uint64(id), Op: verbs.AtomicFetchAdd, Flags: flags, SGL: []verbs.SGE{Part(into, id*verbs.AtomicLen, verbs.AtomicLen)},
		RemoteAddr: to.Addr, RKey: to.RKey, CompareAdd: add,
	})
}

// PostTo sends text as a datagram.
func (q *Queues) PostTo(i int, text string, ah verbs.AH, qpn, qkey uint32) error {
	return q.Post(&verbs.SendWR{
		ID: uint64(i), Flags: verbs.Signaled, SGL: q.fillSlot(i, text), AH: ah, RemoteQPN: qpn, RemoteQKey: qkey,
	})
}
