package cmidtest

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// view is a device as one loop sees it: the verbs.Device.
type view struct {
	in   *instance
	dev  *device
	pd   pd
	keys uint32
}

const maxInline = 64

// Name is the device's.
func (v *view) Name() string { return v.dev.name }

// Attr gives limits that a test can reach.
func (v *view) Attr() verbs.DeviceAttr {
	return verbs.DeviceAttr{
		MaxQP: 1 << 16, MaxQPWR: 1 << 14, MaxSGE: 16, MaxInline: maxInline, MaxMessage: maxMessage,
		MaxRDAtom: int(v.in.f.depth()),
	}
}

// PD is the domain of whatever names none.
func (v *view) PD() verbs.PD { return &v.pd }

// AllocPD makes a protection domain.
func (v *view) AllocPD() (verbs.PD, error) { return &pd{v: v}, nil }

// Alloc makes memory.
func (v *view) Alloc(n int, access verbs.Access) (*verbs.MR, error) { return v.pd.Alloc(n, access) }

// Free takes the memory back: whatever still names it fails.
func (v *view) Free(mr *verbs.MR) error {
	if mr.Bytes != nil {
		v.dev.count(resMR, -1)
		p, _ := mr.PD.(*pd)
		p.users--
	}
	mr.Bytes, mr.PD = nil, nil
	return nil
}

// pd is a protection domain.
type pd struct {
	v     *view
	users int
	gone  bool
}

// Alloc makes memory.
func (p *pd) Alloc(n int, access verbs.Access) (*verbs.MR, error) {
	v := p.v
	if n <= 0 || uint64(n) > 1<<32-1 || p.gone || access&verbs.RemoteWrite != 0 && access&verbs.LocalWrite == 0 {
		return nil, unix.EINVAL
	}
	v.keys++
	p.users++
	v.dev.count(resMR, 1)
	return &verbs.MR{PD: p, Bytes: make([]byte, n), Addr: uint64(v.keys) << 32, LKey: v.keys, RKey: v.keys, Access: access}, nil
}

// Close destroys the domain.
func (p *pd) Close() error {
	switch {
	case p == &p.v.pd || p.gone:
		return unix.EINVAL
	case p.users > 0:
		return unix.EBUSY
	}
	p.gone = true
	return nil
}

// CreateCQ makes a completion queue.
func (v *view) CreateCQ(cqe int, notify func()) (verbs.CQ, error) {
	if cqe <= 0 {
		return nil, unix.EINVAL
	}
	v.dev.count(resCQ, 1)
	return &cq{in: v.in, dev: v.dev, entries: cqe, tell: notify}, nil
}

// CreateSRQ makes a shared receive queue.
func (v *view) CreateSRQ(attr verbs.SRQInitAttr) (verbs.SRQ, error) {
	if attr.MaxWR <= 0 {
		return nil, unix.EINVAL
	}
	v.dev.count(resSRQ, 1)
	return &srq{in: v.in, dev: v.dev, attr: attr}, nil
}

// cq is a completion queue, a ring that grows. It must not: a completion beyond its entries is lost on a device, and takes the queue
// pair with it.
type cq struct {
	in      *instance
	dev     *device
	entries int
	tell    func()
	done    fifo[verbs.WC]
	dirty   bool
	quiet   bool // only what is solicited notifies
	users   int
	closed  bool
}

// add queues wc and reports whether there was room.
func (q *cq) add(wc verbs.WC) bool {
	if q.done.len() >= q.entries {
		return false
	}
	q.done.push(wc)
	if q.quiet && wc.Status == verbs.StatusSuccess {
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
	if q.tell != nil && q.done.len() > 0 {
		q.tell()
	}
}

// Poll takes completions.
func (q *cq) Poll(wc []verbs.WC) int {
	n := min(len(wc), q.done.len())
	for i := range n {
		wc[i] = q.done.pop()
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

// srq is a shared receive queue.
type srq struct {
	in      *instance
	dev     *device
	attr    verbs.SRQInitAttr
	posted  fifo[verbs.RecvWR]
	users   int
	limit   int
	waiting []*qp // messages came and found it empty (InfiniBand)
	closed  bool
}

// PostRecv adds a receive.
func (s *srq) PostRecv(wr verbs.RecvWR) error {
	if !fits(wr.SGE) {
		return unix.EINVAL
	}
	if s.posted.len() >= s.attr.MaxWR {
		return unix.ENOMEM
	}
	s.posted.push(wr)
	for _, q := range s.waiting {
		q.retryLater()
	}
	s.waiting = s.waiting[:0]
	return nil
}

// Arm sets the limit.
func (s *srq) Arm(limit int) error {
	if limit < 0 || limit > s.attr.MaxWR || s.closed {
		return unix.EINVAL
	}
	s.limit = limit
	return nil
}

// Close destroys the queue.
func (s *srq) Close() error {
	if s.users > 0 {
		return unix.EBUSY
	}
	if !s.closed {
		s.closed = true
		s.dev.count(resSRQ, -1)
	}
	s.posted = fifo[verbs.RecvWR]{}
	return nil
}

// fits reports whether an element lies in its memory.
func fits(s verbs.SGE) bool {
	return s.MR != nil && uint64(s.Offset)+uint64(s.Length) <= uint64(len(s.MR.Bytes)) || s.MR == nil && s.Length == 0
}

// place is the element's memory.
func place(s verbs.SGE) []byte {
	if s.MR == nil {
		return nil
	}
	return s.MR.Bytes[s.Offset : s.Offset+s.Length]
}

// fifo is a ring that keeps its memory.
type fifo[T any] struct {
	ring []T
	head int
	n    int
}

func (q *fifo[T]) len() int { return q.n }

func (q *fifo[T]) push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(2*len(q.ring), 8))
		for i := range q.n {
			ring[i] = *q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = v
	q.n++
}

func (q *fifo[T]) at(i int) *T { return &q.ring[(q.head+i)%len(q.ring)] }

func (q *fifo[T]) pop() T {
	var zero T
	v := q.ring[q.head]
	q.ring[q.head] = zero
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return v
}

func (q *fifo[T]) pushFront(v T) {
	if q.n == 0 {
		q.push(v)
		return
	}
	if q.n == len(q.ring) {
		q.push(v) // grows, and makes room
		q.n--
	}
	q.head = (q.head - 1 + len(q.ring)) % len(q.ring)
	q.ring[q.head] = v
	q.n++
}
