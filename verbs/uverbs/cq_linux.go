package uverbs

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/verbs"
)

// completionQueue is a verbs.CQ over one or more of the kernel's: a queue pair whose completions might not fit into those there are
// brings another one. So a queue is never overrun, whatever its owner asked for.
type completionQueue struct {
	dev    *device
	notify func()
	parts  []*cqPart
	next   int            // the part to look into first: another one after every full Poll, so that none waits for a busy one
	taken  cqe            // from the kernel's queue
	ready  fifo[verbs.WC] // completions taken from the kernel's queues, or made here
	told   bool           // the owner was told, and has not polled until 0 since
	loud   bool           // something happened that the owner is told of, even if it asked for less
	quiet  bool           // only what is solicited notifies
	due    bool           // in the device's list of queues to settle
	users  int            // queues of queue pairs that complete here
	gone   bool
}

// cqPart is a completion queue of the kernel's.
type cqPart struct {
	q       *completionQueue
	handle  uint32
	event   uint64 // the handle in events
	ring    cqRing
	room    int                  // completions that nothing outstanding has a claim to
	armed   bool                 // the kernel will tell of the next completion, or
	quietly bool                 // of the next solicited one
	shared  map[*sharedQueue]int // queue pairs whose receives come from there
}

// CreateCQ makes a completion queue.
func (d *device) CreateCQ(cqe int, notify func()) (verbs.CQ, error) {
	if err := d.gone(); err != nil {
		return nil, err
	}
	switch {
	case cqe < 0:
		return nil, fmt.Errorf("uverbs: completion queue of %d: %w", cqe, unix.EINVAL)
	case notify == nil:
		return nil, fmt.Errorf("uverbs: completion queue without notify: %w", unix.EINVAL)
	}
	q := &completionQueue{dev: d, notify: notify}
	if _, err := q.grow(cqe); err != nil {
		return nil, err
	}
	d.cqs[q] = struct{}{}
	return q, nil
}

// grow adds a queue of the kernel's for at least n completions.
func (q *completionQueue) grow(n int) (*cqPart, error) {
	d := q.dev
	p := &cqPart{q: q, shared: make(map[*sharedQueue]int)}
	p.event = d.handle(p)
	resp, err := call[createCQ, createCQResp](d.k, cmdCreateCQ, createCQ{
		UserHandle: p.event, CQE: uint32(min(max(n, 1), int(d.caps.MaxCQE))), CompChannel: int32(d.comp),
	})
	if err != nil {
		delete(d.handles, p.event)
		return nil, fmt.Errorf("uverbs: %s: create_cq of %d: %w", d.name, n, err)
	}
	p.handle = resp.CQHandle
	p.room = int(resp.CQE)
	if p.ring, err = d.mapCompletions(resp); err != nil {
		_ = p.destroy()
		return nil, fmt.Errorf("uverbs: %s: create_cq of %d: %w", d.name, n, err)
	}
	q.parts = append(q.parts, p)
	return p, nil
}

// part is where a queue pair with claims to n completions, and to those of a shared receive queue if srq is not nil, may complete. Of
// all queue pairs there that take receives from srq, one has the claim to them.
func (q *completionQueue) part(n int, srq *sharedQueue) (*cqPart, error) {
	claim := n
	if srq != nil {
		claim += srq.attr.MaxWR
	}
	for _, p := range q.parts {
		if p.room >= claim || p.shared[srq] > 0 && p.room >= n {
			return p, nil
		}
	}
	if most := int(q.dev.caps.MaxCQE); claim > most {
		return nil, fmt.Errorf("%d completions, of %d at most: %w", claim, most, unix.EINVAL)
	}
	return q.grow(max(claim, defaultPart))
}

// defaultPart is the size of what a queue grows by.
const defaultPart = 4096

// Poll takes completions, oldest first as far as one of the kernel's queues holds them: a queue pair's are in order, those of several may
// not be.
func (q *completionQueue) Poll(wc []verbs.WC) int {
	n := 0
	for n < len(wc) && (q.ready.n > 0 || q.take()) {
		for ; n < len(wc) && q.ready.n > 0; n++ {
			wc[n] = q.ready.pop()
		}
	}
	if n < len(wc) {
		q.told = false
		q.later()
	} else {
		q.next++
	}
	return n
}

// take looks for a completion in the kernel's queues. What it leads to, if anything, is in ready.
func (q *completionQueue) take() bool {
	for range q.parts {
		if q.next >= len(q.parts) {
			q.next = 0
		}
		if q.parts[q.next].ring.take(&q.taken) {
			q.dev.complete(&q.taken)
			return true
		}
		q.next++
	}
	return false
}

// drain takes everything that the kernel's queues hold.
func (q *completionQueue) drain() {
	for q.take() {
	}
}

// empty reports whether there is nothing to poll.
func (q *completionQueue) empty() bool {
	if q.ready.n > 0 {
		return false
	}
	for _, p := range q.parts {
		if !p.ring.empty() {
			return false
		}
	}
	return true
}

// push adds a completion that the owner is told of in any case.
func (q *completionQueue) push(wc verbs.WC) {
	q.ready.push(wc)
}

// wake has the owner told of what was pushed.
func (q *completionQueue) wake() {
	q.loud = true
	q.later()
}

// later has settle called at the end of the turn.
func (q *completionQueue) later() {
	if !q.due && !q.gone {
		q.due = true
		q.dev.due = append(q.dev.due, q)
		q.dev.later()
	}
}

// heard is the kernel's word that there is a completion of the kind it was asked for. Of solicited ones it is asked to tell again at
// once: whatever has come before that is polled now, so none is missed, and none that is not solicited is told of.
func (q *completionQueue) heard() {
	q.loud = true
	if q.quiet {
		q.arm()
	}
	if !q.tell() {
		q.later()
	}
}

// settle tells the owner, or asks the kernel to tell. A completion may come between looking and asking, so it looks twice: whether that
// one was solicited nobody says, so the owner is told of it.
func (q *completionQueue) settle() {
	q.due = false
	if q.gone || q.told {
		return
	}
	if q.empty() {
		q.loud = false
	}
	if !q.tell() && q.users > 0 && q.arm() {
		q.loud = !q.empty()
		q.tell()
	}
}

// tell calls notify, if there is something that the owner wants to hear of.
func (q *completionQueue) tell() bool {
	if q.told || q.gone || q.dev.closed || q.empty() || q.quiet && !q.loud {
		return false
	}
	q.told, q.loud = true, false
	q.notify()
	return true
}

// arm asks the kernel to tell of the next completion, and reports whether it had to be asked.
func (q *completionQueue) arm() (asked bool) {
	d := q.dev
	if d.lost != nil || d.closed {
		return false
	}
	for _, p := range q.parts {
		if p.armed || p.quietly && q.quiet {
			continue
		}
		asked = true
		if s, ok := p.ring.(*siwCompletions); ok {
			s.arm.Store(siwNotifyAll)
			p.armed = true
			continue
		}
		only := uint32(0)
		if q.quiet {
			only = 1
		}
		if err := tell(d.k, cmdReqNotifyCQ, reqNotifyCQ{CQHandle: p.handle, SolicitedOnly: only}); err != nil {
			d.fail(err)
			return
		}
		p.armed, p.quietly = !q.quiet, q.quiet
	}
	return asked
}

// ReqNotify chooses between every completion and solicited ones.
func (q *completionQueue) ReqNotify(solicitedOnly bool) {
	q.quiet = solicitedOnly
	q.later()
}

// Close destroys the queue.
func (q *completionQueue) Close() error {
	if q.users > 0 {
		return fmt.Errorf("uverbs: completion queue used by %d queues: %w", q.users, unix.EBUSY)
	}
	q.gone = true
	delete(q.dev.cqs, q)
	q.ready = fifo[verbs.WC]{}
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
	err := p.release()
	if d.lost == nil && !d.closed {
		if _, e := call[destroyCQ, destroyCQResp](d.k, cmdDestroyCQ, destroyCQ{CQHandle: p.handle}); e != nil {
			err = firstError(fmt.Errorf("uverbs: %s: destroy_cq: %w", d.name, e), err)
		}
	}
	return err
}

// release gives the map back.
func (p *cqPart) release() error {
	if p.ring == nil {
		return nil
	}
	r := p.ring
	p.ring = noCompletions{}
	return r.close()
}

// noCompletions is the ring of a queue whose memory was given back.
type noCompletions struct{}

func (noCompletions) take(*cqe) bool { return false }
func (noCompletions) empty() bool    { return true }
func (noCompletions) close() error   { return nil }
