package core_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestPost: work requests that cannot be queued.
func TestPost(t *testing.T) {
	mr := region(10)
	sge := verbs.SGE{MR: mr, Length: 10}
	s := newSide(t, "idle", core.Config{})
	wantErrno(t, "send before the connection", s.c.PostSend(&verbs.SendWR{SGL: []verbs.SGE{sge}}), unix.EINVAL)
	a, _ := connect(t, core.Config{Queues: core.Queues{SendWRs: 1, RecvWRs: 2}}, core.Config{})
	for why, wr := range map[string]verbs.SendWR{
		"outside":        {SGL: []verbs.SGE{{MR: mr, Offset: 1, Length: 10}}},
		"wrapping":       {SGL: []verbs.SGE{{MR: mr, Offset: 0xffffffff, Length: 10}}},
		"sum wraps":      {SGL: []verbs.SGE{{MR: mr, Offset: 2, Length: 0xffffffff}}},
		"no region":      {SGL: []verbs.SGE{{Length: 1}}},
		"too many":       {SGL: make([]verbs.SGE, core.MaxSGE+1)},
		"inline and SGL": {Inline: []byte{1}, SGL: []verbs.SGE{sge}},
		"inline":         {Inline: make([]byte, core.MaxInline+1)},
		"opcode":         {Op: verbs.Recv},
	} {
		wantErrno(t, why, a.c.PostSend(&wr), unix.EINVAL)
	}
	wantErrno(t, "Read where ORD is 0", a.c.PostSend(&verbs.SendWR{Op: verbs.Read}), unix.EINVAL)
	a.postSend(1, "x", 0)
	wantErrno(t, "second send of one", a.c.PostSend(&verbs.SendWR{}), unix.ENOMEM)
	a.postRecv(1, 1)
	a.postRecv(2, 1)
	wantErrno(t, "third receive of two", a.c.PostRecv(verbs.RecvWR{}), unix.ENOMEM)
	wantErrno(t, "receive outside", a.c.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: mr, Offset: 11}}), unix.EINVAL)
	wantErrno(t, "receive without local write",
		a.c.PostRecv(verbs.RecvWR{SGE: verbs.SGE{MR: &verbs.MR{Bytes: make([]byte, 1)}, Length: 1}}), unix.EINVAL)
}

// srq is a shared receive queue.
type srq []verbs.RecvWR

func (q *srq) HasRecv() bool { return len(*q) > 0 }

func (q *srq) WaitsIfEmpty() bool { return false }

func (q *srq) TakeRecv() verbs.RecvWR {
	wr := (*q)[0]
	*q = (*q)[1:]
	return wr
}

// TestSRQ: a receive is taken with the first segment of a message, one for each, and returned when
// the connection ends.
func TestSRQ(t *testing.T) {
	freed := region(1)
	freed.PD = &domain{}
	q := &srq{{ID: 1, SGE: verbs.SGE{MR: region(5), Length: 5}}, {ID: 2}, {ID: 3, SGE: verbs.SGE{MR: freed, Length: 1}}}
	_, b := connect(t, core.Config{}, core.Config{Queues: core.Queues{SRQ: q}})
	wantErrno(t, "PostRecv beside an SRQ", b.c.PostRecv(verbs.RecvWR{}), unix.EINVAL)
	b.c.Input(t0, send(1, "hello")[:20])
	if len(*q) != 2 {
		t.Fatalf("%d receives left with the header in: want 2", len(*q))
	}
	b.c.Input(t0, send(1, "hello")[20:])
	b.c.Input(t0, send(2, ""))
	b.wantDone("two", "r1:success/5 r2:success/0")
	b.c.Input(t0, send(3, "x"))
	b.wantDone("memory freed while it was posted", "r3:local protection error/0")
	if e, _ := b.err.(*core.Error); e == nil || e.Layer != wire.LayerDDP || e.Type != 0 {
		t.Errorf("memory freed while it was posted: %v", b.err)
	}
	_, b = connect(t, core.Config{}, core.Config{Queues: core.Queues{SRQ: q}})
	b.c.Input(t0, send(1, ""))
	if e, _ := b.err.(*core.Error); e == nil || e.Type != wire.DDPUntagged || e.Code != 2 {
		t.Errorf("an empty shared queue: %v", b.err)
	}
}
