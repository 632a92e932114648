package cmidtest

import (
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/verbs"
)

// rings is a queue pair with a completion queue that is polled whenever it says so.
type rings struct {
	qp   verbs.QP
	cq   verbs.CQ
	pd   verbs.PD
	mr   *verbs.MR
	done []verbs.WC
	then func() // after completions
	wc   [3]verbs.WC
}

const (
	ringDepth = 8
	slotSize  = 256
)

// queues makes a queue pair with n receives of slotSize posted.
func (w *world) queues(id *cmid.ID, n int) *rings {
	w.Helper()
	return w.queuesWith(id, n, nil)
}

// queuesWith is queues with other attributes than the usual.
func (w *world) queuesWith(id *cmid.ID, n int, change func(verbs.Device, *verbs.QPInitAttr)) *rings {
	w.Helper()
	q := &rings{}
	dev := id.Device()
	if dev == nil {
		w.Fatalf("no device in state %v", id.State())
	}
	var err error
	q.cq, err = dev.CreateCQ(4*ringDepth, q.poll)
	w.must(err)
	attr := verbs.QPInitAttr{
		SendCQ: q.cq, RecvCQ: q.cq, MaxSendWR: ringDepth, MaxRecvWR: ringDepth, Context: q,
	}
	if change != nil {
		change(dev, &attr)
	}
	q.pd = attr.PD
	if q.pd == nil {
		q.pd = dev.PD()
	}
	q.mr, err = q.pd.Alloc(2*ringDepth*slotSize, verbs.LocalWrite)
	w.must(err)
	q.qp, err = id.CreateQP(attr)
	w.must(err)
	for i := range n {
		w.must(q.postRecv(i, slotSize))
	}
	return q
}

func (q *rings) poll() {
	for n := q.cq.Poll(q.wc[:]); n > 0; n = q.cq.Poll(q.wc[:]) {
		q.done = append(q.done, q.wc[:n]...)
	}
	if q.then != nil {
		q.then()
	}
}

// postRecv posts slot i for up to n bytes. Its work request is 100+i.
func (q *rings) postRecv(i, n int) error {
	return q.qp.PostRecv(verbs.RecvWR{ID: uint64(100 + i), SGE: verbs.SGE{MR: q.mr, Offset: uint32(i * slotSize), Length: uint32(n)}})
}

// slot is what receive i holds.
func (q *rings) slot(i int) []byte { return q.mr.Bytes[i*slotSize : (i+1)*slotSize] }

// postSend posts a Send of text from the memory's second half.
func (q *rings) postSend(i int, text string) error {
	off := (ringDepth + i%ringDepth) * slotSize
	copy(q.mr.Bytes[off:off+slotSize], text)
	return q.qp.PostSend(&verbs.SendWR{
		ID: uint64(i), Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: q.mr, Offset: uint32(off), Length: uint32(len(text))}},
	})
}

// of are the completions of one kind.
func (q *rings) of(op verbs.Opcode) (wc []verbs.WC) {
	for _, c := range q.done {
		if (c.ID >= 100) == (op == verbs.Recv) {
			wc = append(wc, c)
		}
	}
	return wc
}
