package iwarp

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// completionQueue is a verbs.CQ.
type completionQueue struct {
	dev    *device
	notify func()
	q      ring.Ring[verbs.WC]
	queued bool // in instance.notify
	quiet  bool // only solicited completions notify
	users  int  // queues of queue pairs that complete here
	gone   bool
}

// push adds a completion. notify is called once, by the next deliverReports.
func (q *completionQueue) push(wc verbs.WC, solicited bool) {
	q.q.Push(wc)
	if q.quiet && !solicited && wc.Status == verbs.StatusSuccess {
		return
	}
	if in := q.dev.in; !q.queued && !in.closed {
		q.queued = true
		in.notify = append(in.notify, q)
		in.deferRun()
	}
}

// callNotify calls notify, unless the queue was polled empty in between.
func (q *completionQueue) callNotify() {
	q.queued = false
	if q.q.Len() > 0 && !q.gone {
		q.notify()
	}
}

// Poll takes completions, oldest first.
func (q *completionQueue) Poll(wc []verbs.WC) int {
	n := 0
	for n < len(wc) && q.q.Len() > 0 {
		wc[n] = q.q.Pop()
		n++
	}
	return n
}

// ReqNotify chooses between every completion and solicited ones.
func (q *completionQueue) ReqNotify(solicitedOnly bool) { q.quiet = solicitedOnly }

// Close destroys the queue: EBUSY while a queue pair uses it. Completions not polled are dropped.
func (q *completionQueue) Close() error {
	if q.users > 0 {
		return fmt.Errorf("iwarp: completion queue used by %d queues: %w", q.users, unix.EBUSY)
	}
	q.gone = true
	q.q = ring.Ring[verbs.WC]{}
	return nil
}

// sharedQueue is a verbs.SRQ.
type sharedQueue struct {
	dev   *device
	pd    *domain
	attr  verbs.SRQInitAttr
	q     ring.Ring[verbs.RecvWR]
	limit int // OnLimit is called when fewer receives are posted
	users int
	gone  bool

	waiting   connList // connections that wait for a receive
	asked     *conn    // of those, the one for which OnEmpty was called last
	scheduled bool     // in instance.serving
}

// PostRecv adds a receive.
func (s *sharedQueue) PostRecv(wr verbs.RecvWR) error {
	if err := core.CheckRecv(&wr, s.pd, nil); err != nil {
		return err
	}
	switch {
	case s.gone:
		return unix.EINVAL
	case s.q.Len() >= s.attr.MaxWR:
		return fmt.Errorf("iwarp: receive queue full, %d receives outstanding: %w", s.q.Len(), unix.ENOMEM)
	}
	s.q.Push(wr)
	s.scheduleServe()
	return nil
}

// Arm sets the limit.
func (s *sharedQueue) Arm(limit int) error {
	if limit < 0 || limit > s.attr.MaxWR || s.gone {
		return fmt.Errorf("iwarp: limit of %d for a shared receive queue of %d: %w", limit, s.attr.MaxWR, unix.EINVAL)
	}
	s.limit = limit
	s.checkLimit()
	return nil
}

// checkLimit schedules a call of OnLimit if fewer receives are posted than the limit.
func (s *sharedQueue) checkLimit() {
	if s.q.Len() >= s.limit {
		return
	}
	s.limit = 0
	if s.attr.OnLimit != nil {
		s.dev.in.low = append(s.dev.in.low, s)
		s.dev.in.deferRun()
	}
}

// Close destroys the queue: EBUSY while a queue pair uses it.
func (s *sharedQueue) Close() error {
	if s.users > 0 {
		return fmt.Errorf("iwarp: shared receive queue used by %d queue pairs: %w", s.users, unix.EBUSY)
	}
	if !s.gone {
		s.pd.users--
	}
	s.gone = true
	s.q = ring.Ring[verbs.RecvWR]{}
	return nil
}

// HasRecv reports whether there is a receive in the shared queue, and it is q's turn to take one.
func (q *queuePair) HasRecv() bool {
	s := q.srq
	return s.q.Len() > 0 && (s.waiting.n == 0 || s.waiting.oldest == q.conn)
}

// WaitsIfEmpty reports whether a message can wait because the owner is asked for receives and may
// post one later.
func (q *queuePair) WaitsIfEmpty() bool { return q.srq.attr.OnEmpty != nil }

// TakeRecv removes the oldest receive and gives it to q.
func (q *queuePair) TakeRecv() verbs.RecvWR {
	s := q.srq
	wr := s.q.Pop()
	s.checkLimit()
	return wr
}

// CreateCQ makes a completion queue. It grows as needed, regardless of cqe.
func (d *device) CreateCQ(cqe int, notify func()) (verbs.CQ, error) {
	switch {
	case cqe < 0:
		return nil, fmt.Errorf("iwarp: completion queue of %d entries: %w", cqe, unix.EINVAL)
	case notify == nil:
		return nil, fmt.Errorf("iwarp: completion queue without notify: %w", unix.EINVAL)
	}
	return &completionQueue{dev: d, notify: notify}, nil
}

// CreateSRQ makes a shared receive queue.
func (d *device) CreateSRQ(attr verbs.SRQInitAttr) (verbs.SRQ, error) {
	if attr.MaxWR <= 0 || attr.MaxWR > math.MaxInt32 {
		return nil, fmt.Errorf("iwarp: shared receive queue of %d: %w", attr.MaxWR, unix.EINVAL)
	}
	pd, err := d.domainOf(attr.PD)
	if err != nil {
		return nil, err
	}
	pd.users++
	return &sharedQueue{dev: d, pd: pd, attr: attr}, nil
}
