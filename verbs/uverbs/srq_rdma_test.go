//go:build linux && rdma

package uverbs

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

func TestSRQServesTwoAndTellsItsLimit(t *testing.T) {
	if onSIW(t) {
		t.Skip("siw's queue pairs are connected by the connection manager only")
	}
	r := newRig(t, eventloop.Config{})
	notified := 0
	srq, err := r.dev.CreateSRQ(verbs.SRQInitAttr{MaxWR: 6, OnLimit: func() { notified++ }})
	r.must(err)
	shared := func(a *verbs.QPInitAttr) { a.SRQ = srq }
	a, b, c, d := r.side(verbs.RC, nil), r.side(verbs.RC, shared), r.side(verbs.RC, nil), r.side(verbs.RC, shared)
	r.connect(a, b)
	r.connect(c, d)
	post := func(i int) error {
		return srq.PostRecv(verbs.RecvWR{ID: uint64(i), SGE: verbs.SGE{MR: b.mr, Offset: uint32(i * slotLen), Length: 64}})
	}
	for i := range 6 {
		r.must(post(i))
	}
	if err := post(6); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("a receive too many: %v, want ENOMEM", err)
	}
	r.must(srq.Arm(4))
	for i, s := range []*side{a, c, a} {
		if notified > 0 {
			t.Errorf("notified of the limit with %d of 6 left", 6-i)
		}
		s.send(i, "shared")
		r.until("it", func() bool { return len(b.done)+len(d.done) == i+1 })
	}
	r.until("the limit's event", func() bool { return notified == 1 })
	if len(b.done) != 2 || len(d.done) != 1 || b.done[0].ID != 0 || d.done[0].ID != 1 || b.done[1].ID != 2 {
		t.Errorf("received %+v and %+v, want 0 and 2, and 1", b.done, d.done)
	}
	r.must(srq.Arm(4))
	r.until("the event of a limit that is reached already", func() bool { return notified == 2 })
	if err := srq.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("destroy_srq in use: %v, want EBUSY", err)
	}
	r.must(b.qp.Destroy())
	r.must(d.qp.Destroy())
	r.must(srq.Close())
}
