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

// add queues wc and reports whether there was room. solicited reports that its sender asked for a
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
		in.scheduleTurn()
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
	o, err := v.newObject(resCQ, nil)
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
	waiting []*qp // their messages wait for a receive; it is the first one's turn
	asked   *qp   // of those, the one for which OnEmpty was called last
	due     bool  // in instance.serving
}

// CreateSRQ makes a shared receive queue.
func (v *view) CreateSRQ(attr verbs.SRQInitAttr) (verbs.SRQ, error) {
	p, err := v.Domain(attr.PD)
	if err != nil || attr.MaxWR <= 0 {
		return nil, unix.EINVAL
	}
	o, err := v.newObject(resSRQ, p)
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

// takeFor takes the oldest receive for q, if it is q's turn.
func (s *srq) takeFor(q *qp) (wr verbs.RecvWR, ok bool) {
	if s.posted.Len() == 0 || len(s.waiting) > 0 && s.waiting[0] != q {
		return wr, false
	}
	wr = s.posted.Pop()
	s.checkLimit()
	q.leaveSRQ()
	return wr, true
}

// scheduleServe makes serve look after the queue pairs that wait.
func (s *srq) scheduleServe() {
	if in := s.v.in; len(s.waiting) > 0 && !s.due {
		s.due = true
		in.serving = append(in.serving, s)
		in.scheduleTurn()
	}
}

// asksForReceives reports whether the device asks for receives.
func (s *srq) asksForReceives() bool { return s.attr.OnEmpty != nil && !s.v.in.f.reserved }

// serveWaiting passes shared receives to the queue pairs that wait for them, in turn. It asks the
// owner of an empty queue for receives, once for each queue pair. The owner was notified of all
// completions before: it can post the receives again that they release.
func (in *instance) serveWaiting() {
	for i := 0; i < len(in.serving); {
		s := in.serving[i]
		if len(s.waiting) > 0 {
			in.notifyCompletions()
		}
		switch {
		case len(s.waiting) > 0 && s.posted.Len() > 0:
			s.waiting[0].retryNow()
		case len(s.waiting) == 0 || !s.asksForReceives() || s.asked == s.waiting[0]:
			s.due = false
			in.serving = slices.Delete(in.serving, i, i+1)
		case in.frozen || len(in.dirty) > 0: // Reorder delays the notification
			i++
		default:
			s.asked = s.waiting[0]
			s.attr.OnEmpty(s.asked)
		}
	}
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
	s.v.in.runLater(func() {
		s.v.in.runProgram(func() {
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
