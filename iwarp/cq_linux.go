package iwarp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/core"
	"github.com/rdmactor/rdmactor/verbs"
)

// fifo is a ring that grows on demand and does not shrink.
type fifo[T any] struct {
	buf     []T
	head, n int
}

func (f *fifo[T]) push(v T) {
	if f.n == len(f.buf) {
		b := make([]T, max(16, 2*f.n))
		k := copy(b, f.buf[f.head:])
		copy(b[k:], f.buf[:f.head])
		f.buf, f.head = b, 0
	}
	i := f.head + f.n
	if i >= len(f.buf) {
		i -= len(f.buf)
	}
	f.buf[i] = v
	f.n++
}

func (f *fifo[T]) pop() (v T) {
	var zero T
	v, f.buf[f.head] = f.buf[f.head], zero
	if f.head++; f.head == len(f.buf) {
		f.head = 0
	}
	f.n--
	return v
}

// completionQueue is a verbs.CQ.
type completionQueue struct {
	dev    *device
	notify func()
	q      fifo[verbs.WC]
	queued bool // in the instance's list of what to notify
	quiet  bool // only what is solicited notifies
	users  int  // queues of queue pairs that complete here
	gone   bool
}

// push adds a completion; notify follows once, at the end of what goes on now.
func (q *completionQueue) push(wc verbs.WC, solicited bool) {
	q.q.push(wc)
	if q.quiet && !solicited && wc.Status == verbs.StatusSuccess {
		return
	}
	if in := q.dev.in; !q.queued && !in.closed {
		q.queued = true
		in.notify = append(in.notify, q)
		in.later()
	}
}

// tell calls notify, if nobody has polled meanwhile.
func (q *completionQueue) tell() {
	q.queued = false
	if q.q.n > 0 && !q.gone {
		q.notify()
	}
}

// Poll takes completions, oldest first.
func (q *completionQueue) Poll(wc []verbs.WC) int {
	n := 0
	for n < len(wc) && q.q.n > 0 {
		wc[n] = q.q.pop()
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
	q.q = fifo[verbs.WC]{}
	return nil
}

// sharedQueue is a verbs.SRQ.
type sharedQueue struct {
	dev   *device
	pd    *domain
	attr  verbs.SRQInitAttr
	q     fifo[verbs.RecvWR]
	limit int // OnLimit is due when fewer are posted
	users int
	gone  bool

	waiting connList // for a receive
	served  bool     // in the instance's list of those that have some for them
}

// PostRecv adds a receive.
func (s *sharedQueue) PostRecv(wr verbs.RecvWR) error {
	if err := core.CheckRecv(&wr, s.pd, nil); err != nil {
		return err
	}
	switch {
	case s.gone:
		return unix.EINVAL
	case s.q.n >= s.attr.MaxWR:
		return fmt.Errorf("iwarp: %d receives outstanding: %w", s.q.n, unix.ENOMEM)
	}
	s.q.push(wr)
	s.offer()
	return nil
}

// Ready is true if there is a receive in the shared queue for q. Its owner is asked when it is
// empty, unless others wait already: then q waits behind them.
func (q *queuePair) Ready() bool {
	s := q.srq
	if s.waiting.n > 0 && !q.served {
		return false
	}
	if s.q.n == 0 && s.attr.OnEmpty != nil {
		s.attr.OnEmpty(q)
	}
	return s.q.n > 0
}

// Waits says that an owner who is asked for receives may post one later.
func (q *queuePair) Waits() bool { return q.srq.attr.OnEmpty != nil }

// Take gives q the oldest receive.
func (q *queuePair) Take() verbs.RecvWR {
	s := q.srq
	wr := s.q.pop()
	s.checkLimit()
	return wr
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

// checkLimit has OnLimit called at the end of what goes on now.
func (s *sharedQueue) checkLimit() {
	if s.q.n >= s.limit {
		return
	}
	s.limit = 0
	if s.attr.OnLimit != nil {
		s.dev.in.low = append(s.dev.in.low, s)
		s.dev.in.later()
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
	s.q = fifo[verbs.RecvWR]{}
	return nil
}
