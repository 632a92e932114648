//go:build amd64 || arm64

package native

import (
	"slices"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// completions is a hca.Completions.
type completions struct {
	a       *adapter
	cq      uintptr
	mem     []byte // polled
	next, n int
	seen    int       // how often Empty still believes the last look, which has found nothing
	made    []hca.CQE // of sends that the library has refused

	foreseen bool    // it is in adapter.foreseen
	only     uintptr // what the foreseen event is asked for
	ahead    bool    // that event was asked for, and has not come
	refusal  error   // the answer
}

// polled is how many completions one call may bring.
const polled = 32

// fill polls when there is nothing left of what was polled.
func (q *completions) fill() bool {
	if q.next < q.n {
		return true
	}
	if q.foreseen {
		q.a.look(0, q)
		return q.next < q.n
	}
	p := q.a.page
	p.calls[0] = q.poll()
	p.cross(1)
	return q.got(p.calls[0].ret)
}

// poll is the call that polls.
func (q *completions) poll() cCall {
	return cCall{fn: peek[uintptr](q.a.ctx, contextPollCQ), args: [6]uintptr{q.cq, polled, addressOf(q.mem)}}
}

// got takes the answer to it.
func (q *completions) got(ret uintptr) bool {
	q.next, q.n, q.seen = 0, min(max(int(int32(ret)), 0), polled), 0
	return q.n > 0
}

// askCall is the call that asks for an event.
func (q *completions) askCall(only uintptr) cCall {
	return cCall{fn: peek[uintptr](q.a.ctx, contextReqNotify), args: [6]uintptr{q.cq, only}}
}

// ask asks for an event. What has come before that brings none, so the queue is polled in the same
// crossing.
func (q *completions) ask(only uintptr) error {
	p, n := q.a.page, 1
	p.calls[0] = q.askCall(only)
	if q.next == q.n {
		p.calls[1] = q.poll()
		n = 2
	}
	p.cross(n)
	err := errnoOf(p.calls[0].ret, 0)
	if n == 2 && !q.got(p.calls[1].ret) {
		q.seen = 1
	}
	return err
}

// Empty says whether there is no completion. A look that has found nothing is believed as often as
// package uverbs asks in a turn: before it asks for an event, and afterwards.
func (q *completions) Empty() bool {
	if q.next < q.n || len(q.made) > 0 {
		return false
	}
	if q.seen == 0 && q.fill() {
		return false
	}
	q.seen = max(q.seen-1, 0)
	return true
}

// Take removes the oldest completion. It believes no earlier look: when a connection has ended,
// everything is to be taken that came before.
func (q *completions) Take(c *hca.CQE) bool {
	if !q.fill() {
		if len(q.made) == 0 {
			return false
		}
		*c = q.made[0]
		q.made = q.made[1:]
		return true
	}
	w := at[wc](q.mem, q.next*sizeOf[wc]())
	q.next++
	*c = hca.CQE{
		Cookie: w.WRID, QPN: w.QPNum, Status: statusOf(w.Status), Bytes: w.ByteLen, SrcQPN: w.SrcQP, GRH: w.WCFlags&wcGRH != 0,
		Last: q.next == q.n && q.n < polled && len(q.made) == 0,
	}
	switch { // the two share memory
	case w.WCFlags&wcWithImm != 0:
		c.HasImm, c.Imm = true, big(w.Imm)
	case w.WCFlags&wcWithInv != 0:
		c.InvalidatedRKey = w.Imm
	}
	c.Write = c.Status == verbs.StatusSuccess && w.Opcode == wcRecvWrite
	return true
}

// Close does nothing: the queue belongs to the library.
func (q *completions) Close() error { return nil }

// statusOf converts a value of enum ibv_wc_status. Package verbs uses the same numbers.
func statusOf(s uint32) verbs.Status {
	if s > uint32(verbs.StatusGeneral) {
		return verbs.StatusGeneral
	}
	return verbs.Status(s)
}

// Foresee has the queue looked into behind the next sends that are posted, or when somebody asks
// whether it is empty.
func (a *adapter) Foresee(_ hca.Handle, queue hca.Completions, solicitedOnly bool) {
	q := queue.(*completions)
	q.only, q.ahead = bit(solicitedOnly), false
	if q.next == q.n && !q.foreseen {
		q.foreseen = true
		a.foreseen = append(a.foreseen, q)
	}
}

func bit(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}

// unforesee is for what was done, or is not to be done any more.
func (a *adapter) unforesee(q *completions) {
	if q.foreseen {
		q.foreseen = false
		i := slices.Index(a.foreseen, q)
		a.foreseen = slices.Delete(a.foreseen, i, i+1)
	}
}

// crossAnd makes the first n calls, and looks into a foreseen queue in the same crossing. Most
// loops have one queue.
func (a *adapter) crossAnd(n int) {
	if len(a.foreseen) > 0 && n+3 <= maxCalls {
		a.look(n, a.foreseen[0])
		return
	}
	a.page.cross(n)
}

// look makes the first n calls, polls the queue, and, if there is nothing, asks for an event and
// polls once more, all in one crossing.
func (a *adapter) look(n int, q *completions) {
	a.unforesee(q)
	p := a.page
	if q.next < q.n {
		p.cross(n)
		return
	}
	p.calls[n], p.calls[n+1], p.calls[n+2] = q.poll(), q.askCall(q.only), q.poll()
	p.crossUnless(n+3, 2)
	if q.got(p.calls[n].ret) {
		return
	}
	q.ahead, q.refusal = true, errnoOf(p.calls[n+1].ret, 0)
	if !q.got(p.calls[n+2].ret) {
		q.seen = 2
	}
}

// ReqNotify asks for an event, unless look has.
func (a *adapter) ReqNotify(_ hca.Handle, queue hca.Completions, solicitedOnly bool) error {
	q, only := queue.(*completions), bit(solicitedOnly)
	a.unforesee(q)
	if q.ahead && q.only == only {
		q.ahead = false
		return q.refusal
	}
	return q.ask(only)
}

// forget is for a queue that is being destroyed.
func (q *completions) forget() {
	q.a.unforesee(q)
	if q.a.recent == q {
		q.a.recent = nil
	}
}
