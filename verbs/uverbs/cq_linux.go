package uverbs

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/verbs"
)

// CreateCQ makes a completion queue.
func (d *device) CreateCQ(cqe int, notify func()) (verbs.CQ, error) {
	if err := d.goneError(); err != nil {
		return nil, err
	}
	switch {
	case cqe < 0:
		return nil, fmt.Errorf("uverbs: completion queue of %d entries: %w", cqe, unix.EINVAL)
	case notify == nil:
		return nil, fmt.Errorf("uverbs: completion queue without notify: %w", unix.EINVAL)
	}
	q := &completionQueue{dev: d, notify: notify}
	if _, err := q.addPart(cqe); err != nil {
		return nil, err
	}
	d.cqs[q] = struct{}{}
	return q, nil
}

// addPart adds a queue of the kernel's for at least n completions.
func (q *completionQueue) addPart(n int) (*cqPart, error) {
	d := q.dev
	p := &cqPart{q: q, shared: make(map[*sharedQueue]int)}
	p.event = d.addHandle(p)
	made, err := d.hw.CreateCQ(min(max(n, 1), d.caps.MaxCQE), p.event)
	if err != nil {
		delete(d.handles, p.event)
		return nil, fmt.Errorf("uverbs: %s: create_cq of %d: %w", d.name, n, d.explainLimit(err))
	}
	p.handle, p.room, p.ring = made.Handle, made.Entries, made.Queue
	q.parts = append(q.parts, p)
	return p, nil
}

// partFor returns a queue of the kernel's with room for n completions of a queue pair, and for
// those of a shared receive queue if srq is not nil. Room for the receives of srq is claimed once
// for all queue pairs of the part that take from it.
func (q *completionQueue) partFor(n int, srq *sharedQueue) (*cqPart, error) {
	claim := n
	if srq != nil {
		claim += srq.attr.MaxWR
	}
	for _, p := range q.parts {
		if p.room >= claim || p.shared[srq] > 0 && p.room >= n {
			return p, nil
		}
	}
	if most := q.dev.caps.MaxCQE; claim > most {
		return nil, fmt.Errorf("%d completions, of %d at most: %w", claim, most, unix.EINVAL)
	}
	return q.addPart(max(claim, defaultPart))
}

// defaultPart is how many completions a queue grows by.
const defaultPart = 4096

// isEmpty reports whether there is nothing to poll.
func (q *completionQueue) isEmpty() bool {
	if q.ready.Len() > 0 {
		return false
	}
	for _, p := range q.parts {
		if !p.ring.Empty() {
			return false
		}
	}
	return true
}

// push adds a completion that the owner is notified of in any case.
func (q *completionQueue) push(wc verbs.WC) {
	q.ready.Push(wc)
}

// wakeOwner notifies the owner of pushed completions.
func (q *completionQueue) wakeOwner() {
	q.loud = true
	q.scheduleSettle()
}

// scheduleSettle schedules notifyOrArm for the end of the turn.
func (q *completionQueue) scheduleSettle() {
	if !q.due && !q.gone {
		q.due = true
		q.dev.due = append(q.dev.due, q)
		q.dev.deferRun()
	}
}

// ReqNotify chooses between every completion and solicited ones.
func (q *completionQueue) ReqNotify(solicitedOnly bool) {
	q.quiet = solicitedOnly
	q.scheduleSettle()
}

// Close destroys the queue.
func (q *completionQueue) Close() error {
	if q.users > 0 {
		return fmt.Errorf("uverbs: completion queue used by %d queues: %w", q.users, unix.EBUSY)
	}
	q.gone = true
	delete(q.dev.cqs, q)
	q.ready = ring.Ring[verbs.WC]{}
	var err error
	for _, p := range q.parts {
		err = firstError(err, p.destroy())
	}
	q.parts = nil
	return err
}

func (p *cqPart) destroy() error {
	d := p.q.dev
	if d.handles[p.event] != p {
		return nil
	}
	delete(d.handles, p.event)
	p.setArmed(false, false)
	err := p.release()
	if d.lost == nil && !d.closed {
		if e := d.hw.DestroyCQ(p.handle); e != nil {
			err = firstError(fmt.Errorf("uverbs: %s: destroy_cq: %w", d.name, e), err)
		}
	}
	return err
}

// release unmaps the queue.
func (p *cqPart) release() error {
	if p.ring == nil {
		return nil
	}
	r := p.ring
	p.ring = noCompletions{}
	return r.Close()
}

// noCompletions is the ring of a queue that was unmapped.
type noCompletions struct{}

func (noCompletions) Take(*cqe) bool { return false }
func (noCompletions) Empty() bool    { return true }
func (noCompletions) Close() error   { return nil }
