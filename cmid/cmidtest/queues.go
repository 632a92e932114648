package cmidtest

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/cmidtest/internal/memory"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// cq is a completion queue, a ring that grows. On a Reserved device it must not: a completion
// beyond its entries is lost there, and takes the queue pair with it.
type cq struct {
	in      *instance
	dev     *device
	entries int
	tell    func()
	done    ring.Ring[verbs.WC]
	dirty   bool
	quiet   bool // only what is solicited notifies
	users   int
	closed  bool
}

// add queues wc and reports whether there was room. solicited is what its sender asked for.
func (q *cq) add(wc verbs.WC, solicited bool) bool {
	if q.in.f.reserved && q.done.Len() >= q.entries { // elsewhere it grows (DeviceAttr.MaxCQE)
		return false
	}
	q.done.Push(wc)
	if q.quiet && !solicited && wc.Status == verbs.StatusSuccess {
		return true
	}
	if !q.dirty {
		q.dirty = true
		q.in.dirty = append(q.in.dirty, q)
		q.in.kick()
	}
	return true
}

// ReqNotify chooses between every completion and solicited ones.
func (q *cq) ReqNotify(solicitedOnly bool) { q.quiet = solicitedOnly }

func (q *cq) notify() {
	if q.tell != nil && q.done.Len() > 0 {
		q.tell()
	}
}

// Poll takes completions.
func (q *cq) Poll(wc []verbs.WC) int {
	n := min(len(wc), q.done.Len())
	for i := range n {
		wc[i] = q.done.Pop()
	}
	return n
}

// Close destroys the queue.
func (q *cq) Close() error {
	if q.users > 0 {
		return unix.EBUSY
	}
	if !q.closed {
		q.closed = true
		q.dev.count(resCQ, -1)
	}
	q.tell = nil
	q.in.dirty = slices.DeleteFunc(q.in.dirty, func(other *cq) bool { return other == q })
	return nil
}

// CreateCQ makes a completion queue.
func (v *view) CreateCQ(cqe int, notify func()) (verbs.CQ, error) {
	if cqe <= 0 || v.in.f.reserved && cqe > maxCQE {
		return nil, unix.EINVAL
	}
	v.dev.count(resCQ, 1)
	return &cq{in: v.in, dev: v.dev, entries: cqe, tell: notify}, nil
}

// srq is a shared receive queue.
type srq struct {
	in      *instance
	dev     *device
	pd      *memory.Domain
	attr    verbs.SRQInitAttr
	posted  ring.Ring[verbs.RecvWR]
	users   int
	limit   int   // OnLimit is due when fewer are posted
	waiting []*qp // messages came and found it empty
	closed  bool
}

// CreateSRQ makes a shared receive queue.
func (v *view) CreateSRQ(attr verbs.SRQInitAttr) (verbs.SRQ, error) {
	p, err := v.Domain(attr.PD)
	if err != nil || attr.MaxWR <= 0 {
		return nil, unix.EINVAL
	}
	p.Use(1)
	v.dev.count(resSRQ, 1)
	return &srq{in: v.in, dev: v.dev, pd: p, attr: attr}, nil
}

// Arm sets the limit.
func (s *srq) Arm(limit int) error {
	if limit < 0 || limit > s.attr.MaxWR || s.closed {
		return unix.EINVAL
	}
	s.limit = limit
	s.checkLimit()
	return nil
}

// take takes the oldest receive for q; the owner of an empty queue may post one now.
func (s *srq) take(q *qp) (wr verbs.RecvWR, ok bool) {
	if len(s.waiting) > 0 && !q.served {
		return wr, false // behind those
	}
	if s.posted.Len() == 0 && s.attr.OnEmpty != nil && !s.in.f.reserved && !s.in.frozen {
		s.attr.OnEmpty(q)
	}
	if q.over || q.paused || s.posted.Len() == 0 {
		return wr, false
	}
	wr = s.posted.Pop()
	s.checkLimit()
	return wr, true
}

// checkLimit has OnLimit called, not inside what goes on now.
func (s *srq) checkLimit() {
	if s.posted.Len() >= s.limit {
		return
	}
	s.limit = 0
	if s.attr.OnLimit == nil {
		return
	}
	s.in.later(func() {
		s.in.program(func() {
			if !s.closed {
				s.attr.OnLimit()
			}
		})
	})
}

// Close destroys the queue.
func (s *srq) Close() error {
	if s.users > 0 {
		return unix.EBUSY
	}
	if !s.closed {
		s.closed = true
		s.pd.Use(-1)
		s.dev.count(resSRQ, -1)
	}
	s.posted = ring.Ring[verbs.RecvWR]{}
	return nil
}
