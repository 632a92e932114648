package cmidtest

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// cq is a completion queue, a ring that grows. On a Reserved device it does not grow. There a
// completion without room is lost, and its queue pair fails.
type cq struct {
	object
	entries  int
	callback func()
	done     ring.Ring[verbs.WC]
	dirty    bool
	quiet    bool // only solicited completions notify
}

// add queues wc and reports whether there was room. solicited says that its sender asked for a
// notification.
func (q *cq) add(wc verbs.WC, solicited bool) bool {
	in := q.v.in
	if in.f.reserved && q.done.Len() >= q.entries { // elsewhere it grows (DeviceAttr.MaxCQE)
		return false
	}
	q.done.Push(wc)
	if q.quiet && !solicited && wc.Status == verbs.StatusSuccess {
		return true
	}
	if !q.dirty {
		q.dirty = true
		in.dirty = append(in.dirty, q)
		in.kick()
	}
	return true
}

// ReqNotify chooses whether every completion notifies or only solicited ones.
func (q *cq) ReqNotify(solicitedOnly bool) { q.quiet = solicitedOnly }

func (q *cq) notify() {
	if q.callback != nil && q.done.Len() > 0 {
		q.callback()
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
	if err := q.close(); err != nil {
		return err
	}
	q.callback = nil
	in := q.v.in
	in.dirty = slices.DeleteFunc(in.dirty, func(other *cq) bool { return other == q })
	return nil
}

// CreateCQ makes a completion queue.
func (v *view) CreateCQ(cqe int, notify func()) (verbs.CQ, error) {
	if cqe <= 0 || v.in.f.reserved && cqe > maxCQE {
		return nil, unix.EINVAL
	}
	o, err := v.object(resCQ, nil)
	if err != nil {
		return nil, err
	}
	return &cq{object: o, entries: cqe, callback: notify}, nil
}

// srq is a shared receive queue.
type srq struct {
	object
	attr    verbs.SRQInitAttr
	posted  ring.Ring[verbs.RecvWR]
	limit   int   // OnLimit is called when fewer are posted
	waiting []*qp // their messages found it empty
}

// CreateSRQ makes a shared receive queue.
func (v *view) CreateSRQ(attr verbs.SRQInitAttr) (verbs.SRQ, error) {
	p, err := v.Domain(attr.PD)
	if err != nil || attr.MaxWR <= 0 {
		return nil, unix.EINVAL
	}
	o, err := v.object(resSRQ, p)
	if err != nil {
		return nil, err
	}
	return &srq{object: o, attr: attr}, nil
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

// take takes the oldest receive for q. If the queue is empty, it asks the owner for one.
func (s *srq) take(q *qp) (wr verbs.RecvWR, ok bool) {
	if len(s.waiting) > 0 && !q.served {
		return wr, false // those that wait come first
	}
	if s.posted.Len() == 0 && s.attr.OnEmpty != nil && !s.v.in.f.reserved && !s.v.in.frozen {
		s.attr.OnEmpty(q)
	}
	if q.over || q.paused || s.posted.Len() == 0 {
		return wr, false
	}
	wr = s.posted.Pop()
	s.checkLimit()
	return wr, true
}

// checkLimit schedules OnLimit for a later turn, if the queue is below its limit.
func (s *srq) checkLimit() {
	if s.posted.Len() >= s.limit {
		return
	}
	s.limit = 0
	if s.attr.OnLimit == nil {
		return
	}
	s.v.in.later(func() {
		s.v.in.program(func() {
			if !s.closed {
				s.attr.OnLimit()
			}
		})
	})
}

// Close destroys the queue.
func (s *srq) Close() error {
	if err := s.close(); err != nil {
		return err
	}
	s.posted = ring.Ring[verbs.RecvWR]{}
	return nil
}
